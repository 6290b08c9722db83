"""Bounds on what a file may ask for, before anything is allocated: its declared size against what it holds.

A deflated byte stands for at most 1032 bytes and one of LZW for about 2600; files that declare more than that, or
three times of which does not fit into memory, are refused in one line.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from heatprior.errors import ImageFileError

EXPANSION = 2600  # bytes of pixels that one byte of a file may stand for; the most is that of LZW
SMALL = 1 << 20  # whatever declares less is harmless
COPIES = 3  # of the image, that reading it, comparing and converting may need
MEMORY_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
CHUNK = 1 << 20


def check_size(declared: int, stored: int, expansion: int = EXPANSION) -> None:
    """Refuse an image of `declared` bytes in a file of `stored` bytes if it cannot be, or cannot be held."""
    if declared > max(stored * expansion, SMALL if expansion > 1 else 0):
        raise ImageFileError(
            f"it declares {in_words(declared)} of pixels but is a file of {in_words(stored)}: damaged, or meant to "
            "exhaust memory; get a fresh copy"
        )
    available = available_memory()
    if available is not None and declared > SMALL and COPIES * declared > available:
        raise ImageFileError(
            f"its {in_words(declared)} of pixels need {in_words(COPIES * declared)} of memory but "
            f"{in_words(available)} are free; cut it into parts"
        )


def check_inflated(data: bytes, expected: int) -> None:
    """Refuse deflated data that stand for more than the `expected` bytes."""
    inflater, rest, total = zlib.decompressobj(), data, 0
    while rest and not inflater.eof and total <= expected + CHUNK:
        total += len(inflater.decompress(rest, CHUNK))
        rest = inflater.unconsumed_tail
    if total > expected + CHUNK:
        raise ImageFileError("its compressed pixels are more than it declares; get a fresh copy")


def available_memory() -> int | None:
    """Bytes that could be taken without swapping, as far as the system reports; None if it does not."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration, IndexError):
        return None
    for name in MEMORY_FILES:  # in a container
        try:
            free = min(free, int(Path(name).read_text()))
        except (OSError, ValueError):  # absent, or the word "max"
            continue
    return free


def in_words(size: int) -> str:
    """A size as people read it."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 10_000:
            return f"{size} {unit}"
        size //= 1000
    return f"{size} TB"
