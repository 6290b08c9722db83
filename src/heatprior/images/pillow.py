"""JPEG, WebP and BMP, by Pillow: grey or colour, 8 bits."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from heatprior.errors import ImageFileError
from heatprior.images.decoding import EXIF, EXPANSION, open_image, read_content, read_metadata, valid_dpi
from heatprior.images.model import NO_METADATA, ImageFile, Metadata, split_samples

QUALITY = 95
SCAN, COMMENT = 0xDA, 0xFE
APPLICATIONS = range(0xE0, 0xF0)
ADOBE = 0xEE  # tells how colours are stored, which the new file may do otherwise
BLOCKS = 3 * 1024  # bytes of pixels for a byte of a JPEG: each 8×8 block of each scan takes a bit at the least
PROFILE = b"ICC_PROFILE\0"
PICTURES = b"MPF\0"  # an index of further pictures in the file, left behind
PLAIN = 1 << 20  # bytes of pixels for a byte of a WebP: without loss a plain area takes next to nothing
EFFORT = {"method": 0, "quality": 0}  # of packing without loss: more takes ten times as long for some hundredths


def read_jpeg(path: Path) -> ImageFile:
    """Read a JPEG; the segments of metadata that stay, markers included, are in `native`."""
    content = read_content(path, _size_of_jpeg)
    with open_image(content, "JPEG", BLOCKS) as image:  # the first of several pictures is the picture
        metadata = read_metadata(image.info)
        kept = tuple(_select_segments(content, metadata))
        if image.mode == "CMYK":
            return ImageFile(path, np.array(image.convert("RGB")), True, None, metadata._replace(icc=None))
        if image.mode not in ("L", "RGB"):
            raise ImageFileError(f"its colours are {image.mode}; convert it to RGB")
        return ImageFile(path, np.array(image), image.mode == "RGB", None, metadata, kept)


def write_jpeg(path: Path, pixels: NDArray[Any], like: ImageFile) -> None:
    """Write `pixels` at high quality, without chroma subsampling, with the metadata of `like`."""
    icc, exif, dpi = like.metadata if like.native is None else NO_METADATA
    packed = BytesIO()
    _save(packed, pixels, "JPEG", quality=QUALITY, subsampling=0, icc_profile=icc, exif=exif, dpi=dpi)
    content = packed.getvalue()
    if like.native is not None:
        segments = list(_segments(content))
        scan = 2 + sum(len(segment) for _, segment in segments)
        bare = (segment for marker, segment in segments if marker not in APPLICATIONS)
        content = b"".join([content[:2], *like.native, *bare, content[scan:]])
    path.write_bytes(content)


def _size_of_jpeg(content: bytes) -> int:
    """Bytes of the pixels, by the beginning of a file."""
    with open_image(content, "JPEG", BLOCKS) as image:
        return int(image.width * image.height * len(image.getbands()))


def _select_segments(content: bytes, metadata: Metadata) -> Iterator[bytes]:
    """The segments of metadata that stay: not those of which Pillow could make nothing."""
    for marker, segment in _segments(content):
        data = segment[4:]
        dropped = marker == ADOBE or data.startswith(PICTURES)
        broken = (data.startswith(EXIF) and not metadata.exif) or (data.startswith(PROFILE) and not metadata.icc)
        if marker == COMMENT or (marker in APPLICATIONS and not dropped and not broken):
            yield segment


def _segments(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Marker and bytes, marker included, of each whole segment before the pixels."""
    place = 2
    while place + 4 <= len(content) and content[place] == 0xFF:
        marker = content[place + 1]
        if marker == SCAN:
            return
        if marker == 0xFF:  # padding
            place += 1
            continue
        (length,) = struct.unpack_from(">H", content, place + 2)
        segment = content[place : place + 2 + length]
        if length < 2 or len(segment) < 2 + length:
            return
        yield marker, segment
        place += 2 + length


def read_webp(path: Path) -> ImageFile:
    """Read a WebP file, lossy or not."""
    content = read_content(path, _size_of_webp)
    with open_image(content, "WEBP", PLAIN if b"VP8L" in content else EXPANSION) as image:
        metadata = read_metadata(image.info)
        samples = np.array(image if image.mode in ("RGB", "RGBA") else image.convert("RGB"))
    # WebP has no grey: an image whose three colours agree everywhere is taken for it.
    if (samples[..., 0] == samples[..., 1]).all() and (samples[..., 0] == samples[..., 2]).all():
        pixels, colour, others = split_samples(samples[..., 2:], 1)
    else:
        pixels, colour, others = split_samples(samples, 3)
    return ImageFile(path, pixels, colour, others, metadata)


def _size_of_webp(content: bytes) -> int:
    """Bytes of the pixels, by the first chunk: less one in 24 or 14 bits, or as they are, in 14."""
    name = content[12:16]
    if name == b"VP8X":
        width, height = (1 + int.from_bytes(content[place : place + 3], "little") for place in (24, 27))
    elif name == b"VP8L":
        (bits,) = struct.unpack_from("<I", content, 21)
        width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    else:
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", content, 26))
    return width * height * 4


def write_webp(path: Path, pixels: NDArray[Any], like: ImageFile) -> None:
    """Write `pixels` as they are, bit for bit, also where they are transparent."""
    colours = pixels if like.colour else np.repeat(pixels[..., None], 3, axis=-1)
    samples = colours if like.others is None else np.concatenate([colours, like.others], axis=-1)
    about = {"icc_profile": like.metadata.icc, "exif": like.metadata.exif}
    _save(path, samples, "WEBP", lossless=True, exact=True, **EFFORT, **about)


def read_bmp(path: Path) -> ImageFile:
    """Read a BMP; transparency, which few programs write, is ignored."""
    with open_image(path, "BMP") as image:
        colour = image.mode not in ("1", "L")
        pixels = np.array(image.convert("RGB" if colour else "L"))
        return ImageFile(path, pixels, colour, None, Metadata(dpi=valid_dpi(image.info.get("dpi"))))


def write_bmp(path: Path, pixels: NDArray[Any], like: ImageFile) -> None:
    """Write `pixels`, uncompressed."""
    _save(path, pixels, "BMP", dpi=like.metadata.dpi)


def _save(place: Path | BytesIO, samples: NDArray[Any], kind: str, **about: Any) -> None:
    """Write samples with what is known about them."""
    known = {name: value for name, value in about.items() if value is not None}
    Image.fromarray(np.ascontiguousarray(samples)).save(place, kind, **known)
