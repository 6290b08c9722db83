"""Patches of images: which of them take part in an average, and how they are cut out and put back.

All patches take part, or those on a grid. Along a side of n pixels the patches begin at 0, offset, offset + stride,
offset + 2 stride, … up to the middle, and beyond it as seen from the other end, so that a turned image has the same
patches, turned. Every pixel is in one as long as stride ≤ b. Where only a piece of an image is here, its grid knows the
`whole` and the `corner` of the piece: the same patches take part, and count as much.

Changes of overlapping patches are averaged band by band, a band being some rows of patches, so that memory does not
grow with the height. Where two bands overlap, their sums are added in order: bits do not depend on threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from heatprior.arrays import FloatArray, IntArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.compiler import kernel
from heatprior.kernels.threads import for_each

BAND = 32  # rows of patches that one thread does at a time, unless stretched
AT_ONCE = 16  # bands between two waits for all threads

LEAST_COUNT = 1e-30  # of a pixel of a piece that no patch holds: its change is nothing

# Rows of patches → sum of their changes (rows + b − 1, W); or, where patches count differently, (2, …): that of changes
# times weights, and that of the weights.
SumOfChanges = Callable[[range], FloatArray]
Progress = Callable[[float], object]  # called with the fraction done


class Cells(NamedTuple):
    """Patches that are computed together: those between two successive `rows`, and two successive `columns`, of these.

    What is not rounded the same way at every place of a matrix product has the same bits only if the whole cell has.
    """

    rows: IntArray  # from 0 to the number of rows at which patches may begin
    columns: IntArray


class Grid(NamedTuple):
    """Patches `stride` pixels apart in either direction, from `offset` on and back, and those at the edges."""

    stride: int = 1
    offset: int = 0
    whole: tuple[int, int] | None = None  # the shape of the image that this is a piece of, if it is one
    corner: tuple[int, int] = (0, 0)

    def of_piece(self, whole: tuple[int, int], corner: tuple[int, int]) -> Grid:
        """The same grid, where only a piece of the image is here."""
        return self._replace(whole=whole, corner=corner)

    def places(self, shape: tuple[int, ...], size: int) -> tuple[IntArray, IntArray]:
        """Rows and columns at which the patches of this image or piece begin, ascending."""
        starts = (self.starts(length, size) for length in self.whole or shape)
        rows, columns = (
            own[(own >= first) & (own <= first + length - size)] - first
            for own, first, length in zip(starts, self.corner, shape, strict=True)
        )
        return rows, columns

    def counts(self, shape: tuple[int, ...], size: int) -> tuple[IntArray, IntArray]:
        """How many patches, in the whole image, hold the pixels of each row, and of each column."""
        rows, columns = (
            self.patches_that_hold(length, size)[first : first + here]
            for length, first, here in zip(self.whole or shape, self.corner, shape, strict=True)
        )
        return rows, columns

    def starts(self, length: int, size: int) -> IntArray:
        """Where patches of `size` pixels begin along a side of `length`, ascending."""
        if not 1 <= self.stride <= size or not 0 <= self.offset < self.stride:
            raise InvalidInputError(
                f"patches of {size} pixels, {self.stride} apart from {self.offset} on, do not cover an image; expected "
                f"a stride of 1 to {size} and an offset below it"
            )
        last = length - size
        half = np.append(0, np.arange(self.offset, last // 2 + 1, self.stride))
        if last - 2 * half[-1] > self.stride:  # the two in the middle would be too far apart
            half = np.append(half, last // 2)
        return np.unique(np.concatenate([half, last - half]).astype(np.int64))

    def patches_that_hold(self, length: int, size: int) -> IntArray:
        """How many of them hold each of `length` pixels in a row."""
        steps = np.zeros(length + 1, np.int64)
        starts = self.starts(length, size)
        steps[starts] += 1
        steps[starts + size] -= 1
        return np.cumsum(steps[:-1])


EVERY = Grid()


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

    Rows of `sum_of_changes` count all patches, on the `grid` or not. Bands are `stretch` times as high as otherwise.
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
        sums = for_each(sum_of_changes, [range(start, min(start + band, end)) for start in group])
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
        sums.clear()  # before the next ones are made
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


@dataclass(frozen=True)
class _Span:
    """The progress of a part of a job, from `start` to `end`."""

    progress: Progress
    start: float
    end: float

    def __call__(self, fraction: float) -> None:
        self.progress(self.start + (self.end - self.start) * fraction)


def span_of(progress: Progress | None, start: float, end: float) -> Progress | None:
    """The progress of a part of a job, from start to end; of a part of a part one call, not two."""
    if isinstance(progress, _Span):
        whole, first, length = progress.progress, progress.start, progress.end - progress.start
        return _Span(whole, first + length * start, first + length * end)
    return None if progress is None else _Span(progress, start, end)


def extract(image: FloatArray, size: int, grid: Grid = EVERY) -> FloatArray:
    """All patches of an image (H, W) on the grid, in rows: ((H − size + 1)(W − size + 1), size²) if it is every one."""
    patches = sliding_window_view(image, (size, size))
    if grid != EVERY:
        patches = patches[np.ix_(*(grid.starts(length, size) for length in image.shape))]
    return patches.reshape(-1, size * size)


def average(patches: FloatArray, shape: tuple[int, int], size: int, grid: Grid = EVERY) -> FloatArray:
    """The image whose pixels are the averages over the patches that hold them: the left inverse of `extract`."""
    rows, columns = (grid.starts(length, size) for length in shape)
    values = patches.reshape(len(rows), len(columns), size, size)
    total, count = np.zeros(shape), np.zeros(shape)
    for i in range(size):
        for j in range(size):
            total[np.ix_(rows + i, columns + j)] += values[:, :, i, j]
            count[np.ix_(rows + i, columns + j)] += 1.0
    return (total / count).astype(patches.dtype)


@kernel
def cut_patches(buffer, corners, widths, symmetries, size):
    """Cut patches (size², n) from images that lie one after the other in one buffer, each in one of eight symmetries.

    Their upper left pixels are at `corners` of `buffer`, in images of these `widths`.
    """
    patches, last = np.empty((size * size, corners.size)), size - 1
    for n in range(corners.size):
        for row in range(size):
            for column in range(size):
                i = last - row if symmetries[n] & 1 else row
                j = last - column if symmetries[n] & 2 else column
                if symmetries[n] & 4:
                    i, j = j, i
                patches[row * size + column, n] = buffer[corners[n] + i * widths[n] + j]
    return patches


# Sums over a few neighbours, weighted. The terms of a pixel are added one by one, in the order of the weights, and not
# reassociated: so a piece of an array has the bits of the whole, which products of matrices do not promise.


def weighted_sums_plain(values: FloatArray, weights: FloatArray, step: int = 1) -> FloatArray:
    """The twin: Σ_ab weights_ab values_{step·i + a, j + b}, (H, W) → ((H − A) // step + 1, W − B + 1)."""
    height, width = weights.shape
    rows, columns = (len(values) - height) // step + 1, values.shape[1] - width + 1
    total = np.zeros((rows, columns), values.dtype)
    for a in range(height):
        for b in range(width):
            total += weights[a, b] * values[a : a + (rows - 1) * step + 1 : step, b : b + columns]
    return total


def weighted_sums(values: FloatArray, weights: FloatArray, step: int = 1) -> FloatArray:
    """The kernel of `weighted_sums_plain`, in float32."""
    height, width = weights.shape
    shape = ((len(values) - height) // step + 1, values.shape[1] - width + 1)
    total = np.zeros(shape, np.float32)
    _add_weighted(np.ascontiguousarray(values, np.float32), np.asarray(weights, np.float32), step, total)
    return total


@kernel
def _add_weighted(values, weights, step, total):
    """One row of the result at a time, which stays in the cache."""
    for i in range(total.shape[0]):
        row = total[i]
        for a in range(weights.shape[0]):
            source = values[step * i + a]
            for b in range(weights.shape[1]):
                weight = weights[a, b]
                for j in range(row.shape[0]):
                    row[j] += weight * source[j + b]
