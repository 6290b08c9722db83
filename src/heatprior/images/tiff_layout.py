"""The directories of a TIFF, walked before anything else reads it: no circles, and no more pixels than can be there."""

from __future__ import annotations

import struct
from bisect import bisect_left
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from heatprior.errors import ImageFileError
from heatprior.images.limits import EXPANSION, SMALL, check_inflated, check_size

CLASSIC, BIG = 42, 43
NO_COMPRESSION = 1
DEFLATES = (8, 32946)  # two numbers for the same
ENTRY = {CLASSIC: 12, BIG: 20}
MOST_TAGS = 4096
HARMLESS = 100 << 20  # bytes that compressed pixels may unfold to beyond what is declared


def check_directories(path: Path) -> None:
    """Refuse a file whose directories lead back to one another or overlap, which some would follow for ever."""
    with path.open("rb") as file:
        order = "<" if file.read(2) == b"II" else ">"
        (kind,) = struct.unpack(f"{order}H", file.read(2))
        if kind not in ENTRY:
            raise ImageFileError("its header is damaged; get a fresh copy")
        if kind == BIG:
            file.read(4)
        seen: set[int] = set()
        size, taken = path.stat().st_size, 0
        place = _number(file, order, kind)
        while place:
            if place in seen:
                raise ImageFileError("its directories lead back to one another; get a fresh copy")
            seen.add(place)
            file.seek(place)
            head = file.read(2 if kind == CLASSIC else 8)
            if len(head) < (2 if kind == CLASSIC else 8):
                return  # cut short: what there is may still be whole
            (count,) = struct.unpack(f"{order}{'H' if kind == CLASSIC else 'Q'}", head)
            if count > MOST_TAGS:
                return
            taken += count * ENTRY[kind]
            if taken > size:
                raise ImageFileError("its directories lie upon one another; get a fresh copy")
            file.seek(count * ENTRY[kind], 1)
            place = _number(file, order, kind)


def check_pages(path: Path, series: list[Any]) -> None:
    """Refuse series that declare more pixels than the file can hold, or whose compressed pixels are more than that."""
    size = path.stat().st_size
    declared, expansion = 0, 1
    for one in series:
        page = one.keyframe
        packed = page.compression != NO_COMPRESSION
        expansion = max(expansion, EXPANSION if packed else 1)
        declared += int(np.prod([int(side) for side in one.shape], dtype=object)) * one.dtype.itemsize
        if page.is_tiled:
            tile = page.tilewidth * page.tilelength * page.tiledepth * page.samplesperpixel * one.dtype.itemsize
            check_size(tile, size if packed else max(size, SMALL), EXPANSION if packed else 1)
    check_size(declared, size, expansion)


def check_segments(file: BinaryIO, page: Any) -> None:
    """Refuse deflated strips or tiles that unfold to far more than they should."""
    if page.compression not in DEFLATES:
        return
    rows, columns = (page.tilelength, page.tilewidth) if page.is_tiled else (page.rowsperstrip, page.imagewidth)
    expected = min(rows, max(page.imagelength, page.tilelength)) * columns * page.samplesperpixel * page.dtype.itemsize
    for place, length in zip(page.dataoffsets, page.databytecounts, strict=False):
        if length * EXPANSION > expected + HARMLESS:
            file.seek(place)
            check_inflated(file.read(length), expected)


def overlap(segments: list[tuple[int, int]], pages: list[Any], size: int) -> bool:
    """Whether `segments` (place, length) share bytes with one another or with directories, or lie outside the file."""
    spans = sorted((place, place + length) for place, length in segments if length)
    if not spans:
        return False
    if any(one[1] > other[0] for one, other in pairwise(spans)) or spans[-1][1] > size:
        return True
    head, entry = (16, 20) if pages[0].parent.is_bigtiff else (8, 12)
    held = [(0, head)]
    for page in pages:
        held.append((page.offset, page.offset + head + entry * len(page.tags)))
        held += [(tag.valueoffset, tag.valueoffset + tag.valuebytecount) for tag in page.tags]
    for first, last in held:
        before = bisect_left(spans, (last, 0))
        if last > first and before and spans[before - 1][1] > first:
            return True
    return False


def _number(file: BinaryIO, order: str, kind: int) -> int:
    """An offset; 0, the end of the chain, if the file ends before."""
    length = 4 if kind == CLASSIC else 8
    data = file.read(length)
    return int(struct.unpack(f"{order}{'I' if kind == CLASSIC else 'Q'}", data)[0]) if len(data) == length else 0
