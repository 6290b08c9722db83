"""Smaller levels of an image from the next larger one: means over 2×2 pixels, or over what the shapes say."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALLEST = 512  # pixels: a new image gets levels until it is no larger than this


def factors(shape: Sequence[int], smaller: Sequence[int]) -> tuple[int, ...]:
    """How many pixels along each axis become one."""
    return tuple(max(1, round(length / less)) for length, less in zip(shape, smaller, strict=True))


def source_of(block: Sequence[slice], by: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    """What a block of the smaller level is made from."""
    return tuple(
        slice(min(place.start * f, length - 1), min(place.stop * f, length))
        for place, f, length in zip(block, by, shape, strict=True)
    )


def shrunk(pixels: NDArray[Any], by: Sequence[int], wanted: Sequence[int]) -> NDArray[Any]:
    """Means over `by` pixels along each axis, of the shape `wanted`; the last one stands for those beyond it."""
    missing = [(0, max(0, want * f - have)) for want, f, have in zip(wanted, by, pixels.shape, strict=True)]
    whole = np.pad(pixels, missing, mode="edge") if np.any(missing) else pixels
    ends = [want * f for want, f in zip(wanted, by, strict=True)]
    if pixels.dtype.kind != "f":  # sums of integers are exact in any order
        total = np.zeros(wanted, np.float64)
        for first in product(*map(range, by)):
            total += whole[tuple(slice(*along) for along in zip(first, ends, by, strict=True))]
        total /= prod(by)
        return np.rint(total, out=total).astype(pixels.dtype)
    cells = whole[tuple(map(slice, ends))].reshape([n for pair in zip(wanted, by, strict=True) for n in pair])
    axes = tuple(range(1, 2 * len(by), 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NaN where all pixels are
        return np.asarray(np.nanmean(cells, axis=axes), pixels.dtype)


def shapes_of_levels(shape: tuple[int, ...], planar: int = 2) -> list[tuple[int, ...]]:
    """Of a new image: half the rows and columns at every level."""
    shapes = [shape]
    while max(shapes[-1][-planar:]) > SMALLEST:
        last = shapes[-1]
        shapes.append((*last[:-planar], *(-(-length // 2) for length in last[-planar:])))
    return shapes
