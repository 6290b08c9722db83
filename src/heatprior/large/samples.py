"""The noise of a large image, and its full scale, found once: from squares spread over all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import InvalidInputError
from heatprior.noise.estimation import NoiseReport, estimate_noise
from heatprior.noise.grey_scale import full_scale
from heatprior.pixels.inputs import as_pixels

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


def squares_of_channel(shape: Sequence[int], axis: int | None, channel: int) -> list[Places]:
    """Where to look in one channel of an image that may have an axis of channels."""
    if axis is None:
        return squares(shape)
    here = slice(channel, channel + 1)
    alone = squares([1 if place == axis else length for place, length in enumerate(shape)])
    return [(*places[:axis], here, *places[axis + 1 :]) for places in alone]


def noise_of_squares(found: Sequence[NDArray[Any]], noise: str, prior: Any, white: float) -> NoiseReport:
    """Of squares (..., h, w) of one channel: one noise level."""
    if noise not in ("auto", "constant"):
        raise InvalidInputError(
            f"{noise} noise is told from the whole image, which blocks cannot; leave out noise, or give sigma as a map"
        )
    if not (chosen := _chosen(found)):
        raise InvalidInputError("squares spread over the image hold one value each, or nothing; give sigma")
    return estimate_noise(np.concatenate(chosen), "constant", prior=prior, white=white)


def full_scale_of_squares(found: Sequence[NDArray[Any]], sigma: float | None, by_type: float) -> float:
    """Which value is full scale, as `hp.denoise` finds it, from squares (..., h, w) of all channels."""
    chosen = _chosen(found)
    return full_scale(None, as_pixels(np.stack(chosen)), sigma, None) if chosen else by_type


def _chosen(found: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Some of the squares in which there is something to see."""
    telling = [square for square in (_plane(values) for values in found) if _tells(square)]
    if not telling:
        return []
    return [telling[k] for k in np.unique(np.linspace(0, len(telling) - 1, USED).round().astype(int))]


def _plane(values: NDArray[Any]) -> NDArray[Any]:
    return values.reshape(values.shape[-2:])


def _tells(square: NDArray[Any]) -> bool:
    """Whether there is anything to see."""
    if square.dtype.kind != "f":
        return bool(square.min() < square.max())
    valid = np.isfinite(square)
    return bool(valid.mean() > 1.0 - MOST_MISSING and np.ptp(square[valid]) > 0)
