"""The shape of every patch, and its posterior mean: the inner loop of denoising with a mixture of Gaussians.

Every patch is explained by one of K shapes k, at several contrasts g. To find it among all shapes costs K products with
d×d matrices for each patch, which is nearly all the work, so three short cuts are taken:

- All shapes are compared at every second patch in either direction only, and there within a small subspace that they
  share; the best few of such a patch are the candidates of its neighbours. (Neighbours within the same tile: a patch at
  the far edge of a tile may have fewer.)
- The candidates of a patch are compared in full, but only along those axes of a shape on which it differs from noise.
- The posterior mean is that of the best shape, over all its contrasts.

`changes_plain` is the numpy twin of the second and third, with all shapes as candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.candidates import (
    LOWEST,
    RUN,
    candidates_on_grid,
    centred_patches,
    corner,
    level_of,
    listed_by_shape,
    square,
    take,
)
from heatprior.kernels.compiler import FAST, kernel

LANES = 16  # of a vector register
UNLIKELY = np.float32(16.0)  # a contrast that is e^16 times less likely than the best has no part: rounding is as large


class ShapeTables(NamedTuple):
    """K shapes at S noise levels, as the loops need them.

    In noise of variance s² the response u along an axis of variance λ adds u² times the gain
    1/2s² − 1/2(c_g λ + s²) to the log-likelihood of its shape, and the part c_g λ / (c_g λ + s²) of it is kept.

    Shape k has m_k axes, a multiple of LANES; they lie one shape after the other, from `begins[k]` a on. Where there
    are fewer, axes, gains and keeps are zero. In correlated noise the axes of analysis whiten the noise, and those of
    synthesis undo that; in white noise they are the same.
    """

    begins: IntArray  # (K + 1,): sums of m_k
    analysis: FloatArray  # (a Σ m_k): axes as columns, (a, m_k) for each shape
    synthesis: FloatArray  # (a Σ m_k): axes as rows, (m_k, a)
    gains: FloatArray  # (S, K, G, m), m the largest m_k
    keeps: FloatArray  # (S, K, G, m)
    constants: FloatArray  # (S, K, G): log π_kg − ½ Σ log(1 + c_g λ / s²)
    shared: FloatArray  # the subspace (q, a)
    coarse_axes: FloatArray  # (K, q', q): axes as rows, zeros from q to a multiple of UNROLLED
    coarse_gains: FloatArray  # (S, K, G, q')
    coarse_constants: FloatArray  # (S, K, G)


def changes_plain(patches: FloatArray, tables: ShapeTables, level: int) -> FloatArray:
    """The twin: patches (n, a) of one noise level → the change of each by its posterior mean."""
    pixels = patches.shape[1]
    y = patches - patches.mean(axis=1, keepdims=True)
    best, changes = np.full(len(y), -np.inf), np.zeros(y.shape)
    for k in range(len(tables.begins) - 1):
        begin, end = tables.begins[k : k + 2]
        axes = tables.analysis[begin * pixels : end * pixels].reshape(pixels, -1)
        back = tables.synthesis[begin * pixels : end * pixels].reshape(-1, pixels)
        u = y @ axes
        logs = u**2 @ tables.gains[level, k, :, : end - begin].T + tables.constants[level, k]  # (n, G)
        peak = logs.max(axis=1)
        parts = np.exp(logs - peak[:, None])
        parts /= parts.sum(axis=1, keepdims=True)
        better = peak > best
        best = np.where(better, peak, best)
        clean = (u * (parts @ tables.keeps[level, k, :, : end - begin])) @ back
        changes = np.where(better[:, None], clean - y, changes)
    return changes


@kernel
def add_changes(tile, size, places, levels, tables, candidates, total):
    """Add to `total` the changes of the patches of a tile that begin at these places: rows (m,) and columns (n,).

    `levels` are the numbers of the noise levels of the patches, (m, n), or (1, 1) if it is one.
    """
    patches = centred_patches(tile, places, size)
    best = candidates_on_grid(patches, len(places[0]), levels, tables, candidates)
    firsts, listed = listed_by_shape(best, len(places[0]), len(places[1]), len(tables.begins) - 1)
    chosen = _best_of_candidates(patches, len(places[1]), levels, tables, firsts, listed)
    firsts, listed = _sorted_by_shape(chosen, len(tables.begins) - 1)
    _replace_by_changes(patches, len(places[1]), levels, tables, firsts, listed)
    _add_patches(patches, places, size, total)


@kernel
def _best_of_candidates(patches, columns, levels, tables, firsts, listed):
    """The best shape of every patch (n, a), `columns` of them in a row: (n,)."""
    count, pixels = patches.shape
    room = np.empty((RUN, pixels), np.float32)
    responses = np.empty(RUN * tables.gains.shape[3], np.float32)
    chosen, highest = np.zeros(count, np.int32), np.full(count, LOWEST, np.float32)
    for k in range(len(firsts) - 1):
        begin, end = tables.begins[k], tables.begins[k + 1]
        axes = tables.analysis[begin * pixels : end * pixels].reshape((pixels, end - begin))
        for start in range(firsts[k], firsts[k + 1], RUN):
            some = listed[start : min(start + RUN, firsts[k + 1])]
            take(patches, some, room)
            u = responses[: len(some) * (end - begin)].reshape((len(some), end - begin))
            np.dot(room[: len(some)], axes, u)
            square(u.reshape(-1))
            for i in range(len(some)):
                level = level_of(levels, some[i], columns)
                value = _peak(u[i], tables.gains[level, k], tables.constants[level, k])
                if value > highest[some[i]]:
                    highest[some[i]] = value
                    chosen[some[i]] = k
    return chosen


@kernel
def _replace_by_changes(patches, columns, levels, tables, firsts, listed):
    """Every patch (n, a) by the change to its posterior mean, in place."""
    pixels, most = patches.shape[1], tables.gains.shape[3]
    room, clean = np.empty((RUN, pixels), np.float32), np.empty((RUN, pixels), np.float32)
    responses, squares = np.empty(RUN * most, np.float32), np.empty(most, np.float32)
    parts = np.empty(tables.gains.shape[2], np.float32)
    for k in range(len(firsts) - 1):
        begin, end = tables.begins[k], tables.begins[k + 1]
        axes = tables.analysis[begin * pixels : end * pixels].reshape((pixels, end - begin))
        back = tables.synthesis[begin * pixels : end * pixels].reshape((end - begin, pixels))
        for start in range(firsts[k], firsts[k + 1], RUN):
            some = listed[start : min(start + RUN, firsts[k + 1])]
            take(patches, some, room)
            u = responses[: len(some) * (end - begin)].reshape((len(some), end - begin))
            np.dot(room[: len(some)], axes, u)
            for i in range(len(some)):
                level = level_of(levels, some[i], columns)
                gains, keeps, constants = tables.gains[level, k], tables.keeps[level, k], tables.constants[level, k]
                _shrink(u[i], gains, keeps, constants, parts, squares[: end - begin])
            np.dot(u, back, clean[: len(some)])
            for i in range(len(some)):
                _subtract(clean[i], patches[some[i]])


@kernel
def _subtract(clean, patch):
    """patch ← clean − patch."""
    for j in range(len(patch)):
        patch[j] = clean[j] - patch[j]


@kernel
def _add_patches(patches, places, size, total):
    for number in range(len(patches)):
        row, column = corner(places, number)
        for j in range(size):
            own, line = patches[number, j * size : (j + 1) * size], total[row + j, column : column + size]
            for h in range(size):
                line[h] += own[h]


@kernel(fastmath=FAST, inline="always")
def _logarithm(squares, gains):
    """Of the density of responses over that of noise, but for a constant, by their squares."""
    value = np.float32(0.0)
    for d in range(len(squares)):
        value += gains[d] * squares[d]
    return value


@kernel(fastmath=FAST)
def _peak(squares, gains, constants):
    """The largest over contrasts of the logarithm of the density, over that of noise."""
    highest = LOWEST
    for g in range(len(constants)):
        highest = max(highest, _logarithm(squares, gains[g]) + constants[g])
    return highest


@kernel(fastmath=FAST)
def _shrink(u, gains, keeps, constants, parts, squares):
    """u ← Σ_g P(g | u) keep_g u; `parts` and `squares` are room."""
    for d in range(len(u)):
        squares[d] = u[d] * u[d]
    highest = LOWEST
    for g in range(len(parts)):
        parts[g] = _logarithm(squares, gains[g]) + constants[g]
        highest = max(highest, parts[g])
    total, kept = np.float32(0.0), squares
    for d in range(len(u)):
        kept[d] = np.float32(0.0)
    for g in range(len(parts)):
        if parts[g] >= highest - UNLIKELY:
            part, keep = np.exp(parts[g] - highest), keeps[g]
            total += part
            for d in range(len(u)):
                kept[d] += part * keep[d]
    scale = np.float32(1.0) / total
    for d in range(len(u)):
        u[d] *= scale * kept[d]


@kernel
def _sorted_by_shape(chosen, shapes):
    """The patches of each shape k: listed[firsts[k] : firsts[k + 1]]."""
    firsts = np.zeros(shapes + 1, np.int64)
    for shape in chosen:
        firsts[shape + 1] += 1
    for k in range(shapes):
        firsts[k + 1] += firsts[k]
    listed, place = np.empty(len(chosen), np.int64), firsts.copy()
    for number in range(len(chosen)):
        shape = chosen[number]
        listed[place[shape]] = number
        place[shape] += 1
    return firsts, listed
