"""The noise of a large image, estimated once: from squares spread over all of it, put together as one small image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import InvalidInputError
from heatprior.noise.estimation import NoiseReport, estimate_noise

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
    telling = [square for square in (_plane(values) for values in found) if _tells(square)]
    if not telling:
        raise InvalidInputError("squares spread over the image hold one value each, or nothing; give sigma")
    chosen = [telling[k] for k in np.unique(np.linspace(0, len(telling) - 1, USED).round().astype(int))]
    return estimate_noise(np.concatenate(chosen), "constant", prior=prior, white=white)


def _plane(values: NDArray[Any]) -> NDArray[Any]:
    return values.reshape(values.shape[-2:])


def _tells(square: NDArray[Any]) -> bool:
    """Whether there is anything to see."""
    if square.dtype.kind != "f":
        return bool(square.min() < square.max())
    valid = np.isfinite(square)
    return bool(valid.mean() > 1.0 - MOST_MISSING and np.ptp(square[valid]) > 0)
