"""Which patches of an image take part in an average: all, or those on a grid of every second, third … row and column.

Along a side of n pixels the patches begin at 0, offset, offset + stride, offset + 2 stride, … and at n − b: whatever
the stride and the offset, patches reach every edge, and every pixel is in one as long as stride ≤ b.

Of an image too large for memory only a piece may be here. Its grid knows the `whole`, and where in it the piece has its
`corner`, so that the same patches take part, and count as much, as if the whole were here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heatprior.arrays import IntArray
from heatprior.errors import InvalidInputError


class Cells(NamedTuple):
    """Patches that are computed together: those between two successive `rows`, and two successive `columns`, of these.

    What is not rounded the same way at every place of a matrix product has the same bits only if the whole cell has.
    """

    rows: IntArray  # from 0 to the number of rows at which patches may begin
    columns: IntArray


class Grid(NamedTuple):
    """Patches `stride` pixels apart in either direction, from `offset` on, and those at the edges."""

    stride: int = 1
    offset: int = 0
    whole: tuple[int, int] | None = None  # the shape of the image that this is a piece of, if it is one
    corner: tuple[int, int] = (0, 0)

    def of_piece(self, whole: tuple[int, int], corner: tuple[int, int]) -> Grid:
        """The same grid, where only a piece of the image is here."""
        return self._replace(whole=whole, corner=corner)

    def places(self, shape: tuple[int, ...], size: int) -> tuple[IntArray, IntArray]:
        """Rows and columns at which the patches of this image or piece begin, ascending."""
        rows, columns = (
            starts[(starts >= first) & (starts <= first + length - size)] - first
            for starts, first, length in zip(
                (self.starts(length, size) for length in self.whole or shape), self.corner, shape, strict=True
            )
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
        return np.unique(np.concatenate([[0], np.arange(self.offset, last + 1, self.stride), [last]]).astype(np.int64))

    def patches_that_hold(self, length: int, size: int) -> IntArray:
        """How many of them hold each of `length` pixels in a row."""
        steps = np.zeros(length + 1, np.int64)
        starts = self.starts(length, size)
        steps[starts] += 1
        steps[starts + size] -= 1
        return np.cumsum(steps[:-1])


EVERY = Grid()
