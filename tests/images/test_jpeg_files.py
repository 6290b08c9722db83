"""JPEG files: nearly every bit, and every word about them."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from round_trip import PROFILE, noise, rewritten

from heatprior.images import read_image


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_jpeg_keeps_exif_profile_resolution_and_comment(tmp_path: Path, mode: str):
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "Maker"
    path = tmp_path / "image.jpg"
    smooth = np.add.outer(np.arange(40), np.arange(56)).astype(np.uint8)
    picture = Image.fromarray(smooth).convert(mode)
    profile = (
        PROFILE if mode == "RGB" else struct.pack(">I", 90_000) + PROFILE[4:128] + bytes(90_000 - 128)
    )  # in two segments
    picture.save(path, exif=exif, icc_profile=profile, dpi=(300, 300), comment=b"said", quality=90)
    image, new = rewritten(path)
    with Image.open(path) as before, Image.open(new) as after:
        assert after.mode == mode
        assert {"exif", "icc_profile", "dpi", "comment"} <= set(after.info)
        assert after.info == before.info
        assert after.getexif()[0x0112] == 6
        assert {layer[1:3] for layer in after.layer} == {(1, 1)}  # no channel is coarser
        assert after.size == before.size  # the orientation was not applied
    difference = np.flip(image.pixels, 0).astype(int) - read_image(new).pixels
    assert np.abs(difference).mean() < 1.0  # JPEG is not lossless; at this quality about half a grey level


def test_jpeg_without_any_metadata_is_readable_by_others(tmp_path: Path):
    Image.fromarray(noise((9, 8, 3), "uint8")).save(tmp_path / "image.jpg")
    content = (tmp_path / "image.jpg").read_bytes()
    (tmp_path / "bare.jpg").write_bytes(content[:2] + content[20:])  # without JFIF
    _, new = rewritten(tmp_path / "bare.jpg")
    with Image.open(new) as theirs:
        assert theirs.mode == "RGB"
        theirs.load()


def test_of_several_pictures_in_a_jpeg_the_first_is_the_picture(tmp_path: Path):
    """As phones and stereo cameras write them (MPO): the others are previews, depths, the other eye."""
    smooth = np.add.outer(np.arange(40), np.arange(56)).astype(np.uint8)
    pictures = [Image.fromarray(values) for values in (smooth, 255 - smooth)]
    pictures[0].save(tmp_path / "image.jpg", "MPO", save_all=True, append_images=pictures[1:], quality=95)
    with Image.open(tmp_path / "image.jpg") as image:
        assert image.n_frames == 2  # so it is one of those
    image, new = rewritten(tmp_path / "image.jpg")
    assert np.abs(image.pixels.astype(int) - smooth).max() <= 3
    with Image.open(new) as written:
        assert (written.format, getattr(written, "n_frames", 1)) == ("JPEG", 1)
