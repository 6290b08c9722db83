"""Memory that a worker frees and soon wants again: keep it, instead of handing it back to the system every time."""

from __future__ import annotations

import ctypes

TRIM, MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
KEPT = 2**28  # bytes at the end of the heap
LARGEST = 2**25  # bytes of an array that is taken from the heap: the most that glibc allows


def keep_freed_memory() -> None:
    """Ask glibc to do what it does by itself, unless dask has told it otherwise; other libraries are left alone.

    dask starts its workers with a trim threshold of their own, by which glibc no longer learns how large arrays are:
    all that are larger than 128 kB are mapped, zeroed and unmapped anew, which takes much of the time of denoising.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # no glibc; no symbols of the process itself on Windows
        return
    mallopt(TRIM, KEPT)
    mallopt(MMAP, LARGEST)
