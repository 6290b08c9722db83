"""Images ↔ patches: every b×b patch of an image, and the image that averages overlapping patches."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from heatprior.arrays import FloatArray


def extract(image: FloatArray, size: int) -> FloatArray:
    """All patches of an image (H, W), in rows: ((H − size + 1)(W − size + 1), size²)."""
    return sliding_window_view(image, (size, size)).reshape(-1, size * size)


def average(patches: FloatArray, shape: tuple[int, int], size: int) -> FloatArray:
    """The image whose pixels are the averages over the patches that hold them: the left inverse of `extract`."""
    rows, columns = shape[0] - size + 1, shape[1] - size + 1
    grid = patches.reshape(rows, columns, size, size)
    total, count = np.zeros(shape), np.zeros(shape)
    for i in range(size):
        for j in range(size):
            total[i : i + rows, j : j + columns] += grid[:, :, i, j]
            count[i : i + rows, j : j + columns] += 1.0
    return (total / count).astype(patches.dtype)
