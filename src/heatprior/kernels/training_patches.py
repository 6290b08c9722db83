"""Cutting patches out of images that lie one after the other in one buffer, each in one of the eight symmetries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.compiler import kernel


def cut_patches(
    buffer: NDArray[Any], corners: IntArray, widths: IntArray, symmetries: IntArray, size: int
) -> FloatArray:
    """Patches (size², n) whose upper left pixels stand at `corners` of `buffer`, in images of these `widths`."""
    patches = np.empty((size * size, corners.size))
    _cut(buffer, corners, widths, symmetries, size, patches)
    return patches


@kernel
def _cut(buffer, corners, widths, symmetries, size, patches):
    last = size - 1
    for n in range(corners.size):
        for row in range(size):
            for column in range(size):
                i = last - row if symmetries[n] & 1 else row
                j = last - column if symmetries[n] & 2 else column
                if symmetries[n] & 4:
                    i, j = j, i
                patches[row * size + column, n] = buffer[corners[n] + i * widths[n] + j]
