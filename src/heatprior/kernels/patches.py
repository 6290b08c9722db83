"""Images ↔ patches: every b×b patch of an image, and the image that averages overlapping patches."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from heatprior.arrays import FloatArray
from heatprior.kernels.grids import EVERY, Grid


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
