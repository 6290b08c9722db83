"""Files of images, written and read again: the same but for the rows, which are turned upside down."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import ImageCms

from heatprior.errors import ImageFileError
from heatprior.images import ImageFile, read_image, write_image
from heatprior.images.decoding import ROOM
from heatprior.images.png import COLOUR_TYPES

RNG = np.random.default_rng(0)
DTYPES = ["uint8", "uint16", "uint32", "int16", "int32", "float16", "float32", "float64"]
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def noise(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if np.dtype(dtype).kind == "f":
        return RNG.random(shape).astype(dtype)
    return RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def rewritten(path: Path, target: Path | None = None) -> tuple[ImageFile, Path]:
    """The image, and a file that holds other pixels like it."""
    image = read_image(path)
    target = target or path.with_name(f"new{path.suffix}")
    write_image(target, image.pixels[..., ::-1, :] if not image.colour else image.pixels[..., ::-1, :, :], like=image)
    return image, target


def assert_upside_down(path: Path, image: ImageFile) -> None:
    """`path` holds the pixels of `image` upside down, and its other samples as they were."""
    new = read_image(path)
    rows = image.pixels.ndim - (3 if image.colour else 2)
    np.testing.assert_array_equal(new.pixels, np.flip(image.pixels, rows))
    assert (new.pixels.dtype, new.colour) == (image.pixels.dtype, image.colour)
    assert (new.others is None) == (image.others is None)
    if image.others is not None:
        np.testing.assert_array_equal(new.others, image.others)


def refuse_when_padded(path: Path) -> None:
    """Refused in little memory once it is 3 GB long, which takes no room on the disk; read as it is."""
    read_image(path)
    with path.open("r+b") as file:
        file.truncate(3 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(ImageFileError, match=r"a file of 3221 MB but its .* ha(s|ve) .*; save the image alone"):
            read_image(path)
        assert tracemalloc.get_traced_memory()[1] < 3 * ROOM
    finally:
        tracemalloc.stop()


def save_png(path: Path, samples: np.ndarray, chunks: list[tuple[bytes, bytes]] | None = None) -> None:
    """A PNG of any depth and kind, rows not filtered: independent of the writer of the package."""
    height, width, count = samples.shape
    header = struct.pack(">IIBBBBB", width, height, 8 * samples.itemsize, COLOUR_TYPES[count], 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in samples.astype(samples.dtype.newbyteorder(">")))
    parts = [(b"IHDR", header), *(chunks or []), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    packed = (struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(packed))
