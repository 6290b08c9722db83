"""Shapes compared along their main axes only: the rest of a shape counts as if it had one variance.

Of a covariance c Σ + s² Id the largest c λ_d are kept, and those left out are replaced by their mean: probabilistic PCA
(Tipping and Bishop 1999), the nearest covariance of that form in likelihood. With ρ the gain of the mean, the
log-density over that of noise, Σ_d gain_d u_d² + constant, becomes Σ_kept (gain_d − ρ) u_d² + ρ |y|² + constant: the
patch meets a few axes instead of all, and its energy |y|² is the same for all shapes. `…_plain` is the numpy twin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.compiler import FAST, fetch, kernel, read, widest_vectors, write

LOWEST = np.float32(-3e38)  # not infinite: fast arithmetic takes every number for finite
UNROLLED = 8  # axes that are added up in one pass; their number is a multiple of it


class PrincipalAxes(NamedTuple):
    """K shapes at G contrasts and S noise levels, along the m' largest axes of each; zeros where there are fewer."""

    axes: FloatArray  # (K, m', a), as rows
    gains: FloatArray  # (S, K, G, m'): beyond that of the rest
    rest: FloatArray  # (S, K, G): the gain of all axes that are left out
    constants: FloatArray  # (S, K, G)


def peaks_plain(y: FloatArray, energy: FloatArray, shapes: PrincipalAxes, k: int, levels: IntArray) -> FloatArray:
    """The twin: the largest log-density of shape k over contrasts, of patches (n, a) of these noise levels: (n,)."""
    squares = (y @ shapes.axes[k].T) ** 2
    logs = (shapes.gains[levels, k] * squares[:, None, :]).sum(axis=-1)  # (n, G)
    return np.asarray((logs + shapes.rest[levels, k] * energy[:, None] + shapes.constants[levels, k]).max(axis=-1))


@kernel(fastmath=FAST)
def square(values):
    """values ← values², (n,)."""
    widest_vectors()
    for i in range(len(values)):
        values[i] *= values[i]


@kernel(fastmath=FAST)
def peak(squares, energy, gains, rest, constants):
    """The largest log-density over contrasts, of one patch whose responses have these squares (m',)."""
    highest = LOWEST
    for g in range(len(constants)):
        highest = max(highest, weighted(squares, gains[g]) + (rest[g] * energy + constants[g]))
    return highest


@kernel(fastmath=FAST, inline="always")
def weighted(values, weights):
    """Σ_d weight_d value_d."""
    total = np.float32(0.0)
    for d in range(len(values)):
        total += weights[d] * values[d]
    return total


@kernel(fastmath=FAST)
def peaks(squares, energies, gains, rest, constants, highest, logs):
    """The same for each column of squares (m', n), into `highest` (n,); `logs` (n,) is room."""
    widest_vectors()
    highest[:] = LOWEST
    for g in range(len(gains)):
        slope, constant = rest[g], constants[g]
        for i in range(len(logs)):
            logs[i] = slope * energies[i] + constant
        for d in range(0, len(squares), UNROLLED):
            _add_weighted(squares[d : d + UNROLLED], gains[g, d : d + UNROLLED], logs)
        for i in range(len(logs)):
            highest[i] = max(highest[i], logs[i])


@kernel(fastmath=FAST, inline="always")
def _add_weighted(rows, weights, total):
    """total += Σ_d weight_d row_d of UNROLLED rows: one pass over the total, where a loop over d makes eight."""
    a, b, c, d, e, f, g, h = rows[0], rows[1], rows[2], rows[3], rows[4], rows[5], rows[6], rows[7]
    i, j, k, m = weights[0], weights[1], weights[2], weights[3]
    n, o, p, q = weights[4], weights[5], weights[6], weights[7]
    for x in range(len(total)):
        left = (i * fetch(a, x) + j * fetch(b, x)) + (k * fetch(c, x) + m * fetch(d, x))
        right = (n * fetch(e, x) + o * fetch(f, x)) + (p * fetch(g, x) + q * fetch(h, x))
        write(total, x, read(total, x) + (left + right))
