"""JPEG: grey or colour, 8 bits; EXIF, colour profile, resolution and comments stay, byte for byte."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError
from heatprior.images.decoding import EXIF, open_image, read_content, read_metadata
from heatprior.images.model import ImageFile, Metadata

QUALITY = 95
SCAN, COMMENT = 0xDA, 0xFE
APPLICATIONS = range(0xE0, 0xF0)
ADOBE = 0xEE  # tells how colours are stored, which the new file may do otherwise
EXPANSION = 1024  # pixels of a byte: each 8×8 block of each scan takes a bit at the least
PROFILE = b"ICC_PROFILE\0"
PICTURES = b"MPF\0"  # an index of further pictures in the file, left behind


def read(path: Path) -> ImageFile:
    """Read a JPEG; the segments of metadata that stay, markers included, are in `native`."""
    content = read_content(path, _size)
    with open_image(content, "JPEG", 3 * EXPANSION) as image:  # the first of several pictures is the picture
        metadata = read_metadata(image.info)
        kept = tuple(_select_segments(content, metadata))
        if image.mode == "CMYK":
            return ImageFile(path, np.array(image.convert("RGB")), True, None, metadata._replace(icc=None))
        if image.mode not in ("L", "RGB"):
            raise ImageFileError(f"its colours are {image.mode}; convert it to RGB")
        return ImageFile(path, np.array(image), image.mode == "RGB", None, metadata, kept)


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> None:
    """Write `pixels` at high quality, without chroma subsampling, with the metadata of `like`."""
    from PIL import Image  # noqa: PLC0415

    metadata = like.metadata._asdict() if like.native is None else {}
    metadata = {{"icc": "icc_profile"}.get(name, name): value for name, value in metadata.items() if value is not None}
    packed = BytesIO()
    Image.fromarray(pixels).save(packed, "JPEG", quality=QUALITY, subsampling=0, **metadata)
    content = packed.getvalue()
    if like.native is not None:
        segments = list(_segments(content))
        scan = 2 + sum(len(segment) for _, segment in segments)
        bare = (segment for marker, segment in segments if marker not in APPLICATIONS)
        content = b"".join([content[:2], *like.native, *bare, content[scan:]])
    path.write_bytes(content)


def _size(content: bytes) -> int:
    """Bytes of the pixels, by the beginning of a file."""
    with open_image(content, "JPEG", 3 * EXPANSION) as image:
        return int(image.width * image.height * len(image.getbands()))


def _select_segments(content: bytes, metadata: Metadata) -> Iterator[bytes]:
    """The segments of metadata that stay: not those of which Pillow could make nothing."""
    for marker, segment in _segments(content):
        data = segment[4:]
        if marker in APPLICATIONS and marker != ADOBE and not data.startswith(PICTURES):
            broken = (data.startswith(EXIF) and metadata.exif is None) or (
                data.startswith(PROFILE) and metadata.icc is None
            )
            if not broken:
                yield segment
        elif marker == COMMENT:
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
