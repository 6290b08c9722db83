"""PNG files: every bit and every chunk that still holds."""

from __future__ import annotations

import struct
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from round_trip import PROFILE, assert_upside_down, noise, rewritten, save_png

from heatprior.images import read_image


@pytest.mark.parametrize(("dtype", "count"), list(product(["uint8", "uint16"], [1, 2, 3, 4])))
def test_png_of_every_depth_and_kind(tmp_path: Path, dtype: str, count: int):
    samples = noise((300, 5, count), dtype)  # more rows than are filtered at a time
    save_png(tmp_path / "image.png", samples)
    image, new = rewritten(tmp_path / "image.png")
    assert image.pixels.dtype == dtype
    assert image.colour == (count >= 3)
    np.testing.assert_array_equal(image.samples(image.pixels).reshape(samples.shape), samples)
    assert_upside_down(new, image)
    if dtype == "uint8":  # what others make of the written file
        with Image.open(new) as theirs:
            assert theirs.mode == {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[count]
            np.testing.assert_array_equal(np.asarray(theirs).reshape(samples.shape)[..., 0], samples[::-1, ..., 0])


def test_png_keeps_profile_resolution_texts_exif_and_gamma(tmp_path: Path):
    about = PngInfo()
    about.add_text("Title", "Nebula")
    about.add_text("Comment", "x" * 2000, zip=True)
    about.add_itxt("Author", "Zoë", "en", "Author")
    about.add(b"gAMA", struct.pack(">I", 45455))
    about.add(b"cHRM", struct.pack(">8I", *range(31000, 31008)))
    exif = Image.Exif()
    exif[0x0112] = 6
    path = tmp_path / "image.png"
    Image.fromarray(noise((9, 8, 3), "uint8")).save(path, pnginfo=about, icc_profile=PROFILE, dpi=(300, 150), exif=exif)
    image, new = rewritten(path)
    assert_upside_down(new, image)
    with Image.open(path) as before, Image.open(new) as after:
        before.load(), after.load()
        assert after.text == before.text
        assert set(after.text) == {"Title", "Comment", "Author"}
        assert {"icc_profile", "dpi", "gamma", "chromaticity", "exif"} <= set(after.info)
        assert after.info == before.info
        assert after.getexif()[0x0112] == 6


def test_palettes_and_see_through_colours_become_channels(tmp_path: Path):
    picture = Image.fromarray(noise((9, 8, 3), "uint8")).quantize(7)
    picture.save(tmp_path / "palette.png")
    image, new = rewritten(tmp_path / "palette.png")
    np.testing.assert_array_equal(image.pixels, np.asarray(picture.convert("RGB")))
    assert_upside_down(new, image)
    picture.save(tmp_path / "clear.png", transparency=2)
    clear = read_image(tmp_path / "clear.png")
    assert clear.others is not None
    np.testing.assert_array_equal(clear.others[..., 0] == 0, np.asarray(picture) == 2)
    grey = Image.fromarray(np.arange(72, dtype=np.uint8).reshape(9, 8))
    grey.save(tmp_path / "grey.png", transparency=5)
    keyed = read_image(tmp_path / "grey.png")
    assert keyed.others is not None
    np.testing.assert_array_equal(keyed.others[..., 0] == 0, np.asarray(grey) == 5)
    np.testing.assert_array_equal(keyed.pixels, np.asarray(grey))
