"""Image files come as grey arrays in the type and units that they have, or not at all."""

from itertools import product

import numpy as np
import pytest
import tifffile
from PIL import Image

from heatprior.errors import ImageFileError
from heatprior.images import LUMA, image_files, read_grey, read_image, to_grey

RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 256, (12, 17, 3), dtype=np.uint8)
GREY = np.asarray(Image.fromarray(COLOUR).convert("L"))


@pytest.mark.parametrize(
    ("mode", "suffix"),
    [*product(["L", "LA", "RGB", "RGBA", "P", "1"], [".png", ".tif", ".TIFF"]), ("CMYK", ".tif")],  # PNG has no CMYK
)
def test_eight_bits_are_what_pillow_makes_of_them(tmp_path, mode, suffix):
    image = Image.fromarray(COLOUR).convert(mode)
    image.save(tmp_path / f"image{suffix}")
    grey = read_grey(tmp_path / f"image{suffix}")
    assert grey.dtype == np.uint8
    np.testing.assert_array_equal(grey, np.asarray(image.convert("L")))


@pytest.mark.parametrize("suffix", [".jpg", ".JPEG"])
def test_a_jpeg_is_what_pillow_makes_of_it(tmp_path, suffix):
    path = tmp_path / f"image{suffix}"
    Image.fromarray(COLOUR).save(path)
    np.testing.assert_array_equal(read_grey(path), np.asarray(Image.open(path).convert("L")))


def test_transparency_is_ignored(tmp_path):
    ghost = np.dstack([COLOUR, np.zeros(COLOUR.shape[:2], np.uint8)])
    Image.fromarray(ghost).save(tmp_path / "ghost.png")
    np.testing.assert_array_equal(read_grey(tmp_path / "ghost.png"), GREY)


@pytest.mark.parametrize("name", ["image.png", "image.tif", "lzw.tif", "big.tif"])
def test_sixteen_bits_stay_sixteen(tmp_path, name):
    wide = RNG.integers(0, 65536, (9, 8), dtype=np.uint16)
    if name == "big.tif":
        tifffile.imwrite(tmp_path / name, wide.astype(">u2"), byteorder=">")
    else:
        Image.fromarray(wide).save(tmp_path / name, **({"compression": "tiff_lzw"} if name == "lzw.tif" else {}))
    grey = read_grey(tmp_path / name)
    assert grey.dtype == np.uint16
    np.testing.assert_array_equal(grey, wide)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("layout", ["contig", "separate"])
def test_colour_tiffs_of_every_type_become_their_luma(tmp_path, dtype, channels, layout):
    pixels = RNG.random((9, 8, channels))
    if np.issubdtype(dtype, np.integer):
        pixels = pixels * np.iinfo(dtype).max
    pixels = pixels.astype(dtype)
    stored = pixels if layout == "contig" else np.moveaxis(pixels, -1, 0)
    tifffile.imwrite(tmp_path / "image.tif", stored, photometric="rgb", planarconfig=layout)
    grey = read_grey(tmp_path / "image.tif")
    assert grey.dtype == dtype
    rounding = 0.51 if np.issubdtype(dtype, np.integer) else 1e-7
    np.testing.assert_allclose(grey, pixels[..., :3].astype(np.float64) @ LUMA, rtol=0, atol=rounding)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_arrays_and_grey_tiffs_come_as_they_are(tmp_path, dtype):
    pixels = (RNG.random((9, 8)) * 200).astype(dtype)
    np.save(tmp_path / "image.npy", pixels)
    tifffile.imwrite(tmp_path / "image.tif", pixels)
    for name in ("image.npy", "image.tif"):
        grey = read_grey(tmp_path / name)
        assert grey.dtype == dtype
        np.testing.assert_array_equal(grey, pixels)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_grey_in_three_channels_stays_the_same_grey(dtype):
    ramp = np.linspace(0, np.iinfo(dtype).max, 1000).astype(dtype).reshape(10, 100)
    np.testing.assert_array_equal(to_grey(np.dstack([ramp] * 3)), ramp)


def test_one_channel_with_or_without_transparency_is_that_channel():
    np.testing.assert_array_equal(to_grey(GREY[..., None]), GREY)
    np.testing.assert_array_equal(to_grey(np.dstack([GREY, 0 * GREY])), GREY)


def damaged_files(folder):
    Image.fromarray(GREY).save(folder / "whole.png")
    Image.fromarray(GREY).save(folder / "whole.jpg")
    tifffile.imwrite(folder / "whole.tif", RNG.random((9, 8)))
    np.save(folder / "whole.npy", GREY)
    for suffix in (".png", ".jpg", ".tif", ".npy"):
        content = (folder / f"whole{suffix}").read_bytes()
        (folder / f"empty{suffix}").touch()
        (folder / f"cut{suffix}").write_bytes(content[: len(content) * 2 // 3])
        (folder / f"text{suffix}").write_text("not an image at all\n" * 10)
        (folder / f"whole{suffix}").unlink()
    (folder / "header.tif").write_bytes(b"II*\0garbage")
    np.save(folder / "objects.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    np.save(folder / "integers.npy", np.zeros((4, 4), np.int64))
    np.save(folder / "line.npy", np.zeros(4))
    np.save(folder / "void.npy", np.zeros((0, 4)))
    tifffile.imwrite(folder / "pages.tif", np.zeros((3, 9, 8), np.uint8), photometric="minisblack")
    tifffile.imwrite(folder / "floats.tif", np.zeros((3, 9, 8)), photometric="minisblack")
    (folder / "image.gif").write_bytes(b"GIF89a")
    return sorted(folder.iterdir())


def test_damaged_and_unsupported_files_are_refused_in_one_line(tmp_path, capfd):
    files = damaged_files(tmp_path)
    assert len(files) == 20
    for path in [*files, tmp_path / "missing.png", tmp_path]:
        with pytest.raises(ImageFileError) as refusal:
            read_grey(path)
        assert str(refusal.value).startswith(f"cannot read {path}: ")
        assert "\n" not in str(refusal.value)
    assert capfd.readouterr() == ("", "")


def test_files_are_listed_recursively_in_order_without_hidden_ones(tmp_path):
    for name in ("b.PNG", "a.jpg", "c/d.tiff", "c/a.npy", ".hidden.png", ".cache/e.png", "notes.txt", "png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "folder.png").mkdir()
    assert [path.relative_to(tmp_path).as_posix() for path in image_files(tmp_path)] == [
        "a.jpg",
        "b.PNG",
        "c/a.npy",
        "c/d.tiff",
    ]


def test_an_image_prints_as_one_short_line(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((300, 400), np.float32))
    line = repr(read_image(tmp_path / "a.npy"))
    assert "\n" not in line
    assert line.endswith("a.npy', 400×300 pixels, grey, 32-bit floats)")
