"""Full scale: the value of an image that stands for white, which the prior needs to know; and where to look for it.

Where the user does not say, the type does (255, 65535, 1.0), unless the image does not fill it: photons that were
counted, stars, floats in any units. Then it follows from the range of the image, read from means of a few pixels in
squares spread over it: so that pixels times any factor have full scale times that factor, and hence the same result,
and so that an array in memory and one in blocks have the same. Every public function uses this one rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import ChannelAxis
from heatprior.border.pixels import (
    LARGEST_GREY,
    LARGEST_OFFSET,
    LEAST_WHITE,
    as_channels,
    check_offset,
    check_white,
    is_transparency,
    type_white,
)
from heatprior.errors import InvalidInputError

SIDE = 256  # pixels of a square
LOOKED_AT = 36  # squares; of those with something to see, as many as are
USED = 16
MOST_MISSING = 0.5  # of the pixels of a square
ENDS = (0.02, 0.98)  # quantiles: the range of an image is what lies between
CELL = 4  # pixels, over whose mean the range is read: noise hardly widens it
# Full scale over the range of validation images (crops of 200², noise of 10, 25 and 50), on average: it scatters by
# 0.28 of its logarithm (paper/evaluations/grey_scales.py).
OVER_RANGE = 1.6
# The full scale of the type over what the range says, if it stays: from an image that fills it to one that is not much
# dimmer than photographs are. It costs hundredths of a decibel at most.
AS_GOOD = (1 / 1.65, 1.5)
PATTERN = 1.25  # times what white noise leaves of the range of pixels in that of cells: no more is a fine pattern
MOST_NOISE = 2.0  # times the range: a level that no such image has
NOT_DARK = 0.35  # of 255: images of 8 bits that reach it keep it in any case

Places = tuple[slice, ...]
Groups = Sequence[Sequence[NDArray[Any]]]  # squares (h, w), channel by channel


def full_scale(white: float | None, pixels: NDArray[Any], channel_axis: ChannelAxis, given: float = 0.0) -> float:
    """Full scale: as given, else as squares spread over the image tell; `given` is that of `scale_of_squares`."""
    if white is not None:
        return check_white(white, pixels)
    return scale_of_squares(squares_of(as_channels(pixels, channel_axis)), type_white(pixels), given)


def scale_of_squares(found: Groups, by_type: float, given: float = 0.0) -> float:
    """Full scale of what these squares are of, channel by channel; the type's if nothing speaks against it.

    It does not depend on the noise level `given`, unless that is beyond all that there is to see: then it may be in
    other units.
    """
    opaque = found[:3] if len(found) == 4 and is_transparency(np.concatenate([s.ravel() for s in found[3]])) else found
    looked_at = [own[k] for own in opaque for k in choose_squares(own)]
    every = (square for own in found for square in own)
    largest = max((float(np.abs(s).max(initial=0, where=np.isfinite(s))) for s in every), default=0.0)
    spread = _range(looked_at)
    if spread == 0.0:
        return max(by_type, largest)
    if spread < LEAST_WHITE:
        raise InvalidInputError(f"the values of the image differ by {spread:g}; multiply it, to have normal numbers")
    if largest > LARGEST_OFFSET * spread:
        check_offset(float(np.nanmedian(np.concatenate([square.ravel() for square in looked_at]))), spread)
    if largest > LARGEST_GREY * spread:
        raise InvalidInputError(
            f"the image has values up to {largest:g} but nearly all lie within {spread:g}; set values that stand for "
            "missing pixels to NaN, or give the value of full scale (white)"
        )
    bright = looked_at[0].dtype.itemsize == 1 and _ends(looked_at, 1)[1] >= NOT_DARK * by_type
    if bright or AS_GOOD[0] <= by_type / (OVER_RANGE * spread) <= AS_GOOD[1]:
        return by_type
    return by_type if given > MOST_NOISE * spread else OVER_RANGE * spread


def squares(shape: Sequence[int]) -> list[Places]:
    """Where to look in an image (..., H, W): the same squares whatever its blocks are."""
    planes = int(np.prod(shape[:-2], dtype=np.int64))
    each = min(LOOKED_AT, planes)
    along = max(1, round((LOOKED_AT / each) ** 0.5))
    starts = [[(2 * k + 1) * max(0, length - SIDE) // (2 * along) for k in range(along)] for length in shape[-2:]]
    corners = product(*(dict.fromkeys(of_axis) for of_axis in starts))  # each once
    windows = [tuple(slice(k, min(k + SIDE, n)) for k, n in zip(corner, shape[-2:], strict=True)) for corner in corners]
    found = []
    for number in range(each):
        plane = np.unravel_index((2 * number + 1) * planes // (2 * each), shape[:-2]) if shape[:-2] else ()
        found += [(*(slice(int(k), int(k) + 1) for k in plane), *window) for window in windows]
    return found


def squares_of(channels: Any, places: Callable[..., list[Places]] = squares) -> list[list[Any]]:
    """Of every channel (..., C, H, W), of numpy or dask, squares (h, w) spread over all planes of it."""
    where = places((*channels.shape[:-3], *channels.shape[-2:]))
    return [[plane_of(channels[..., c, :, :][place]) for place in where] for c in range(channels.shape[-3])]


def choose_squares(found: Sequence[NDArray[Any]]) -> list[int]:
    """The numbers of some of the squares (h, w) in which there is something to see."""
    able = [number for number, square in enumerate(found) if _shows_something(square)]
    if not able:
        return []
    return [able[k] for k in np.unique(np.linspace(0, len(able) - 1, USED).round().astype(int))]


def join_squares(found: Groups) -> NDArray[Any] | None:
    """The same squares of every channel, below each other: (C, n h, w); None if there is nothing to see."""
    chosen = next(filter(None, map(choose_squares, found)), [])
    return np.stack([np.concatenate([own[k] for k in chosen]) for own in found]) if chosen else None


def plane_of(values: NDArray[Any]) -> NDArray[Any]:
    """A square (1, …, h, w) without the axes in front."""
    return values.reshape(values.shape[-2:])


def _shows_something(square: NDArray[Any]) -> bool:
    """Whether there is anything to see."""
    if square.dtype.kind != "f":
        return bool(square.min() < square.max())
    valid = np.isfinite(square)
    return bool(valid.mean() > 1.0 - MOST_MISSING and np.ptp(square[valid]) > 0)


def _range(found: Sequence[NDArray[Any]]) -> float:
    """Between the ends of the means of cells; nothing but noise or a fine pattern has that of its pixels as full scale.

    Of all pixels where nearly all are the same; 0 if there are none.
    """
    if not found:
        return 0.0
    cells, pixels = (high - low for low, high in (_ends(found, CELL), _ends(found, 1)))
    if pixels > 0.0:
        return pixels / OVER_RANGE if cells <= PATTERN * pixels / CELL else cells
    every = [float(end) for square in found for end in (np.nanmin(square), np.nanmax(square))]
    return max(every) - min(every)


def _ends(found: Sequence[NDArray[Any]], cell: int) -> tuple[float, float]:
    """The darkest and the brightest means of cell×cell pixels without NaN, but for a few."""
    means = []
    for square in found:
        height, width = (length // cell * cell for length in square.shape)
        cells = square[:height, :width].astype(np.float64).reshape(height // cell, cell, width // cell, cell)
        means.append(cells.mean(axis=(1, 3)).reshape(-1))
    known = np.concatenate(means)
    known = known[np.isfinite(known)]
    low, high = np.quantile(known, ENDS) if known.size else (0.0, 0.0)
    return float(low), float(high)
