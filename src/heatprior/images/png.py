"""PNG, 8 and 16 bits, grey or colour, with or without transparency; colour space, resolution and texts stay.

Pillow decodes, but keeps only 8 of 16 bits of a colour, and writes only some of the chunks: so the low bytes are
fetched by a second reading, and the files are written here.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError
from heatprior.images.model import Carried, ImageFile, parted

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, RGB, GREY_ALPHA, RGB_ALPHA = 0, 2, 4, 6
COLOUR_TYPES = {1: GREY, 2: GREY_ALPHA, 3: RGB, 4: RGB_ALPHA}  # by samples per pixel
# Chunks that say how to show the image and what it is, not how it is stored: true of the denoised image too.
KEPT = frozenset({b"cHRM", b"gAMA", b"iCCP", b"sRGB", b"cICP", b"pHYs", b"eXIf", b"tEXt", b"zTXt", b"iTXt"})
METRES_PER_INCH = 0.0254
DEPTH = 24  # where the header has the bits per sample; the kind of colour follows
ROWS = 256  # filtered at a time
PAETH = 4


class Chunks(NamedTuple):
    """Name and data of the chunks that stay."""

    kept: tuple[tuple[bytes, bytes], ...]


def read(path: Path) -> ImageFile:
    """The image, its chunks in `native`."""
    from PIL import Image  # noqa: PLC0415 (slow to import)

    content = path.read_bytes()
    if not content.startswith(SIGNATURE):
        raise ImageFileError("it is no PNG, whatever its name says; get a fresh copy")
    with Image.open(BytesIO(content), formats=["PNG"]) as image:
        if getattr(image, "is_animated", False):
            raise ImageFileError("it is animated; save its pictures one by one")
        samples = _samples(content, image)
        carried = Carried(image.info.get("icc_profile"), image.info.get("exif"), image.info.get("dpi"))
    pixels, colour, others = parted(samples, 3 if samples.shape[-1] >= 3 else 1)
    chunks = Chunks(tuple((name, data) for name, data in _chunks(content) if name in KEPT))
    return ImageFile(path, pixels, colour, others, carried, chunks)


def has_wide_colours(path: Path) -> bool:
    """Whether this is a PNG of more samples than one per pixel, 16 bits each."""
    with path.open("rb") as file:
        head = file.read(DEPTH + 2)
    return head.startswith(SIGNATURE) and len(head) > DEPTH + 1 and head[DEPTH] == 16 and head[DEPTH + 1] != GREY


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> None:
    """Write `pixels` with what `like` carries."""
    samples = like.samples(pixels)
    samples = samples if samples.ndim == 3 else samples[..., None]
    height, width, count = samples.shape
    header = struct.pack(">IIBBBBB", width, height, 8 * samples.itemsize, COLOUR_TYPES[count], 0, 0, 0)
    with path.open("wb") as file:
        file.write(SIGNATURE)
        _put(file, b"IHDR", header)
        for name, data in like.native.kept if isinstance(like.native, Chunks) else _made(like.carried):
            _put(file, name, data)
        packer = zlib.compressobj(6)
        for rows in _filtered(samples):
            if packed := packer.compress(rows):
                _put(file, b"IDAT", packed)
        _put(file, b"IDAT", packer.flush())
        _put(file, b"IEND", b"")


def _samples(content: bytes, image: Any) -> NDArray[Any]:
    """Samples (H, W, channels) with all their bits."""
    depth, kind = content[DEPTH], content[DEPTH + 1]
    if depth == 16:
        if "transparency" in image.info:
            raise ImageFileError("one of its colours stands for transparency; save it with an alpha channel")
        if kind != GREY:
            return _sixteen_bits(content, kind)
        return np.asarray(image).astype(np.uint16)[..., None]
    see_through = "transparency" in image.info
    grey = image.mode in ("1", "L", "LA")
    mode = ("LA" if see_through or image.mode == "LA" else "L") if grey else "RGB"
    if not grey and (see_through or image.mode in ("RGBA", "PA")):
        mode = "RGBA"
    samples = np.asarray(image.convert(mode))
    return samples if samples.ndim == 3 else samples[..., None]


def _sixteen_bits(content: bytes, kind: int) -> NDArray[np.uint16]:
    if kind == GREY_ALPHA:  # stored as four bytes per pixel are in 8 bits: read it as that
        header = content[16:24] + bytes([8, RGB_ALPHA]) + content[26:29]
        disguised = content[:16] + header + struct.pack(">I", zlib.crc32(b"IHDR" + header)) + content[33:]
        return np.ascontiguousarray(_decoded(disguised, "RGBA")).view(">u2").astype(np.uint16)
    mode = "RGB" if kind == RGB else "RGBA"
    # The unpackers keep what is the high byte in their own byte order.
    high, low = _decoded(content, f"{mode};16B"), _decoded(content, f"{mode};16L")
    return np.left_shift(high, 8, dtype=np.uint16) | low


def _decoded(content: bytes, unpacker: str) -> NDArray[np.uint8]:
    from PIL import Image  # noqa: PLC0415

    with Image.open(BytesIO(content), formats=["PNG"]) as image:
        opened: Any = image
        opened.tile = [(*tile[:3], unpacker) for tile in opened.tile]  # tuples; named ones since Pillow 11
        return np.asarray(image)


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and data of each chunk, as far as the file is whole; what follows is for the decoder to complain about."""
    place = len(SIGNATURE)
    while place + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, place)
        yield content[place + 4 : place + 8], content[place + 8 : place + 8 + length]
        place += 12 + length


def _made(carried: Carried) -> Iterator[tuple[bytes, bytes]]:
    """The chunks for an image that was no PNG."""
    if carried.icc:
        yield b"iCCP", b"ICC profile\0\0" + zlib.compress(carried.icc)
    if carried.dpi:
        per_metre = [round(float(dots) / METRES_PER_INCH) for dots in carried.dpi]
        yield b"pHYs", struct.pack(">IIB", *per_metre, 1)
    if carried.exif:
        yield b"eXIf", carried.exif.removeprefix(b"Exif\0\0")


def _put(file: BinaryIO, name: bytes, data: bytes) -> None:
    file.write(struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)))


def _filtered(samples: NDArray[Any]) -> Iterator[bytes]:
    """Rows as they are packed: each byte less the one of its left, upper or upper left neighbour that Paeth chooses."""
    step = samples.shape[2] * samples.itemsize
    above = np.zeros((1, samples.shape[1] * step + step), np.int16)
    for first in range(0, len(samples), ROWS):
        stored = samples[first : first + ROWS].astype(samples.dtype.newbyteorder(">"))
        rows = np.pad(stored.reshape(len(stored), -1).view(np.uint8), ((0, 0), (step, 0))).astype(np.int16)
        upper = np.concatenate([above, rows[:-1]])
        left, up, corner = rows[:, :-step], upper[:, step:], upper[:, :-step]
        to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
        nearest = np.where(to_up <= to_corner, up, corner)
        nearest = np.where((to_left <= to_up) & (to_left <= to_corner), left, nearest)
        changes = (rows[:, step:] - nearest).astype(np.uint8)  # modulo 256
        yield np.pad(changes, ((0, 0), (1, 0)), constant_values=PAETH).tobytes()
        above = rows[-1:]
