"""Squares spread over a large image, which tell of all of it: the same ones whether it is in memory or in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIDE = 256  # pixels of a square
LOOKED_AT = 36  # squares; of those with something to see, as many as are
USED = 16
MOST_MISSING = 0.5  # of the pixels of a square

Places = tuple[slice, ...]


def squares(shape: Sequence[int]) -> list[Places]:
    """Where to look in an image (..., H, W): the same squares whatever its blocks are."""
    planes = int(np.prod(shape[:-2], dtype=np.int64))
    each = min(LOOKED_AT, planes)
    along = max(1, round((LOOKED_AT / each) ** 0.5))
    found = []
    for number in range(each):
        plane = np.unravel_index((2 * number + 1) * planes // (2 * each), shape[:-2]) if shape[:-2] else ()
        for i in range(along):
            for j in range(along):
                places = [slice(int(k), int(k) + 1) for k in plane]
                for length, k in zip(shape[-2:], (i, j), strict=True):
                    side = min(SIDE, length)
                    start = (2 * k + 1) * (length - side) // (2 * along)
                    places.append(slice(start, start + side))
                if tuple(places) not in found:
                    found.append(tuple(places))
    return found


def telling(found: Sequence[NDArray[Any]]) -> list[int]:
    """The numbers of some of the squares (h, w) in which there is something to see."""
    able = [number for number, square in enumerate(found) if _tells(square)]
    if not able:
        return []
    return [able[k] for k in np.unique(np.linspace(0, len(able) - 1, USED).round().astype(int))]


def plane_of(values: NDArray[Any]) -> NDArray[Any]:
    """A square (1, …, h, w) without the axes in front."""
    return values.reshape(values.shape[-2:])


def _tells(square: NDArray[Any]) -> bool:
    """Whether there is anything to see."""
    if square.dtype.kind != "f":
        return bool(square.min() < square.max())
    valid = np.isfinite(square)
    return bool(valid.mean() > 1.0 - MOST_MISSING and np.ptp(square[valid]) > 0)
