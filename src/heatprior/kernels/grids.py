"""Which patches of an image take part in an average: all, or those on a grid of every second, third … row and column.

Along a side of n pixels the patches begin at 0, offset, offset + stride, offset + 2 stride, … and at n − b: whatever
the stride and the offset, patches reach every edge, and every pixel is in one as long as stride ≤ b.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heatprior.arrays import IntArray
from heatprior.errors import InvalidInputError


class Grid(NamedTuple):
    """Patches `stride` pixels apart in either direction, from `offset` on, and those at the edges."""

    stride: int = 1
    offset: int = 0

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
