"""The shapes of every patch, and its posterior mean: the inner loop of denoising with a mixture of Gaussians.

Every patch is explained by some of K shapes k, at several contrasts g. To find them among all costs K products with d×d
matrices for each patch, so four short cuts are taken:

- All shapes are compared at every second patch in either direction only, in a small subspace; the best few are the
  candidates of its neighbours in the same tile.
- Shapes are compared along their main axes, there and among the candidates: candidates.py.
- The posterior mean is over the best shape, or over those nearly as likely at their best contrast.
- It leaves out axes on which a shape hardly differs from noise.

A patch of a colour difference may have a guide, the same patch of the brightness: with probability ½ the guide times a
Gaussian slope is one more part of it, and each component (k, g) comes twice, the second time with covariance
c_g Σ_k + τ² v vᵀ, v being the guide without its mean. The best shape is found without the guide.

`changes_plain` is the numpy twin of all but the first, with all shapes as candidates.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.candidates import (
    LOWEST,
    RUN,
    PrincipalAxes,
    candidates_on_grid,
    cut_centred_patches,
    levels_of_kernels,
    list_by_shape,
    peak,
    peaks_plain,
    take,
)
from heatprior.kernels.compiler import FAST, kernel
from heatprior.scipy_subset import softmax

LANES = 16  # of a vector register
SLOPE = np.float32(2.08)  # τ, of colour differences scaled as border/pixels.py does: of trials on validation images
ROUNDING = np.float32(2e-6)  # of a sum over axes: where there is next to no noise, what is left of it is no less
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
    gains: FloatArray  # (S, G Σ m_k): (G, m_k) for each shape
    keeps: FloatArray  # (S, G Σ m_k)
    constants: FloatArray  # (S, K, G): log π_kg − ½ Σ log(1 + c_g λ / s²)
    full: PrincipalAxes  # of patches, for the candidates
    leading: FloatArray  # the axes of `full` as columns, (K, a, m'): OpenBLAS is faster so
    shared: FloatArray  # the subspace, (q, a)
    coarse: PrincipalAxes  # in the subspace, where all shapes are compared
    whitening: FloatArray  # patches → coordinates in which the noise is white, (d, a); (0, a) where it is as it comes
    window: FloatArray  # how much each pixel of a patch counts in the average, (a,)
    confidences: FloatArray  # how much a patch of each component does, (K, G)
    precisions: FloatArray  # 1 / s², (S,)
    rival: float  # a shape that is less likely than this, the best being 1, has no part in the posterior mean


class Guide(NamedTuple):
    """The patches of the brightness, without their mean, and products with them where the noise is white."""

    patches: FloatArray  # (n, a)
    energies: FloatArray  # |v|², (n,)
    products: FloatArray  # ⟨u, v⟩, (n,)
    precisions: FloatArray  # 1 / s², (S,)


def changes_plain(
    patches: FloatArray, tables: ShapeTables, level: int, guide: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """The twin: patches (n, a) of one noise level → the change of each by its posterior mean; how much it counts."""
    pixels, shapes, contrasts = patches.shape[1], len(tables.begins) - 1, tables.constants.shape[2]
    y = patches - patches.mean(axis=1, keepdims=True)
    whitened = y @ tables.whitening.T if len(tables.whitening) else y
    energy = np.square(whitened).sum(axis=1)
    if guide is not None:
        guide = guide - guide.mean(axis=1, keepdims=True)
        seen = guide @ tables.whitening.T if len(tables.whitening) else guide
        norms, products = np.square(seen).sum(axis=1), (seen * whitened).sum(axis=1)
    levels = np.full(len(y), level)
    peaks_of = np.stack([peaks_plain(y, energy, tables.full, k, levels) for k in range(shapes)], axis=1)  # (n, K)
    shares = np.exp(peaks_of - peaks_of.max(axis=1, keepdims=True))
    shares[shares < tables.rival] = 0.0
    shares /= shares.sum(axis=1, keepdims=True)
    changes, counts = -y, np.zeros(len(y))
    for k in range(shapes):
        begin, end = tables.begins[k : k + 2]
        axes = tables.analysis[begin * pixels : end * pixels].reshape(pixels, -1)
        back = tables.synthesis[begin * pixels : end * pixels].reshape(-1, pixels)
        u = y @ axes
        own = slice(begin * contrasts, end * contrasts)
        gains, keeps = (table[level, own].reshape(contrasts, -1) for table in (tables.gains, tables.keeps))
        logs = u**2 @ gains.T + tables.constants[level, k]  # (n, G)
        if guide is not None:
            v, precision, slope = guide @ axes, tables.precisions[level], float(SLOPE)
            a, b = (
                (whole - kept.sum(axis=1))[:, None] * precision + kept @ (precision - 2.0 * gains.T)
                for whole, kept in ((norms, v**2), (products, u * v))
            )
            f = slope**2 / (1.0 + slope**2 * a)
            gained = 0.5 * f * b**2 - 0.5 * np.log1p(slope**2 * a)
            logs += np.logaddexp(0.0, gained)
        parts = softmax(logs, axis=1)
        clean = (u * (parts @ keeps)) @ back
        if guide is not None:
            weights = parts * f * b * np.exp(gained - np.logaddexp(0.0, gained))  # w_g
            clean += weights.sum(axis=1, keepdims=True) * guide - (v * (weights @ keeps)) @ back
        changes += shares[:, k, None] * clean
        counts += shares[:, k] * (parts @ tables.confidences[k])
    return changes, counts[:, None] * tables.window


def add_changes(
    band: FloatArray,
    size: int,
    places: tuple[IntArray, IntArray],
    levels: IntArray,
    tables: ShapeTables,
    candidates: int,
    total: FloatArray,
    guide: FloatArray | None = None,
) -> None:
    """Add up the changes of the patches of a band (h, w) that begin at these places: rows (m,) and columns (n,).

    `total` (2, h, w) holds their sums, each pixel counted by its weight, and the sums of the weights. `levels` are the
    numbers of the noise levels of the patches, (m, n), or (1, 1) if it is one. Of a colour difference `guide` is the
    brightness, (h, w).

    A kernel for each step, with the tables that it needs: one for all of them takes twice as long to compile.
    """
    rows, columns = map(len, places)
    level, each = levels_of_kernels(levels)
    patches = cut_centred_patches(band, places, size)
    best = candidates_on_grid(patches, rows, levels, tables, candidates)
    firsts, listed = list_by_shape(best, rows, columns, len(tables.begins) - 1)
    seen = _whiten(patches, tables)
    energies = _multiply(seen, seen)
    most = max(np.diff(tables.begins).max(), tables.leading.shape[2])
    room = (
        np.empty((RUN, size * size), np.float32),
        np.empty(5 * RUN * most, np.float32),
        np.empty((3 * tables.constants.shape[2] + 2) * RUN, np.float32),
    )
    logs = np.empty(len(listed), np.float32)
    axes = (tables.leading, tables.full.gains, tables.full.rest, tables.full.constants)
    _peaks_of_candidates(patches, energies, columns, level, each, *axes, firsts, listed, *room, logs)
    firsts, listed, shares = _likely(firsts, listed, logs, len(patches), np.float32(math.log(tables.rival)))
    changes, counts = -patches, np.zeros(len(patches), np.float32)
    beside = None
    if guide is not None:
        own = cut_centred_patches(guide, places, size)
        white = _whiten(own, tables)
        beside = Guide(own, _multiply(white, white), _multiply(white, seen), tables.precisions)
    shapes = (tables.begins, tables.analysis, tables.synthesis, tables.gains, tables.keeps, tables.constants)
    likely = (tables.confidences, firsts, listed, shares)
    _change(patches, columns, level, each, shapes, likely, beside, room, changes, counts)
    _add_patches(changes, counts, tables.window, *places, size, total)


@kernel(fastmath=FAST)
def _peaks_of_candidates(
    patches, energies, columns, level, levels, leading, gains, rest, constants, firsts, listed, y, room, logs, found
):
    """The log-density of every listed patch under the shape that lists it, at its best contrast, into `found`.

    `y`, `room` and `logs` are room for a run of patches, here and in `_change`.
    """
    axes, contrasts = gains.shape[3], gains.shape[2]
    for k in range(len(firsts) - 1):
        for start in range(firsts[k], firsts[k + 1], RUN):
            some = listed[start : min(start + RUN, firsts[k + 1])]
            take(patches, some, y)
            squares = room[: len(some) * axes]
            u = squares.reshape((len(some), axes))
            np.dot(y[: len(some)], leading[k], u)
            for i in range(len(squares)):
                squares[i] *= squares[i]
            if levels is None:
                parts = logs[: len(some) * contrasts].reshape((len(some), contrasts))
                np.dot(u, gains[level, k].T, parts)
                slopes, own = rest[level, k], constants[level, k]
                for i in range(len(some)):
                    highest, own_parts = LOWEST, parts[i]
                    for g in range(contrasts):
                        highest = max(highest, own_parts[g] + (slopes[g] * energies[some[i]] + own[g]))
                    found[start + i] = highest
            else:
                for i in range(len(some)):
                    at = levels[some[i] // columns, some[i] % columns]
                    found[start + i] = peak(u[i], energies[some[i]], gains[at, k], rest[at, k], constants[at, k])


@kernel
def _likely(firsts, listed, logs, count, least):
    """The patches of each shape k, listed[firsts[k] : firsts[k + 1]], where it is no less than a rival; its shares."""
    highest, total = np.full(count, LOWEST, np.float32), np.zeros(count, np.float32)
    kept, numbers, shares = np.zeros_like(firsts), np.empty_like(listed), np.empty_like(logs)
    for i in range(len(listed)):
        highest[listed[i]] = max(highest[listed[i]], logs[i])
    place = 0
    for k in range(len(firsts) - 1):
        for i in range(firsts[k], firsts[k + 1]):
            behind = logs[i] - highest[listed[i]]
            if behind >= least:
                share = np.exp(behind)
                numbers[place], shares[place] = listed[i], share
                total[listed[i]] += share
                place += 1
        kept[k + 1] = place
    for i in range(place):
        shares[i] /= total[numbers[i]]
    return kept, numbers[:place], shares[:place]


def _whiten(patches: FloatArray, tables: ShapeTables) -> FloatArray:
    """Patches (n, a) in coordinates in which the noise is white: as they are, if it is."""
    return np.dot(patches, tables.whitening.T) if len(tables.whitening) else patches


def _multiply(patches: FloatArray, others: FloatArray) -> FloatArray:
    """The inner product of each patch with another: (n,)."""
    return np.asarray(np.einsum("na,na->n", patches, others))


@kernel(fastmath=FAST)
def _change(patches, columns, level, levels, shapes, likely, guide, room, changes, counts):
    """Add to `changes` (n, a), −y, the posterior mean of every patch y, and to `counts` (n,) how much it counts."""
    begins, analysis, synthesis, gains, keeps, constants = shapes
    confidences, firsts, listed, shares = likely
    y, responses, logs = room
    pixels, contrasts = patches.shape[1], constants.shape[2]
    weights, slopes = logs[3 * RUN * contrasts : -RUN], logs[-RUN:]
    for k in range(len(firsts) - 1):
        begin, end = begins[k], begins[k + 1]
        axes = analysis[begin * pixels : end * pixels].reshape((pixels, end - begin))
        back = synthesis[begin * pixels : end * pixels].reshape((end - begin, pixels))
        table, form = slice(begin * contrasts, end * contrasts), (contrasts, end - begin)
        for start in range(firsts[k], firsts[k + 1], RUN):
            some = listed[start : min(start + RUN, firsts[k + 1])]
            count, size = len(some), len(some) * (end - begin)
            take(patches, some, y)
            u = responses[:size].reshape((count, end - begin))
            np.dot(y[:count], axes, u)
            if guide is not None:  # else what is for it is not compiled
                take(guide.patches, some, y)
                v, further = responses[size : 2 * size].reshape(u.shape), responses[2 * size : 5 * size]
                np.dot(y[:count], axes, v)
            for first in range(0, count, count if levels is None else 1):
                at, one = level, slice(0, count)
                if levels is not None:
                    at, one = levels[some[first] // columns, some[first] % columns], slice(first, first + 1)
                gain, keep = gains[at, table].reshape(form), keeps[at, table].reshape(form)
                shape = (gain, keep, constants[at, k], confidences[k])
                if guide is not None:
                    aside = (guide, some[one], guide.precisions[at], slopes[one])
                    _shrink_beside(u[one], v[one], shape, aside, further, logs, weights[one])
                elif levels is None:
                    _shrink_all(u, shape, responses[size:], logs, weights)
                else:
                    weights[first] = _shrink(u[first], shape, responses[size:], logs)
            np.dot(u, back, y[:count])
            for i in range(count):
                share, change, clean = shares[start + i], changes[some[i]], y[i]
                counts[some[i]] += share * weights[i]
                for j in range(pixels):
                    change[j] += share * clean[j]
                if guide is not None:
                    beside, slope = guide.patches[some[i]], share * slopes[i]
                    for j in range(pixels):
                        change[j] += slope * beside[j]


@kernel(fastmath=FAST)
def _add_patches(patches, counts, window, rows, columns, size, total):
    for number in range(len(patches)):
        row, column = rows[number // len(columns)], columns[number % len(columns)]
        own, count = patches[number], counts[number]
        for j in range(size):
            sums, counted = total[0, row + j, column : column + size], total[1, row + j, column : column + size]
            for h in range(size):
                weight = count * window[j * size + h]
                sums[h] += weight * own[j * size + h]
                counted[h] += weight


# Shrinkage of the responses of patches along the axes of a shape: u ← Σ_g P(g | u) keep_g u over its contrasts g, which
# is their posterior mean. Beside it comes by how much a patch counts, Σ_g P(g | u) confidence_g. At one noise level for
# all patches the sums over axes and contrasts are matrix products.


@kernel(inner=True)
def _shrink_all(u, shape, room, logs, counts):
    """`_shrink` for every row of u (n, m), by products; `room` and `logs` are room, `counts` (n,) what it returns."""
    gains, keeps, constants, confidences = shape
    values, logs = u.reshape(-1), logs[: len(u) * len(gains)].reshape((len(u), len(gains)))
    for i in range(len(values)):
        room[i] = values[i] * values[i]
    factors = room[: len(values)].reshape(u.shape)
    np.dot(factors, gains.T, logs)
    _to_probabilities(logs, constants, confidences, counts)
    np.dot(logs, keeps, factors)
    for i in range(len(values)):
        values[i] *= room[i]


@kernel(inner=True)
def _shrink_beside(u, v, shape, aside, room, room_for_logs, counts):
    """`_shrink_all` of patches that may hold a multiple of their guides, whose responses are v: u ← E_k of their means.

    Less Σ_g w_g, into the slopes, times the guide: so axes that are left out count here as well. Of weights
    1/s² − 2 gain on the axes of a shape and 1/s² on all others, a_g = Σ p v², b_g = Σ p v u and
    w_g = P(g, slope | u) f_g b_g, f_g = τ² / (1 + τ² a_g).
    """
    (gains, keeps, constants, confidences), (guide, some, precision, slopes) = shape, aside
    rows, size = len(u), u.size
    values, beside = u.reshape(-1), v.reshape(-1)
    for i in range(size):
        room[i] = values[i] * values[i]
        room[size + i] = values[i] * beside[i]
        room[2 * size + i] = beside[i] * beside[i]
    products = room[: 3 * size].reshape((3 * rows, u.shape[1]))
    logs = room_for_logs[: 3 * rows * len(gains)].reshape((3 * rows, len(gains)))
    np.dot(products, gains.T, logs)
    _see_guides(logs, guide, some, precision)
    _to_probabilities(logs[:rows], constants, confidences, counts)
    for i in range(rows):
        slopes[i] = np.float32(0.0)
        for g in range(len(gains)):
            logs[rows + i, g] *= logs[i, g]
            slopes[i] -= logs[rows + i, g]
    np.dot(logs[: 2 * rows], keeps, products[: 2 * rows])
    for i in range(size):
        values[i] = values[i] * room[i] + beside[i] * room[size + i]


@kernel(inner=True)
def _see_guides(logs, guide, some, precision):
    """Σ_d gain_gd (u², u v, v²)_d, (3 n, G) → what the shape gains by the guides is added to the first n; next −f b."""
    rows, one, square_of_slope = len(some), np.float32(1.0), SLOPE * SLOPE
    for i in range(rows):
        energy, product = guide.energies[some[i]] * precision, guide.products[some[i]] * precision
        for g in range(logs.shape[1]):
            a = max(energy - np.float32(2.0) * logs[2 * rows + i, g], ROUNDING * energy)
            b = product - np.float32(2.0) * logs[rows + i, g]
            wider = one + square_of_slope * a
            f = square_of_slope / wider
            gained = np.float32(0.5) * (f * b * b - np.log(wider))
            small = np.exp(-abs(gained))
            logs[i, g] += max(gained, np.float32(0.0)) + np.log(one + small)
            logs[rows + i, g] = -f * b * ((one if gained > np.float32(0.0) else small) / (one + small))


@kernel(inner=True)
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


@kernel(inner=True)
def _shrink(u, shape, kept, parts):
    """u ← Σ_g P(g | u) keep_g u, and Σ_g P(g | u) confidence_g; `kept` and `parts` are room."""
    gains, keeps, constants, confidences = shape
    contrasts, highest = len(gains), LOWEST
    for g in range(contrasts):
        own, log = gains[g], constants[g]
        for d in range(len(u)):
            log += own[d] * (u[d] * u[d])
        parts[g] = log
        highest = max(highest, log)
    total, count = np.float32(0.0), np.float32(0.0)
    for d in range(len(u)):
        kept[d] = np.float32(0.0)
    for g in range(contrasts):
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
