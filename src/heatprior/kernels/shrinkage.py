"""The responses of patches along the axes of a shape, shrunk: u ← Σ_g P(g | u) keep_g u over its contrasts g.

That is their posterior mean. Beside it comes by how much a patch counts, Σ_g P(g | u) confidence_g. At one noise level
for all patches the sums over axes and contrasts are matrix products. `changes_plain` in shapes.py is the numpy twin.
"""

from __future__ import annotations

import numpy as np

from heatprior.kernels.candidates import level_of
from heatprior.kernels.compiler import FAST, kernel, widest_vectors
from heatprior.kernels.principal_axes import LOWEST, weighted

UNLIKELY = np.float32(16.0)  # a contrast that is e^16 times less likely than the best has no part: rounding is as large


@kernel
def shrink_at_one_level(u, tables, k, level, parts, kept, counts):
    """`_shrink` for every row of u (n, m), by products; `parts` and `kept` are room, `counts` (n,) what it returns."""
    rows, axes = u.shape
    gains, keeps = tables.gains[level, k, :, :axes], tables.keeps[level, k, :, :axes]
    logs, factors = parts[: rows * len(gains)].reshape((rows, len(gains))), kept[: u.size].reshape(u.shape)
    _square_into(u.reshape(-1), factors.reshape(-1))
    np.dot(factors, np.ascontiguousarray(gains.T), logs)
    _to_probabilities(logs, tables.constants[level, k], tables.confidences[k], counts)
    np.dot(logs, np.ascontiguousarray(keeps), factors)
    _scale(u.reshape(-1), factors.reshape(-1))


@kernel(fastmath=FAST)
def _square_into(values, squares):
    widest_vectors()
    for i in range(len(values)):
        squares[i] = values[i] * values[i]


@kernel(fastmath=FAST)
def _scale(values, factors):
    widest_vectors()
    for i in range(len(values)):
        values[i] *= factors[i]


@kernel(fastmath=FAST)
def _to_probabilities(logs, constants, confidences, counts):
    """Of the contrasts, P(g | u), in place of Σ_d gain_gd u_d² (n, G); and Σ_g P(g | u) confidence_g, (n,)."""
    for i in range(len(logs)):
        parts, highest = logs[i], LOWEST
        for g in range(len(parts)):
            parts[g] += constants[g]
            highest = max(highest, parts[g])
        total, count = np.float32(0.0), np.float32(0.0)
        for g in range(len(parts)):
            parts[g] = np.exp(parts[g] - highest) if parts[g] >= highest - UNLIKELY else np.float32(0.0)
            total += parts[g]
            count += parts[g] * confidences[g]
        scale = np.float32(1.0) / total
        for g in range(len(parts)):
            parts[g] *= scale
        counts[i] = scale * count


@kernel
def shrink_at_levels(u, tables, k, levels, numbers, columns, parts, kept, counts):
    """The same for one noise level per patch."""
    contrasts, axes = tables.gains.shape[2], u.shape[1]
    for i in range(len(u)):
        level = level_of(levels, numbers[i], columns)
        gains, keeps, constants = tables.gains[level, k], tables.keeps[level, k], tables.constants[level, k]
        counts[i] = _shrink(u[i], gains, keeps, constants, tables.confidences[k], parts[:contrasts], kept[:axes])


@kernel(fastmath=FAST)
def _shrink(u, gains, keeps, constants, confidences, parts, squares):
    """u ← Σ_g P(g | u) keep_g u, and Σ_g P(g | u) confidence_g; `parts` and `squares` are room."""
    widest_vectors()
    for d in range(len(u)):
        squares[d] = u[d] * u[d]
    highest = LOWEST
    for g in range(len(parts)):
        parts[g] = weighted(squares, gains[g]) + constants[g]
        highest = max(highest, parts[g])
    total, count, kept = np.float32(0.0), np.float32(0.0), squares
    for d in range(len(u)):
        kept[d] = np.float32(0.0)
    for g in range(len(parts)):
        if parts[g] >= highest - UNLIKELY:
            part, keep = np.exp(parts[g] - highest), keeps[g]
            total += part
            count += part * confidences[g]
            for d in range(len(u)):
                kept[d] += part * keep[d]
    scale = np.float32(1.0) / total
    for d in range(len(u)):
        u[d] *= scale * kept[d]
    return scale * count
