"""What is done to a valid file: anything to its bytes, and sly things to what a format keeps in them."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable
from random import Random

INTEGERS = (
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    16,
    42,
    127,
    128,
    255,
    256,
    4095,
    32767,
    32768,
    65535,
    65536,
    2**31 - 1,
    2**31,
    2**32 - 1,
)
FLOATS = (float("nan"), float("inf"), -float("inf"), -3.4e38, 3.4e38, 1e37, 1e-38, 1e-45, -1.0, 0.0, 1e308)
MOST = 4  # changes of one file


def mutated(target: str, content: bytes, others: list[bytes], random: Random) -> bytes:
    """`content` after a few changes; some understand the format, and `others` are where bytes may come from."""
    for _ in range(random.choice((1, 1, 1, 2, MOST))):
        sly = SLY.get(target)
        if sly is not None and random.random() < 0.5:
            content = sly(content, random)
        else:
            content = random.choice(BLUNT)(content, others, random)
    return content


def _span(content: bytes, random: Random, longest: int = 64) -> tuple[int, int]:
    """Where a few bytes begin and end: half of the time near the beginning, where headers are."""
    end = len(content) if random.random() < 0.5 else min(len(content), 256)
    start = random.randrange(end + 1)
    return start, min(len(content), start + random.randint(1, longest))


def _flip(content: bytes, _: list[bytes], random: Random) -> bytes:
    start, _end = _span(content, random)
    if start >= len(content):
        return content
    return content[:start] + bytes([content[start] ^ (1 << random.randrange(8))]) + content[start + 1 :]


def _scramble(content: bytes, _: list[bytes], random: Random) -> bytes:
    start, end = _span(content, random, 8)
    return content[:start] + random.randbytes(end - start) + content[end:]


def _number(content: bytes, _: list[bytes], random: Random) -> bytes:
    """A number that programs stumble over, of any width and byte order."""
    order = random.choice("<>")
    if random.random() < 0.3:
        packed = struct.pack(f"{order}{random.choice('fd')}", _fitting(random.choice(FLOATS)))
    else:
        letter, width = random.choice((("B", 1), ("H", 2), ("I", 4), ("Q", 8)))
        value = random.choice((*INTEGERS, len(content), len(content) - 1, -1))
        packed = struct.pack(f"{order}{letter}", value % 256**width)
    start, _end = _span(content, random)
    return content[:start] + packed + content[start + len(packed) :]


def _fitting(value: float) -> float:
    return max(-3.4e38, min(3.4e38, value)) if value == value and abs(value) != float("inf") else value  # noqa: PLR0124


def _cut(content: bytes, _: list[bytes], random: Random) -> bytes:
    return content[: random.randrange(len(content) + 1)]


def _remove(content: bytes, _: list[bytes], random: Random) -> bytes:
    start, end = _span(content, random)
    return content[:start] + content[end:]


def _repeat(content: bytes, _: list[bytes], random: Random) -> bytes:
    start, end = _span(content, random)
    return content[:end] + content[start:end] * random.choice((1, 1, 2, 50)) + content[end:]


def _move(content: bytes, _: list[bytes], random: Random) -> bytes:
    """Bytes of one place in another: an offset where a length was, a directory where pixels were."""
    width = random.choice((2, 4, 8, 12, 20))
    start, end = random.randrange(len(content) + 1), _span(content, random)[0]
    return content[:end] + content[start : start + width] + content[end + width :]


def _splice(content: bytes, others: list[bytes], random: Random) -> bytes:
    other = random.choice(others)
    return content[: random.randrange(len(content) + 1)] + other[random.randrange(len(other) + 1) :]


def _blank(content: bytes, _: list[bytes], random: Random) -> bytes:
    start, end = _span(content, random, 512)
    return content[:start] + random.choice((b"\0", b"\xff", b" ")) * (end - start) + content[end:]


BLUNT = (_flip, _flip, _scramble, _number, _number, _number, _cut, _remove, _repeat, _move, _splice, _blank)


def _blunt(content: bytes, random: Random) -> bytes:
    return random.choice(BLUNT)(content, [content], random) if content else content


def _png(content: bytes, random: Random) -> bytes:
    """A chunk changed, repeated, moved or left out, its checksum right; pixels changed behind their compression."""
    chunks, place = [], 8
    while place + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, place)
        chunks.append((content[place + 4 : place + 8], content[place + 8 : place + 8 + length]))
        place += 12 + length
    if not chunks:
        return _blunt(content, random)
    number, action = random.randrange(len(chunks)), random.randrange(6)
    name, data = chunks[number]
    if action == 0:
        chunks.insert(random.randrange(len(chunks) + 1), (name, data))
    elif action == 1:
        chunks.insert(random.randrange(len(chunks)), chunks.pop(number))
    elif action == 2:
        chunks.pop(number)
    elif action == 3 and name == b"IDAT":
        chunks[number] = (name, _packed(data, random))
    else:
        chunks[number] = (name, _blunt(data, random))
    return content[:8] + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def _packed(data: bytes, random: Random) -> bytes:
    try:
        return zlib.compress(_blunt(zlib.decompress(data), random))
    except zlib.error:
        return data


def _tiff(content: bytes, random: Random) -> bytes:
    """An entry of a directory: its tag, its type, its count or its value."""
    if len(content) < 16:
        return content
    order, big = ("<" if content[:2] == b"II" else ">"), content[2:4] in (b"+\0", b"\0+")
    entry, count_format, place_format = (20, "Q", "Q") if big else (12, "H", "I")
    places: list[tuple[int, int]] = []
    (place,) = struct.unpack_from(f"{order}{place_format}", content, 8 if big else 4)
    while 0 < place < len(content) - 8 and len(places) < 9:
        (count,) = struct.unpack_from(f"{order}{count_format}", content, place)
        first = place + struct.calcsize(count_format)
        places.append((first, count))
        after = first + count * entry
        if count > 99 or after + 8 > len(content):
            break
        (place,) = struct.unpack_from(f"{order}{place_format}", content, after)
    if not places:
        return content
    first, count = random.choice(places)
    start = first + entry * random.randrange(count + 1)
    changed = bytearray(content)
    field = random.randrange(4)
    if field == 0:
        _put(
            changed,
            f"{order}H",
            start,
            random.choice((254, 256, 257, 258, 259, 262, 266, 273, 277, 278, 279, 284, 317, 322)),
        )
    elif field == 1:
        _put(changed, f"{order}H", start + 2, random.randrange(19))
    elif field == 2:
        _put(changed, f"{order}{'Q' if big else 'I'}", start + 4, random.choice((*INTEGERS, 5, 6, 12)))
    else:
        value = random.choice((*INTEGERS, len(content), random.randrange(len(content)), first, 5, 6, 32773, 32946))
        _put(changed, f"{order}{'Q' if big else random.choice('IH')}", start + (12 if big else 8), value)
    return bytes(changed)


def _put(content: bytearray, packing: str, place: int, value: int) -> None:
    width = struct.calcsize(packing)
    if place + width <= len(content):
        struct.pack_into(packing, content, place, value % 256**width)


NUMBERS = (b"0", b"1", b"-1", b"3", b"17", b"99999", b"4294967296", b"1e400", b"nan", b"null", b"[]", b'"x"', b"")


def _text(content: bytes, random: Random) -> bytes:
    """A run of digits, or a letter, among the first bytes."""
    end = min(len(content), 2000)
    digits = [place for place in range(end) if content[place : place + 1].isdigit()]
    if not digits or random.random() < 0.2:
        return _flip(content, [content], random)
    start = random.choice(digits)
    stop = start
    while stop < end and content[stop : stop + 1].isdigit():
        stop += 1
    return content[:start] + random.choice(NUMBERS) + content[stop:]


def _npy(content: bytes, random: Random) -> bytes:
    types = (b"|O", b"<f2", b"<c8", b"|b1", b"<i8", b">f4", b"<U4", b"<M8", b"|V3", b"|u1")
    if random.random() < 0.3 and content[10:30].count(b"'descr': '"):
        start = content.index(b"'descr': '") + 10
        return content[:start] + random.choice(types) + content[start + 3 :]
    return _text(content, random)


def _card(content: bytes, random: Random) -> bytes:
    """A card of FITS, 80 bytes each: another value, or another card in its place."""
    cards = max(1, min(len(content), 2880) // 80)
    start = 80 * random.randrange(cards)
    if random.random() < 0.3:
        other = 80 * random.randrange(cards)
        return content[:start] + content[other : other + 80] + content[start + 80 :]
    values = (b"0", b"1", b"-1", b"-32", b"64", b"-64", b"8", b"99999", b"2147483648", b"T", b"1E400", b"NAN", b"'x'")
    value = random.choice(values).rjust(20)
    return content[: start + 10] + value + content[start + 30 :]


def _safetensors(content: bytes, random: Random) -> bytes:
    """The text of the header changed and its length put right, or parameters replaced by numbers that stand out."""
    if len(content) < 8:
        return content
    (length,) = struct.unpack_from("<Q", content)
    header, data = content[8 : 8 + length], bytearray(content[8 + length :])
    if random.random() < 0.5 and len(data) > 8:
        packing = random.choice(("<f", "<d", "<e"))
        value = random.choice((float("nan"), float("inf"), -1.0, 0.0, 1e-30 if packing != "<e" else 1.0, 1e3))
        struct.pack_into(packing, data, random.randrange(len(data) - 7) & ~7, value)
    else:
        header = _text(header, random) if random.random() < 0.7 else _blunt(header, random)
    return struct.pack("<Q", len(header)) + header + bytes(data)


def _nifti(content: bytes, random: Random) -> bytes:
    if content[:2] == b"\x1f\x8b":
        try:
            return gzip.compress(_blunt(gzip.decompress(content), random), mtime=0)
        except (OSError, EOFError, zlib.error):
            return content
    return _number(content[:352], [], random)[:352] + content[352:]


SLY: dict[str, Callable[[bytes, Random], bytes]] = {
    "png": _png,
    "tiff": _tiff,
    "npy": _npy,
    "map": _npy,
    "fits": _card,
    "prior": _safetensors,
    "nifti": _nifti,
}
