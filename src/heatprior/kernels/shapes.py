"""The shape of every patch, and its posterior mean: the inner loop of denoising with a mixture of Gaussians.

Every patch is explained by one of K shapes k, at several contrasts g. To find it among all shapes costs K products with
d×d matrices for each patch, which is nearly all the work, so four short cuts are taken:

- All shapes are compared at every second patch in either direction only, and there within a small subspace that they
  share; the best few of such a patch are the candidates of its neighbours. (Neighbours within the same tile: a patch at
  the far edge of a tile may have fewer.)
- Shapes are compared along their main axes, there and among the candidates: principal_axes.py.
- The posterior mean is that of the best shape, over all its contrasts.
- It leaves out axes on which a shape hardly differs from noise.

`changes_plain` is the numpy twin of all but the first, with all shapes as candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.candidates import (
    RUN,
    candidates_on_grid,
    centred_patches,
    corner,
    level_of,
    listed_by_shape,
    take,
)
from heatprior.kernels.compiler import FAST, kernel
from heatprior.kernels.principal_axes import LOWEST, PrincipalAxes, peak, peaks, peaks_plain, square, weighted

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
    full: PrincipalAxes  # of patches, for the candidates
    shared: FloatArray  # the subspace, (q, a)
    coarse: PrincipalAxes  # in the subspace, where all shapes are compared
    whitening: FloatArray  # patches → coordinates in which the noise is white, (d, a); (0, a) where it is as it comes


def changes_plain(patches: FloatArray, tables: ShapeTables, level: int) -> FloatArray:
    """The twin: patches (n, a) of one noise level → the change of each by its posterior mean."""
    pixels = patches.shape[1]
    y = patches - patches.mean(axis=1, keepdims=True)
    energy = np.square(y @ tables.whitening.T if len(tables.whitening) else y).sum(axis=1)
    levels, best, changes = np.full(len(y), level), np.full(len(y), -np.inf), np.zeros(y.shape)
    for k in range(len(tables.begins) - 1):
        begin, end = tables.begins[k : k + 2]
        axes = tables.analysis[begin * pixels : end * pixels].reshape(pixels, -1)
        back = tables.synthesis[begin * pixels : end * pixels].reshape(-1, pixels)
        u = y @ axes
        logs = u**2 @ tables.gains[level, k, :, : end - begin].T + tables.constants[level, k]  # (n, G)
        parts = np.exp(logs - logs.max(axis=1, keepdims=True))
        parts /= parts.sum(axis=1, keepdims=True)
        highest = peaks_plain(y, energy, tables.full, k, levels)
        better = highest > best
        best = np.where(better, highest, best)
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
    count = len(patches)
    room, energies = np.empty((RUN, patches.shape[1]), np.float32), _energies(patches, tables.whitening)
    chosen, highest = np.zeros(count, np.int32), np.full(count, LOWEST, np.float32)
    found, energy = np.empty(RUN, np.float32), np.empty(RUN, np.float32)
    responses, logs = np.empty(RUN * tables.full.axes.shape[1], np.float32), np.empty(RUN, np.float32)
    for k in range(len(firsts) - 1):
        for start in range(firsts[k], firsts[k + 1], RUN):
            some = listed[start : min(start + RUN, firsts[k + 1])]
            y, own, values = room[: len(some)], energy[: len(some)], found[: len(some)]
            take(patches, some, y)
            for i in range(len(some)):
                own[i] = energies[some[i]]
            if levels.size == 1:
                _peaks_of_one_level(y, own, tables.full, k, levels[0, 0], responses, values, logs[: len(some)])
            else:
                _peaks_of_levels(y, own, tables.full, k, levels, some, columns, responses, values)
            for i in range(len(some)):
                number = some[i]
                if values[i] > highest[number]:
                    highest[number] = values[i]
                    chosen[number] = k
    return chosen


@kernel
def _peaks_of_one_level(y, energies, full, k, level, responses, found, logs):
    """The largest log-density of shape k over contrasts, of patches y (n, a), many of them in a register."""
    u = responses[: full.axes.shape[1] * len(y)].reshape((full.axes.shape[1], len(y)))
    np.dot(full.axes[k], y.T, u)
    square(u.reshape(-1))
    peaks(u, energies, full.gains[level, k], full.rest[level, k], full.constants[level, k], found, logs)


@kernel
def _peaks_of_levels(y, energies, full, k, levels, numbers, columns, responses, found):
    """The same for one noise level per patch, many axes in a register."""
    u = responses[: len(y) * full.axes.shape[1]].reshape((len(y), full.axes.shape[1]))
    np.dot(y, full.axes[k].T, u)
    square(u.reshape(-1))
    for i in range(len(y)):
        level = level_of(levels, numbers[i], columns)
        found[i] = peak(u[i], energies[i], full.gains[level, k], full.rest[level, k], full.constants[level, k])


@kernel
def _energies(patches, whitening):
    """|y|² of patches (n, a) without their mean, in coordinates in which the noise is white: (n,)."""
    energies = np.empty(len(patches), np.float32)
    for start in range(0, len(patches), RUN):
        some = patches[start : start + RUN]
        y = np.dot(some, whitening.T) if len(whitening) > 0 else some
        for i in range(len(some)):
            energies[start + i] = weighted(y[i], y[i])
    return energies


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


@kernel(fastmath=FAST)
def _shrink(u, gains, keeps, constants, parts, squares):
    """u ← Σ_g P(g | u) keep_g u; `parts` and `squares` are room."""
    for d in range(len(u)):
        squares[d] = u[d] * u[d]
    highest = LOWEST
    for g in range(len(parts)):
        parts[g] = weighted(squares, gains[g]) + constants[g]
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
