"""Sums over a few neighbours, weighted: with the same bits wherever in an array a pixel lies.

The terms of a pixel are added one by one, in the order of the weights, and not reassociated: so a piece of an array has
the bits of the whole, which products of matrices do not promise. `…_plain` is the numpy twin.
"""

from __future__ import annotations

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.compiler import kernel


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
