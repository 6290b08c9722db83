"""From one format to another; what is refused; and what remains when a write fails."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image
from round_trip import DTYPES, PROFILE, assert_upside_down, noise, rewritten, save_png

from heatprior import HeatpriorError, InvalidInputError, OutputFileError
from heatprior.errors import ImageFileError
from heatprior.images import image_files, read_image, write_image


@pytest.mark.parametrize(("source", "target"), list(product(["png", "jpg", "tif"], ["png", "jpg", "tif", "npy"])))
def test_profile_and_resolution_go_into_other_formats(tmp_path: Path, source: str, target: str):
    path, new = tmp_path / f"image.{source}", tmp_path / f"new.{target}"
    Image.fromarray(noise((9, 8, 3), "uint8")).save(path, icc_profile=PROFILE, dpi=(300, 300))
    image, _ = rewritten(path, new)
    again = read_image(new)
    if target != "jpg":
        assert_upside_down(new, image)
    if target != "npy":
        assert again.metadata.icc == PROFILE
        assert again.metadata.dpi == pytest.approx((300, 300), abs=0.01)  # PNG counts whole dots per metre


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(9, 8), (9, 8, 3), (9, 8, 4), (5, 9, 8)])
def test_arrays_become_tiffs_and_come_back(tmp_path: Path, dtype: str, shape: tuple[int, ...]):
    np.save(tmp_path / "image.npy", noise(shape, dtype))
    image, new = rewritten(tmp_path / "image.npy", tmp_path / "image.tif")
    assert_upside_down(new, image)
    rewritten(new, tmp_path / "again.npy")
    if image.others is None:
        np.testing.assert_array_equal(np.load(tmp_path / "again.npy"), np.load(tmp_path / "image.npy"))


@pytest.mark.parametrize(
    ("shape", "dtype", "name", "remedy"),
    [
        ((9, 8), "float32", "new.png", "PNG cannot hold float32; choose .tif or .npy"),
        ((9, 8), "uint16", "new.jpg", "JPEG cannot hold uint16; choose .png, .tif or .npy"),
        ((5, 9, 8), "uint8", "new.png", "PNG holds one image, not a stack; choose .tif or .npy"),
        ((5, 9, 8), "uint8", "new.jpeg", "not a stack"),
        ((9, 8, 4), "uint8", "new.jpg", "cannot hold its transparency; choose .png, .tif, .npy or .webp"),
        ((9, 8), "uint8", "new.gif", "ends in .png"),
    ],
)
def test_a_format_that_cannot_hold_the_image_is_refused(
    tmp_path: Path, shape: tuple[int, ...], dtype: str, name: str, remedy: str
):
    np.save(tmp_path / "image.npy", noise(shape, dtype))
    with pytest.raises(OutputFileError, match=remedy):
        rewritten(tmp_path / "image.npy", tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["image.npy"]


def test_other_pixels_than_were_read_are_refused(tmp_path: Path):
    np.save(tmp_path / "image.npy", noise((9, 8), "uint8"))
    image = read_image(tmp_path / "image.npy")
    for pixels in (image.pixels[:5], image.pixels.astype(float)):
        with pytest.raises(InvalidInputError, match="expected uint8"):
            write_image(tmp_path / "new.npy", pixels, like=image)


def test_a_tiff_that_changed_or_went_meanwhile_is_refused(tmp_path: Path):
    path = tmp_path / "image.tif"
    tifffile.imwrite(path, noise((9, 8), "uint8"))
    image = read_image(path)
    tifffile.imwrite(path, noise((19, 8), "uint8"))
    for problem in ("has changed", "is gone"):
        with pytest.raises(OutputFileError, match=problem):
            write_image(tmp_path / "new.tif", image.pixels, like=image)
        path.unlink(missing_ok=True)
    assert list(tmp_path.iterdir()) == []


def test_images_that_would_lose_something_are_refused_in_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    grey = noise((9, 8), "uint8")
    pictures = [Image.fromarray(grey), Image.fromarray(grey[::-1])]
    pictures[0].save(tmp_path / "animated.png", save_all=True, append_images=pictures[1:])
    save_png(tmp_path / "keyed.png", noise((9, 8, 3), "uint16"), [(b"tRNS", bytes(6))])
    tifffile.imwrite(tmp_path / "integers.tif", grey.astype(np.int64))
    tifffile.imwrite(tmp_path / "packed.tif", grey.astype(np.uint16))
    with tifffile.TiffFile(tmp_path / "packed.tif", mode="r+") as file:
        file.pages[0].tags["BitsPerSample"].overwrite(12)
    with tifffile.TiffWriter(tmp_path / "several.tif") as writer:
        writer.write(grey)
        writer.write(grey[:5])
    with tifffile.TiffWriter(tmp_path / "pyramid.tif") as writer:
        writer.write(noise((64, 64), "uint8"), subifds=1, tile=(16, 16))
        writer.write(noise((32, 32), "uint8"), subfiletype=1, tile=(16, 16))
    np.save(tmp_path / "integers.npy", grey.astype(np.int64))
    np.save(tmp_path / "line.npy", grey[0])
    np.save(tmp_path / "objects.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    save_png(tmp_path / "cut.png", noise((9, 8, 3), "uint16"))
    whole = (tmp_path / "cut.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.tif").touch()
    (tmp_path / "text.jpg").write_text("not an image\n" * 9)
    (tmp_path / "text.png").write_text("not an image\n" * 9)
    (tmp_path / "text.tif").write_text("not an image\n" * 9)
    (tmp_path / "image.gif").write_bytes(b"GIF89a")
    files = sorted(tmp_path.iterdir())
    assert len(files) == 15
    for path in [*files, tmp_path / "missing.png", tmp_path]:
        with pytest.raises(ImageFileError) as refusal:
            read_image(path)
        assert str(refusal.value).startswith(f"cannot read {path}: ")
        assert "\n" not in str(refusal.value)
        assert " at 0x" not in str(refusal.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("suffix", ["png", "jpg", "tif", "npy"])
def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str):
    np.save(tmp_path / "image.npy", noise((9, 8), "uint8"))
    image, path = rewritten(tmp_path / "image.npy", tmp_path / f"image.{suffix}")
    image = read_image(path)
    before = sorted(tmp_path.iterdir())

    def fill(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for writer in (
        "heatprior.images.png._put",
        "pathlib.Path.write_bytes",
        "shutil.copyfile",
        "numpy.lib.format.write_array_header_1_0",
    ):
        monkeypatch.setattr(writer, fill)
    with pytest.raises(OutputFileError, match="No space left on device; choose another place"):
        write_image(tmp_path / f"new.{suffix}", image.pixels, like=image)
    assert sorted(tmp_path.iterdir()) == before


def test_a_pixel_that_changes_is_noticed(tmp_path: Path):
    """The check of the round trips is one that can fail."""
    np.save(tmp_path / "image.npy", noise((9, 8), "uint8"))
    image, new = rewritten(tmp_path / "image.npy", tmp_path / "new.tif")
    array = tifffile.imread(new)
    array[3, 4] ^= 1
    tifffile.imwrite(new, array)
    with pytest.raises(AssertionError):
        assert_upside_down(new, image)


def test_a_stack_is_described(tmp_path: Path):
    np.save(tmp_path / "image.npy", noise((2, 5, 9, 8), "uint8"))
    assert read_image(tmp_path / "image.npy").describe() == "2×5 images of 8×9 pixels, grey, 8 bits"
    assert image_files(tmp_path) == [tmp_path / "image.npy"]
    assert issubclass(ImageFileError, HeatpriorError)
