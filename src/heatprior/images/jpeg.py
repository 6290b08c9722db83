"""JPEG: grey or colour, 8 bits; EXIF, colour profile, resolution and comments stay, byte for byte."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError
from heatprior.images.model import Carried, ImageFile

QUALITY = 95
SIGNATURE = b"\xff\xd8"
SCAN, COMMENT = 0xDA, 0xFE
APPLICATIONS = range(0xE0, 0xF0)
ADOBE = 0xEE  # tells how colours are stored, which the new file may do otherwise
SEVERAL_PICTURES = b"MPF\0"  # an index of further pictures in the same file, which do not come along


class Segments(NamedTuple):
    """The segments of metadata that stay, markers included."""

    kept: tuple[bytes, ...]


def read(path: Path) -> ImageFile:
    """The image, its segments of metadata in `native`."""
    from PIL import Image  # noqa: PLC0415 (slow to import)

    content = path.read_bytes()
    if not content.startswith(SIGNATURE):
        raise ImageFileError("it is no JPEG, whatever its name says; get a fresh copy")
    with Image.open(BytesIO(content), formats=["JPEG"]) as image:  # the first of several pictures is the picture
        if image.mode not in ("L", "RGB"):
            raise ImageFileError(f"its colours are {image.mode}; convert it to RGB")
        pixels = np.array(image)
        carried = Carried(image.info.get("icc_profile"), image.info.get("exif"), image.info.get("dpi"))
        return ImageFile(path, pixels, image.mode == "RGB", None, carried, Segments(tuple(_kept(content))))


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> None:
    """Write `pixels` at high quality, colour as fine as brightness, with what `like` carries."""
    from PIL import Image  # noqa: PLC0415

    carried = {} if isinstance(like.native, Segments) else like.carried._asdict()
    carried = {{"icc": "icc_profile"}.get(name, name): value for name, value in carried.items() if value is not None}
    packed = BytesIO()
    Image.fromarray(pixels).save(packed, "JPEG", quality=QUALITY, subsampling=0, **carried)
    content = packed.getvalue()
    if isinstance(like.native, Segments):
        segments = list(_segments(content))
        scan = 2 + sum(len(segment) for _, segment in segments)
        bare = (segment for marker, segment in segments if marker not in APPLICATIONS)
        content = b"".join([content[:2], *like.native.kept, *bare, content[scan:]])
    path.write_bytes(content)


def _kept(content: bytes) -> Iterator[bytes]:
    for marker, segment in _segments(content):
        if (marker in APPLICATIONS and marker != ADOBE and segment[4:8] != SEVERAL_PICTURES) or marker == COMMENT:
            yield segment


def _segments(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Marker and bytes, marker included, of each segment before the pixels."""
    place = 2
    while place + 4 <= len(content) and content[place] == 0xFF:
        marker = content[place + 1]
        if marker == SCAN:
            return
        if marker == 0xFF:  # padding
            place += 1
            continue
        (length,) = struct.unpack_from(">H", content, place + 2)
        yield marker, content[place : place + 2 + length]
        place += 2 + length
