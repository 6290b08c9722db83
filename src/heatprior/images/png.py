"""PNG, 8 and 16 bits, grey or colour, with or without transparency; colour space, resolution and texts stay.

Pillow decodes, but keeps only 8 of 16 bits of a colour, and writes only some of the chunks: so the low bytes are
fetched by a second reading, and the files are written here.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError
from heatprior.images.decoding import EXIF, is_profile, open_image, parse_exif, read_content, read_metadata
from heatprior.images.model import ImageFile, Metadata, split_samples

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, RGB, GREY_ALPHA, RGB_ALPHA = 0, 2, 4, 6
COLOUR_TYPES = {1: GREY, 2: GREY_ALPHA, 3: RGB, 4: RGB_ALPHA}  # by samples per pixel
# Chunks that say how to show the image and what it is, not how it is stored: true of the denoised image too.
LENGTHS = {b"cHRM": 32, b"gAMA": 4, b"sRGB": 1, b"cICP": 4, b"pHYs": 9}
TEXTS = (b"tEXt", b"zTXt", b"iTXt")
LONGEST_KEYWORD = 79
LARGEST_TEXT = 1 << 20  # packed ones may not unfold to more: more is what Pillow refuses to read
EXPANSION = 1032  # of deflate
METRES_PER_INCH = 0.0254
HEADER_LENGTH = 13
DEPTH = 24  # where the header has the bits per sample; the kind of colour follows
ROWS = 256  # filtered at a time
UP = 2


def read(path: Path) -> ImageFile:
    """Read a PNG; name and data of the chunks of metadata that stay are in `native`."""
    content = read_content(path, _size)
    with open_image(content, "PNG", EXPANSION, sample=1 if content[DEPTH] <= 8 else 2) as image:
        samples = _read_samples(content, image)
        metadata = read_metadata(image.info)
    pixels, colour, others = split_samples(samples, 3 if samples.shape[-1] >= 3 else 1)
    return ImageFile(path, pixels, colour, others, metadata, tuple(_select_chunks(content)))


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> None:
    """Write `pixels` with the metadata of `like`."""
    samples = like.samples(pixels)
    samples = samples if samples.ndim == 3 else samples[..., None]
    height, width, count = samples.shape
    header = struct.pack(">IIBBBBB", width, height, 8 * samples.itemsize, COLOUR_TYPES[count], 0, 0, 0)
    with path.open("wb") as file:
        file.write(SIGNATURE)
        _put(file, b"IHDR", header)
        for name, data in _make_chunks(like.metadata) if like.native is None else like.native:
            _put(file, name, data)
        packer = zlib.compressobj(6)
        for rows in _filter_rows(samples):
            if packed := packer.compress(rows):
                _put(file, b"IDAT", packed)
        _put(file, b"IDAT", packer.flush())
        _put(file, b"IEND", b"")


def _size(content: bytes) -> int:
    """Bytes of the pixels that the header declares, with as many samples as a pixel can have."""
    length, name, width, height, depth = struct.unpack_from(">I4sIIB", content, len(SIGNATURE))
    if (length, name) != (HEADER_LENGTH, b"IHDR"):
        raise ImageFileError("its header is damaged; get a fresh copy")
    return int(width * height) * 4 * (1 if depth <= 8 else 2)


def _read_samples(content: bytes, image: Any) -> NDArray[Any]:
    """Samples (H, W, channels) with all their bits."""
    depth, kind = content[DEPTH], content[DEPTH + 1]
    if depth == 16:
        if "transparency" in image.info:
            raise ImageFileError("one of its colours stands for transparency; save it with an alpha channel")
        if kind != GREY:
            return _read_sixteen_bits(content, kind)
        return np.asarray(image).astype(np.uint16)[..., None]
    mode = "L" if image.mode in ("1", "L", "LA") else "RGB"
    samples = np.asarray(image.convert(f"{mode}A" if image.has_transparency_data else mode))
    return samples if samples.ndim == 3 else samples[..., None]


def _read_sixteen_bits(content: bytes, kind: int) -> NDArray[np.uint16]:
    if kind == GREY_ALPHA:  # stored as four bytes per pixel are in 8 bits: read it as that
        header = content[16:24] + bytes([8, RGB_ALPHA]) + content[26:29]
        disguised = content[:16] + header + struct.pack(">I", zlib.crc32(b"IHDR" + header)) + content[33:]
        return np.ascontiguousarray(_decode(disguised, "RGBA")).view(">u2").astype(np.uint16)
    mode = "RGB" if kind == RGB else "RGBA"
    # The unpackers keep what is the high byte in their own byte order.
    high, low = _decode(content, f"{mode};16B"), _decode(content, f"{mode};16L")
    return np.left_shift(high, 8, dtype=np.uint16) | low


def _decode(content: bytes, unpacker: str) -> NDArray[np.uint8]:
    with open_image(content, "PNG", EXPANSION) as image:
        image.tile = [(*tile[:3], unpacker) for tile in image.tile]  # tuples; named ones since Pillow 11
        return np.asarray(image)


def _select_chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The chunks that stay: sound ones, of which all but texts come once."""
    seen = set()
    for name, data in _chunks(content):
        if name not in seen and _is_sound(name, data):
            yield name, data
            if name not in TEXTS:
                seen.add(name)


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and data of each chunk whose checksum is right, up to the end of the image or of what can be read."""
    place = len(SIGNATURE)
    while place + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, place)
        name, data = content[place + 4 : place + 8], content[place + 8 : place + 8 + length]
        checksum = content[place + 8 + length : place + 12 + length]
        if name == b"IEND" or len(checksum) < 4:
            return
        if struct.unpack(">I", checksum)[0] == zlib.crc32(name + data):
            yield name, data
        place += 12 + length


def _is_sound(name: bytes, data: bytes) -> bool:
    """Whether a chunk is one of those that stay, and well formed."""
    if name in LENGTHS:
        return len(data) == LENGTHS[name] and (name != b"pHYs" or data[8] <= 1)
    if name == b"eXIf":
        return bool(parse_exif(EXIF + data))
    keyword, zero, rest = data.partition(b"\0")
    if name not in (b"iCCP", *TEXTS) or not (zero and 0 < len(keyword) <= LONGEST_KEYWORD):
        return False
    if name == b"iTXt":
        parts = rest[2:].split(b"\0", 2)  # language, translated keyword, text
        return len(parts) == 3 and (rest[0] == 0 or (rest[0] == 1 and _inflate(rest[1:2] + parts[2]) is not None))
    return name == b"tEXt" or (is_profile(_inflate(rest)) if name == b"iCCP" else _inflate(rest) is not None)


def _inflate(packed: bytes) -> bytes | None:
    """What is behind the method of compression, 0 for deflate; None if it is anything else, damaged, or too much."""
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(packed[1:], LARGEST_TEXT) if packed[:1] == b"\0" else None
    except zlib.error:
        return None
    return data if inflater.eof else None


def _make_chunks(metadata: Metadata) -> Iterator[tuple[bytes, bytes]]:
    """The chunks for an image that was no PNG."""
    if metadata.icc:
        yield b"iCCP", b"ICC profile\0\0" + zlib.compress(metadata.icc)
    if metadata.dpi:
        per_metre = [round(float(dots) / METRES_PER_INCH) for dots in metadata.dpi]
        yield b"pHYs", struct.pack(">IIB", *per_metre, 1)
    if metadata.exif:
        yield b"eXIf", metadata.exif.removeprefix(EXIF)


def _put(file: BinaryIO, name: bytes, data: bytes) -> None:
    file.write(struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)))


def _filter_rows(samples: NDArray[Any]) -> Iterator[bytes]:
    """Rows as they are packed: each byte less the one above it, modulo 256."""
    above = np.zeros((1, samples.shape[1] * samples.shape[2] * samples.itemsize), np.uint8)
    for first in range(0, len(samples), ROWS):
        stored = samples[first : first + ROWS].astype(samples.dtype.newbyteorder(">"))
        rows = stored.reshape(len(stored), -1).view(np.uint8)
        changes = np.diff(rows, axis=0, prepend=above)
        yield np.pad(changes, ((0, 0), (1, 0)), constant_values=UP).tobytes()
        above = rows[-1:]
