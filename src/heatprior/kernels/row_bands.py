"""The average over overlapping patches, band by band: what is in memory does not grow with the height of the image.

A band is some rows of patches. Its changes add up in a buffer of its own; where two bands overlap, the buffers are
added in order, so that results are bit-identical for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.patches import EVERY, Grid
from heatprior.kernels.threads import for_each

BAND = 32  # rows of patches that one thread does at a time, unless stretched
AT_ONCE = 16  # bands between two waits for all threads

LEAST_COUNT = 1e-30  # of a pixel of a piece that no patch holds: its change is nothing

# First and end row of patches → sum of their changes (rows + b − 1, W); or, where patches count differently, (2, …):
# that of changes times weights, and that of the weights.
SumOfChanges = Callable[[int, int], FloatArray]
Progress = Callable[[float], object]  # called with the fraction done


def average_by_bands(
    image: FloatArray,
    size: int,
    sum_of_changes: SumOfChanges,
    progress: Progress | None = None,
    at_once: int = AT_ONCE,
    grid: Grid = EVERY,
    stretch: int = 1,
) -> FloatArray:
    """Add to an image (H, W) in float32 the mean of the changes over the patches that hold a pixel: a new image.

    Patches are those on the `grid`; first and end row of `sum_of_changes` count all rows, on the grid or not.
    Bands are `stretch` times as high as otherwise.
    """
    height, width = image.shape
    shared = size - 1  # rows that two successive bands have in common
    band = height_of_bands(size, stretch)
    end = height - shared
    by_row, by_column = grid.counts(image.shape, size)
    part_by_row, part_by_column = (1.0 / by_row)[:, None].astype(np.float32), (1.0 / by_column).astype(np.float32)
    carried = np.zeros((shared, width), np.float32)
    result = np.empty((height, width), np.float32)
    starts = range(0, end, band)
    for first in range(0, len(starts), at_once):
        group = starts[first : first + at_once]
        sums = for_each(lambda start: sum_of_changes(start, min(start + band, end)), group)
        for total in sums:
            total[..., :shared, :] += carried
            carried = total[..., total.shape[-2] - shared :, :]

        def finish(number: int, group: range = group, sums: list[FloatArray] = sums) -> None:
            start = group[number]
            rows = slice(start, start + band if start + band < end else height)
            total = sums[number][..., : rows.stop - start, :]
            if total.ndim == 3:
                total = np.divide(total[0], np.maximum(total[1], LEAST_COUNT), out=total[0])
            else:
                total *= part_by_row[rows]
                total *= part_by_column
            np.add(image[rows], total, out=result[rows])

        carried = carried.copy()  # so that the buffer that it is a part of can go
        for_each(finish, range(len(group)))
        if progress is not None:
            progress(min(1.0, (group[-1] + band) / end))
    return result


def height_of_bands(size: int, stretch: int = 1) -> int:
    """Rows of a band at which patches may begin."""
    return max(BAND * stretch, size)


def edges_of_bands(height: int, size: int, stretch: int = 1) -> IntArray:
    """Rows of patches at which the bands of an image begin, and the end of the last."""
    end = height - size + 1
    return np.append(np.arange(0, end, height_of_bands(size, stretch)), end)


def part_of(progress: Progress | None, number: int, count: int) -> Progress | None:
    """The progress of one of `count` equal parts of a job."""
    return span_of(progress, number / count, (number + 1) / count)


def span_of(progress: Progress | None, start: float, end: float) -> Progress | None:
    """The progress of a part of a job, from start to end."""
    return None if progress is None else lambda fraction: progress(start + (end - start) * fraction)
