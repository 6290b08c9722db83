"""BMP and WebP, and what Pillow unfolds of other formats: palettes, few bits, inks; and how a picture is turned."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image
from round_trip import PROFILE, assert_upside_down, noise, rewritten, save_png

from heatprior.errors import ImageFileError
from heatprior.images import read_grey, read_image, write_image

ORIENTATION = 0x0112


@pytest.mark.parametrize("suffix", ["bmp", "webp"])
@pytest.mark.parametrize("mode", ["L", "RGB", "P", "1"])
def test_eight_bits_come_and_go(tmp_path: Path, suffix: str, mode: str):
    path = tmp_path / f"image.{suffix}"
    picture = Image.fromarray(noise((13, 11, 3), "uint8")).convert(mode)
    picture.save(path, **({"lossless": True} if suffix == "webp" else {}))
    image, new = rewritten(path)
    grey = mode in ("L", "1")
    np.testing.assert_array_equal(image.pixels, np.asarray(picture.convert("L" if grey else "RGB")))
    assert image.colour != grey
    assert_upside_down(new, image)
    with Image.open(new) as theirs:
        np.testing.assert_array_equal(np.asarray(theirs.convert("RGB")), np.asarray(picture.convert("RGB"))[::-1])
    np.testing.assert_array_equal(read_grey(path), np.asarray(picture.convert("L")))


def test_webp_keeps_transparency_profile_and_exif(tmp_path: Path):
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    path = tmp_path / "image.webp"
    samples = noise((13, 11, 4), "uint8")
    samples[:3, :, 3] = 0  # colours under transparent places are there too
    Image.fromarray(samples).save(path, lossless=True, exact=True, icc_profile=PROFILE, exif=exif)
    image, new = rewritten(path)
    assert image.others is not None
    np.testing.assert_array_equal(image.samples(image.pixels), samples)
    assert_upside_down(new, image)
    with Image.open(new) as theirs:
        assert theirs.info["icc_profile"] == PROFILE
        assert theirs.getexif()[ORIENTATION] == 6


def test_bmp_keeps_its_resolution(tmp_path: Path):
    Image.fromarray(noise((13, 11), "uint8")).save(tmp_path / "image.bmp", dpi=(300, 150))
    _, new = rewritten(tmp_path / "image.bmp")
    assert read_image(new).metadata.dpi == pytest.approx((300, 150), abs=0.02)  # whole dots per metre


@pytest.mark.parametrize(("mode", "compression"), list(product(["P", "1", "CMYK"], [None, "tiff_lzw", "packbits"])))
def test_palettes_few_bits_and_inks_of_tiffs_become_colours_and_greys(
    tmp_path: Path, mode: str, compression: str | None
):
    picture = Image.fromarray(noise((13, 11, 3), "uint8")).convert(mode)
    path = tmp_path / "image.tif"
    picture.save(path, compression=compression, dpi=(300, 300))
    image, new = rewritten(path)
    np.testing.assert_array_equal(image.pixels, np.asarray(picture.convert("L" if mode == "1" else "RGB")))
    assert_upside_down(new, image)
    assert read_image(new).metadata.dpi == (300, 300)
    np.testing.assert_array_equal(read_grey(path), np.asarray(picture.convert("L")))


def test_inks_of_a_jpeg_become_colours_without_their_profile(tmp_path: Path):
    picture = Image.fromarray(noise((40, 50, 3), "uint8")).convert("CMYK")
    picture.save(tmp_path / "image.jpg", icc_profile=PROFILE, quality=95)
    image, new = rewritten(tmp_path / "image.jpg")
    assert image.colour
    assert image.metadata.icc is None
    with Image.open(tmp_path / "image.jpg") as before, Image.open(new) as after:
        np.testing.assert_array_equal(image.pixels, np.asarray(before.convert("RGB")))
        assert after.mode == "RGB"
        assert "icc_profile" not in after.info


def test_white_zero_is_turned_into_brightness_and_back(tmp_path: Path):
    for dtype in ("uint8", "uint16"):
        path, stored = tmp_path / f"{dtype}.tif", noise((9, 8), dtype)
        tifffile.imwrite(path, stored, photometric="miniswhite")
        image = read_image(path)
        np.testing.assert_array_equal(image.pixels, np.iinfo(dtype).max - stored)
        write_image(tmp_path / "new.tif", image.pixels, like=image)
        np.testing.assert_array_equal(tifffile.imread(tmp_path / "new.tif"), stored)


def turned(path: Path) -> int:
    with Image.open(path) as picture:
        return picture.getexif().get(ORIENTATION, 1)


@pytest.mark.parametrize(
    ("source", "target"), list(product(["jpg", "png", "tif", "webp"], ["jpg", "png", "tif", "webp"]))
)
def test_a_picture_stays_turned_in_another_format(tmp_path: Path, source: str, target: str):
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    path, new = tmp_path / f"image.{source}", tmp_path / f"new.{target}"
    Image.fromarray(noise((40, 50, 3), "uint8")).save(path, exif=exif)
    assert turned(path) == 6
    image, _ = rewritten(path, new)
    assert turned(new) == 6
    assert read_image(new).pixels.shape == image.pixels.shape  # as a tag; the pixels are not turned


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        (b"eXIf", b"II*\0\xff\xff\xff\xff"),
        (b"iCCP", b"name\0\0no deflate"),
        (b"pHYs", b"\0\0"),
        (b"zTXt", b"key\0\0no"),
    ],
)
def test_broken_chunks_of_a_png_are_left_behind(tmp_path: Path, name: bytes, broken: bytes):
    samples = noise((9, 8, 3), "uint8")
    save_png(tmp_path / "image.png", samples, [(name, broken), (b"tEXt", b"Title\0kept")])
    try:
        with Image.open(tmp_path / "image.png") as picture:
            picture.load()
    except Exception:  # some releases of Pillow do not read it at all
        with pytest.raises(ImageFileError):
            read_image(tmp_path / "image.png")
        return
    _, new = rewritten(tmp_path / "image.png")
    content = new.read_bytes()
    assert name not in content
    assert b"Title\0kept" in content


def test_broken_segments_of_a_jpeg_are_left_behind(tmp_path: Path):
    path = tmp_path / "image.jpg"
    Image.fromarray(noise((9, 8, 3), "uint8")).save(
        path, exif=b"Exif\0\0garbage", icc_profile=b"no profile", comment=b"kept"
    )
    _, new = rewritten(path)
    content = new.read_bytes()
    assert b"garbage" in path.read_bytes()
    assert b"garbage" not in content
    assert b"no profile" not in content
    assert b"kept" in content


def test_a_file_under_the_name_of_another_format_is_told_what_it_is(tmp_path: Path):
    Image.fromarray(noise((9, 8), "uint8")).save(tmp_path / "image.png")
    (tmp_path / "image.png").rename(tmp_path / "image.tif")
    with pytest.raises(ImageFileError, match="it is not TIFF, but PNG; rename it"):
        read_image(tmp_path / "image.tif")
