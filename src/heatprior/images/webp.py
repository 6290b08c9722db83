"""WebP: colour or grey, 8 bits, with or without transparency, written without loss; profile and EXIF stay.

WebP has no grey: an image whose three colours agree everywhere is read as grey.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.images.decoding import EXPANSION, open_image, read_content, read_metadata
from heatprior.images.model import ImageFile, split_samples

PLAIN = 1 << 20  # bytes of pixels for a byte of the file: without loss a plain area takes next to nothing
EFFORT = {"method": 0, "quality": 0}  # of packing without loss: more takes ten times as long for some hundredths


def read(path: Path) -> ImageFile:
    """Read a WebP file, lossy or not."""
    content = read_content(path, _size)
    with open_image(content, "WEBP", PLAIN if b"VP8L" in content else EXPANSION) as image:
        metadata = read_metadata(image.info)
        samples = np.array(image if image.mode in ("RGB", "RGBA") else image.convert("RGB"))
    if (samples[..., 0] == samples[..., 1]).all() and (samples[..., 0] == samples[..., 2]).all():
        pixels, colour, others = split_samples(samples[..., 2:], 1)
    else:
        pixels, colour, others = split_samples(samples, 3)
    return ImageFile(path, pixels, colour, others, metadata)


def _size(content: bytes) -> int:
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


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> None:
    """Write `pixels` as they are, bit for bit, also where they are transparent."""
    from PIL import Image  # noqa: PLC0415 (slow to import)

    about = {"icc_profile": like.metadata.icc, "exif": like.metadata.exif}
    colours = pixels if like.colour else np.repeat(pixels[..., None], 3, axis=-1)
    samples = colours if like.others is None else np.concatenate([colours, like.others], axis=-1)
    image = Image.fromarray(np.ascontiguousarray(samples))
    with path.open("wb") as file:
        image.save(
            file, "WEBP", lossless=True, exact=True, **EFFORT, **{name: data for name, data in about.items() if data}
        )
