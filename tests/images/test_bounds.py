"""What a file may ask for is bounded before it is given: memory, time, and what it makes libraries say."""

from __future__ import annotations

import logging
import os
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image
from round_trip import noise, refuse_when_padded, save_png

from heatprior.errors import ImageFileError
from heatprior.images import decoding, read_grey, read_image, tiff, write_image
from heatprior.images.decoding import silence_decoders

SMALL = 40 << 20


def refused(path: Path, why: str) -> None:
    for read in (read_image, read_grey):
        tracemalloc.start()
        try:
            with pytest.raises(ImageFileError, match=why) as refusal:
                read(path)
            assert tracemalloc.get_traced_memory()[1] < SMALL
        finally:
            tracemalloc.stop()
        assert "\n" not in str(refusal.value)


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices of POSIX")
def test_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "device.tif").symlink_to("/dev/zero")
    for name in ("pipe.png", "device.tif"):
        refused(tmp_path / name, "may never end; give a file")


def overwrite(path: Path, **tags: object) -> None:
    with tifffile.TiffFile(path, mode="r+") as file:
        for name, value in tags.items():
            file.pages.first.tags[name].overwrite(value)


def test_a_small_tiff_that_declares_gigabytes_is_refused(tmp_path: Path):
    path = tmp_path / "image.tif"
    for options in ({}, {"compression": "deflate"}, {"tile": (16, 16)}):
        tifffile.imwrite(path, noise((40, 50), "uint8"), **options)
        overwrite(path, ImageWidth=60_000, ImageLength=60_000)
        refused(path, "declares|damaged")


def test_huge_tiles_of_a_small_image_are_refused(tmp_path: Path):
    path = tmp_path / "image.tif"
    tifffile.imwrite(path, noise((40, 50), "uint8"), tile=(16, 16), compression="deflate")
    overwrite(path, TileWidth=64_000, TileLength=64_000)
    refused(path, "declares|damaged")
    tifffile.imwrite(path, noise((16, 20, 3), "uint8"), tile=(16, 16), compression="deflate", predictor=True)
    overwrite(path, TileLength=33_554_448)  # 1.6 GB, more than a file of a kilobyte can hold
    refused(path, "declares")


def test_strips_that_unfold_to_far_more_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tiff, "HARMLESS", 1 << 20)
    path = tmp_path / "image.tif"
    tifffile.imwrite(path, noise((40, 50), "uint8"), compression="deflate")
    bomb = zlib.compress(bytes(80 << 20), 1)
    with path.open("ab") as file:
        place = file.tell()
        file.write(bomb)
    overwrite(path, StripOffsets=place, StripByteCounts=len(bomb))
    refused(path, "more than it declares")


@pytest.mark.parametrize("length", [1, 2, 3])
def test_directories_in_a_circle_are_refused(tmp_path: Path, length: int):
    path = tmp_path / "image.tif"
    tifffile.imwrite(path, noise((3, 9, 8), "uint8"), photometric="minisblack", metadata=None, byteorder="<")
    with tifffile.TiffFile(path) as file:
        places = [page.offset for page in file.pages]
    content = bytearray(path.read_bytes())
    (count,) = struct.unpack_from("<H", content, places[length - 1])
    struct.pack_into("<I", content, places[length - 1] + 2 + 12 * count, places[0])
    path.write_bytes(content)
    refused(path, "lead back")


def test_a_png_of_few_bytes_and_many_pixels_is_refused(tmp_path: Path):
    path = tmp_path / "image.png"
    save_png(path, noise((9, 8, 3), "uint8"))
    content = bytearray(path.read_bytes())
    struct.pack_into(">II", content, 16, 60_000, 60_000)
    struct.pack_into(">I", content, 29, zlib.crc32(content[12:29]))
    path.write_bytes(content)
    refused(path, "declares")


def test_a_lossy_webp_of_few_bytes_and_many_pixels_is_refused_and_a_plain_one_is_read(tmp_path: Path):
    path = tmp_path / "image.webp"
    Image.fromarray(noise((16, 20, 3), "uint8")).save(path, quality=5)
    content = path.read_bytes()
    size = content.index(b"\x9d\x01\x2a") + 3  # width and height follow the start code of a frame
    path.write_bytes(
        content[:size] + (16255).to_bytes(2, "little") + (7881).to_bytes(2, "little") + content[size + 4 :]
    )
    refused(path, "declares")
    for lossless in (True, False):
        Image.new("RGB", (3000, 2000), (7, 99, 3)).save(path, lossless=lossless, quality=0)
        assert read_image(path).pixels.shape[:2] == (2000, 3000)


def test_an_array_longer_than_its_file_is_refused(tmp_path: Path):
    path = tmp_path / "image.npy"
    np.save(path, noise((9, 8), "uint8"))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"(9, 8), }          ", b"(99999, 99999), }  "))
    assert path.read_bytes() != content
    refused(path, "declares")


