"""What an image lacks: pixels beyond its edges, mirrored, and missing ones (NaN), filled from their surroundings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray, IntArray
from heatprior.errors import InvalidInputError

SWEEPS = 8  # of smoothing at each scale: holes are then smooth to the eye


class Mirrored:
    """Arrays (H, W) as if mirrored beyond their edges by `margin` pixels (or as many as they have), rows at a time."""

    def __init__(self, shape: tuple[int, int], margin: int) -> None:
        self._rows, self._columns = (
            np.pad(np.arange(length), min(margin, length - 1), mode="reflect") for length in shape
        )
        self.shape = (len(self._rows), len(self._columns))
        self.inside = tuple(slice(m := min(margin, length - 1), m + length) for length in shape)  # the array itself

    def rows(self, read: Callable[[IntArray], FloatArray], rows: slice | IntArray) -> FloatArray:
        """Some rows of the mirrored array, of which `read` gives rows."""
        return read(self._rows[rows])[:, self._columns]


def fill_missing(image: FloatArray) -> None:
    """Replace NaN, in place, by a smooth continuation of the valid pixels: Laplace's equation, coarse to fine.

    At every scale missing pixels begin as the means of 2×2 pixels of the next coarser one, and then become the means of
    their neighbours, some times over.
    """
    rows, columns = np.nonzero(np.isnan(image))
    if len(rows) == 0:
        return
    coarse = _mean_of_valid(image)
    if coarse.size > 1:
        fill_missing(coarse)
    elif np.isnan(coarse[0, 0]):
        raise InvalidInputError("an image or channel holds nothing but NaN; leave it out")
    image[rows, columns] = coarse[rows // 2, columns // 2]
    above, below = np.maximum(rows - 1, 0), np.minimum(rows + 1, image.shape[0] - 1)
    left, right = np.maximum(columns - 1, 0), np.minimum(columns + 1, image.shape[1] - 1)
    for _ in range(SWEEPS):
        vertical = image[above, columns] + image[below, columns]
        image[rows, columns] = (vertical + image[rows, left] + image[rows, right]) / 4.0


def with_all_or_no_channel_missing(channels: NDArray[Any]) -> NDArray[Any]:
    """Channels (k, H, W) to be mixed: where only some are missing they are filled, so that the others are not lost."""
    if channels.dtype.kind != "f" or len(channels) == 1 or not np.isnan(np.min(channels)):
        return channels
    filled = np.array(channels, np.float32)
    for channel in filled:
        fill_missing(channel)
    filled[:, np.isnan(channels).all(axis=0)] = np.nan
    return filled


def _mean_of_valid(image: FloatArray) -> FloatArray:
    """The means of squares of 2×2 pixels, NaN where all are missing."""
    height, width = (-(-length // 2) for length in image.shape)
    total = np.zeros((height, width), np.float32)
    count = np.zeros((height, width), np.float32)
    for i in (0, 1):
        for j in (0, 1):
            part = image[i::2, j::2]
            valid = ~np.isnan(part)
            total[: len(part), : part.shape[1]] += np.where(valid, part, 0.0)
            count[: len(part), : part.shape[1]] += valid
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count)
