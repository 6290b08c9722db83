"""What an image lacks: pixels beyond its edges, mirrored, and missing ones (NaN), filled from their surroundings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray, IntArray
from heatprior.errors import InvalidInputError

SWEEPS = 8  # of smoothing at each scale: holes are then smooth to the eye
GAP_SCALES = 4  # at which holes are filled from their surroundings, not further
UNIT = 2**GAP_SCALES  # pixels of the coarsest of them
SPREADS = 4  # of these pixels by which what is known is continued into wider holes; beyond, where nobody looks, is 0
REACH = SWEEPS * (UNIT - 1) + (SPREADS + 1) * UNIT  # pixels from which a filled pixel may take its value

Window = tuple[slice, slice]  # rows and columns


class Mirrored:
    """Arrays (H, W) as if mirrored beyond their edges by `margin` pixels (or as many as they have), rows at a time."""

    def __init__(self, shape: tuple[int, int], margin: int) -> None:
        self._rows, self._columns = (
            np.pad(np.arange(length), min(margin, length - 1), mode="reflect") for length in shape
        )
        self.shape = (len(self._rows), len(self._columns))  # mirrored
        self.inside = tuple(slice(m := min(margin, length - 1), m + length) for length in shape)  # the array itself

    def rows(self, read: Callable[[slice | IntArray], FloatArray], rows: slice | IntArray) -> FloatArray:
        """Some rows of the mirrored array, of which `read` gives rows; maybe a view of them."""
        wanted = _split_runs(self._rows[rows])
        values = read(wanted[0] if len(wanted) == 1 else self._rows[rows])
        pieces = [values[:, piece] for piece in _split_runs(self._columns)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)

    def part(self, window: Window, corner: tuple[int, int]) -> Mirrored:
        """A window of the mirrored array, of whose original only what begins at `corner` is there to be read."""
        own = copy(self)
        own._rows, own._columns = self._rows[window[0]] - corner[0], self._columns[window[1]] - corner[1]
        own.shape = (len(own._rows), len(own._columns))
        return own

    def read_by(self, window: Window) -> Window:
        """The window of the array itself that a window of the mirrored one is read from."""
        rows, columns = self._rows[window[0]], self._columns[window[1]]
        return slice(int(rows.min()), int(rows.max()) + 1), slice(int(columns.min()), int(columns.max()) + 1)


def _split_runs(places: IntArray) -> list[slice | IntArray]:
    """Mirrored places as what is before the first rising run, the run itself as a slice, and what is after it."""
    rising = np.flatnonzero(np.diff(places) == 1)
    if len(rising) == 0:
        return [places]
    first, last = int(rising[0]), int(rising[-1]) + 1
    run = slice(int(places[first]), int(places[last]) + 1)
    return [piece for piece in (places[:first], run, places[last + 1 :]) if isinstance(piece, slice) or len(piece)]


def check_not_empty(image: FloatArray) -> None:
    """Refuse an image of which every pixel is missing."""
    if np.isnan(image).all():
        raise InvalidInputError("an image or channel holds nothing but NaN; leave it out")


def fill_missing(image: FloatArray, scales: int | None = None) -> None:
    """Replace NaN, in place, by a smooth continuation of the valid pixels: Laplace's equation, coarse to fine.

    At every scale missing pixels begin as the means of 2×2 pixels of the next coarser one, and then become the means of
    their neighbours, some times over. With a number of `scales`, what is missing at the coarsest is continued a few
    pixels only. For denoising GAP_SCALES will do, which reach no further than REACH: no pixel in the middle of a wider
    hole could matter to one that was observed.
    """
    rows, columns = np.nonzero(np.isnan(image))
    if len(rows) == 0:
        return
    if scales == 0:
        _spread(image)
        return
    even = np.pad(image, [(0, length % 2) for length in image.shape], constant_values=np.nan)
    coarse = _mean_of_known([even[i::2, j::2] for i in (0, 1) for j in (0, 1)])
    if coarse.size > 1 or scales is not None:
        fill_missing(coarse, None if scales is None else scales - 1)
    else:
        check_not_empty(coarse)
    image[rows, columns] = coarse[rows // 2, columns // 2]
    above, below = np.maximum(rows - 1, 0), np.minimum(rows + 1, image.shape[0] - 1)
    left, right = np.maximum(columns - 1, 0), np.minimum(columns + 1, image.shape[1] - 1)
    for _ in range(SWEEPS):
        vertical = image[above, columns] + image[below, columns]
        image[rows, columns] = (vertical + image[rows, left] + image[rows, right]) / 4.0


def with_all_or_no_channel_missing(channels: NDArray[Any], *, whole: bool = True) -> NDArray[Any]:
    """Channels (k, H, W) to be mixed, filled where only some are missing; a `whole` image must have pixels of each."""
    if channels.dtype.kind != "f" or not np.isnan(np.min(channels)):
        return channels
    for channel in channels if whole else ():
        check_not_empty(channel)
    if len(channels) == 1:
        return channels
    filled = np.array(channels, np.promote_types(channels.dtype, np.float32))
    for channel in filled:
        fill_missing(channel, GAP_SCALES)
    filled[:, np.isnan(channels).all(axis=0)] = np.nan
    return filled


def _spread(image: FloatArray) -> None:
    """Continue what is known by some pixels, each the mean of what its neighbours know, and put 0 beyond."""
    height, width = image.shape
    for _ in range(SPREADS):
        padded = np.pad(image, 1, constant_values=np.nan)
        means = _mean_of_known([padded[i : i + height, j : j + width] for i in range(3) for j in range(3)])
        np.copyto(image, means, where=np.isnan(image))
    np.copyto(image, 0.0, where=np.isnan(image))


def _mean_of_known(parts: Sequence[FloatArray]) -> FloatArray:
    """The means of arrays (H, W) where they are known, NaN where none is."""
    total, count = np.zeros_like(parts[0]), np.zeros_like(parts[0])
    for part in parts:
        known = ~np.isnan(part)
        total += np.where(known, part, 0.0)
        count += known
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count)