def test_an_image_beyond_memory_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    np.save(tmp_path / "image.npy", np.zeros((2000, 2000), np.uint8))
    read_image(tmp_path / "image.npy")
    monkeypatch.setattr(decoding, "available_memory", lambda: 10_000_000)
    with pytest.raises(ImageFileError, match="need 12 MB of memory but 10 MB are free; cut it into parts"):
        read_image(tmp_path / "image.npy")


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp", "webp"])
def test_what_pillow_takes_for_too_large_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str):
    path = tmp_path / f"image.{suffix}"
    Image.fromarray(noise((40, 50), "uint8")).save(path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)  # instead of 89 million: half of what it refuses
    with pytest.raises(Image.DecompressionBombError):
        Image.open(path)
    assert read_image(path).pixels.shape[:2] == (40, 50)
    assert Image.MAX_IMAGE_PIXELS == 500


def test_libtiff_says_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    path = tmp_path / "image.tif"
    Image.fromarray(noise((40, 50), "uint8")).save(path, compression="tiff_lzw")
    content = bytearray(path.read_bytes())
    for place in range(30, 200):
        content[place] ^= 0x5A
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"decoder error|-2"), Image.open(path) as picture:
        picture.load()
    assert capfd.readouterr().err != ""  # Pillow by itself lets it speak
    with pytest.raises(ImageFileError):
        read_image(path)
    assert capfd.readouterr() == ("", "")


def test_pages_that_share_their_pixels_come_back_right(tmp_path: Path):
    """Two directories, one strip: written in place, the second page would overwrite the first."""
    path = tmp_path / "image.tif"
    stack = noise((2, 9, 8), "uint8")
    tifffile.imwrite(path, stack, photometric="minisblack", metadata=None, description="x" * 99)
    with tifffile.TiffFile(path, mode="r+") as file:
        place = file.pages[0].tags["StripOffsets"].value
        file.pages[1].tags["StripOffsets"].overwrite(place)
    image = read_image(path)
    np.testing.assert_array_equal(image.pixels, stack[[0, 0]])
    different = noise((2, 9, 8), "uint8")
    write_image(tmp_path / "new.tif", different, like=image)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "new.tif"), different)


@pytest.mark.parametrize("name", ["tifffile", "PIL", "PIL.TiffImagePlugin", "pydicom"])
def test_loggers_of_decoders_say_nothing(capfd: pytest.CaptureFixture[str], name: str):
    """A TIFF of 127 samples per pixel once made a logger below PIL's speak."""
    with silence_decoders():
        logging.getLogger(name).error("More samples per pixel than can be decoded")
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger(name).propagate


@pytest.mark.parametrize("empty", [True, False])
def test_directories_that_overlap_or_are_empty_end_too(tmp_path: Path, empty: bool):
    """A directory without tags may lead back as well; and one in the middle of another may go on for long."""
    path = tmp_path / "image.tif"
    tifffile.imwrite(path, noise((9, 8), "uint8"), metadata=None, byteorder="<")
    content = bytearray(path.read_bytes())
    (place,) = struct.unpack_from("<I", content, 4)
    (count,) = struct.unpack_from("<H", content, place)
    end = len(content)
    content += struct.pack("<HI", 0, place) if empty else struct.pack("<HI", 4000, 0) + bytes(100)
    struct.pack_into("<I", content, place + 2 + 12 * count, end)
    path.write_bytes(content)
    refused(path, "lead back" if empty else "lie upon")


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "lossless.webp"])
def test_a_small_picture_in_a_huge_file_is_refused_before_it_is_read(tmp_path: Path, suffix: str):
    path = tmp_path / f"image.{suffix}"
    Image.fromarray(noise((64, 48, 3), "uint8")).save(path, **({"lossless": True} if "less" in suffix else {}))
    refuse_when_padded(path)


def test_a_huge_png_that_does_not_begin_with_its_header_is_refused_before_it_is_read(tmp_path: Path):
    """What stands there instead would be taken for a width and a height."""
    path = tmp_path / "image.png"
    save_png(path, noise((40, 50, 3), "uint8"))
    content = path.read_bytes()
    for start in (content[:8], content[:8] + b"\0\0\0\5IHDR\1\1\1\1\1" + bytes(4)):
        path.write_bytes(start + content[33:])
        os.truncate(path, 1 << 30)
        tracemalloc.start()
        try:
            with pytest.raises(ImageFileError, match="its header is damaged"):
                read_image(path)
            assert tracemalloc.get_traced_memory()[1] < 3 * decoding.ROOM
        finally:
            tracemalloc.stop()


def test_a_huge_png_that_declares_far_more_pixels_than_it_can_hold_is_refused_before_it_is_read(tmp_path: Path):
    path = tmp_path / "image.png"
    save_png(path, noise((40, 50, 3), "uint8"))
    content = bytearray(path.read_bytes())
    struct.pack_into(">II", content, 16, 2**24, 2**24)
    path.write_bytes(content)
    os.truncate(path, 1 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(ImageFileError, match=r"it declares .* but is a file of 107. MB"):
            read_image(path)
        assert tracemalloc.get_traced_memory()[1] < 3 * decoding.ROOM
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("mode", ["L", "P"])
def test_a_strip_far_longer_than_its_pixels_is_refused_before_it_is_read(tmp_path: Path, mode: str):
    path = tmp_path / "image.tif"
    Image.fromarray(noise((40, 50), "uint8")).convert(mode).save(path, compression="tiff_lzw")
    overwrite(path, StripByteCounts=900 << 20)
    with path.open("r+b") as file:
        file.truncate(1 << 30)  # sparse
    refused(path, "save the image alone")
