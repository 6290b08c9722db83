"""The shapes of every patch, and its posterior mean: the inner loop of denoising with a mixture of Gaussians.

Every patch is explained by one of K shapes k, at several contrasts g. To find it among all shapes costs K products with
d×d matrices for each patch, which is nearly all the work, so three short cuts are taken:

- All shapes are compared within few dimensions only (candidates.py), and at patches at least two pixels apart: where
  there are patches in between, the best few of a patch are the candidates of its neighbours. (Neighbours within the
  same tile: a patch at the far edge of a tile may have fewer.)
- The candidates of a patch are compared in full, but only along those axes of a shape on which it differs from noise.
- The posterior mean is that of the best shape, over all its contrasts; or it is mixed from those of the candidates.

`changes_plain` is the numpy twin of the second and third, with all shapes as candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.candidates import (
    LOWEST,
    candidates_on_grid,
    gather,
    level_of,
    listed_by_shape,
    logarithm_of,
    peak_of,
)
from heatprior.kernels.compiler import FAST, kernel

LANES = 16  # of a vector register
RUN = 240  # patches in one product: OpenBLAS has a faster way for 240 × 64 × 63 than for more
SMALL = np.float32(1 / 8)  # part of a candidate in the mean of a patch, over that of the best, below which it has none


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
    coarse_axes: FloatArray  # (K, q, q): axes as columns
    coarse_gains: FloatArray  # (S, K, G, q)
    coarse_constants: FloatArray  # (S, K, G)
    first_forms: FloatArray  # of the first q0 dimensions of the subspace, at some contrasts (S, K, G', q0 (q0 + 1) / 2)
    first_constants: FloatArray  # (S, K, G')


def changes_plain(patches: FloatArray, tables: ShapeTables, level: int, *, mixed: bool = False) -> FloatArray:
    """The twin: patches (n, a) of one noise level → the change of each by its posterior mean."""
    pixels = patches.shape[1]
    y = patches - patches.mean(axis=1, keepdims=True)
    peaks, means = [], []
    for k in range(len(tables.begins) - 1):
        begin, end = tables.begins[k : k + 2]
        axes = tables.analysis[begin * pixels : end * pixels].reshape(pixels, -1)
        back = tables.synthesis[begin * pixels : end * pixels].reshape(-1, pixels)
        u = y @ axes
        logs = u**2 @ tables.gains[level, k, :, : end - begin].T + tables.constants[level, k]  # (n, G)
        peaks.append(logs.max(axis=1))
        parts = np.exp(logs - peaks[-1][:, None])
        parts /= parts.sum(axis=1, keepdims=True)
        means.append((u * (parts @ tables.keeps[level, k, :, : end - begin])) @ back)
    of_shapes = np.exp(np.array(peaks) - np.max(peaks, axis=0))  # (K, n)
    kept = np.where(of_shapes >= (SMALL if mixed else 1.0), of_shapes, 0.0)
    return np.asarray(np.einsum("kn,kna->na", kept / kept.sum(axis=0), np.array(means)) - y)


@kernel
def add_changes(tile, size, places, levels, tables, candidates, apart, mixed, total):
    """Add to `total` the changes of the patches of a tile that begin at these places: rows (m,) and columns (n,).

    `levels` are the numbers of the noise levels of the patches, (m, n), or (1, 1) if it is one. Shapes are compared at
    every `apart`-th patch; the means under the candidates are `mixed`, or that of the best is taken.
    """
    shapes, columns = len(tables.begins) - 1, len(places[1])
    patches = _centred(tile, size, places)
    best = candidates_on_grid(patches, columns, levels, tables, candidates, apart)
    firsts, listed = listed_by_shape(best, len(places[0]), columns, shapes, apart)
    peaks = _peaks_of_candidates(patches, columns, levels, tables, firsts, listed)
    parts = _parts_of_candidates(peaks, listed, len(patches), mixed)
    firsts, listed, parts = _without_zeros(firsts, listed, parts)
    _add_posterior_means(patches, size, places, levels, tables, firsts, listed, parts, total)


@kernel(fastmath=FAST)
def _centred(tile, size, places):
    """Patches without their means, row by row of the places (rows, columns)."""
    patches = np.empty((len(places[0]) * len(places[1]), size * size), np.float32)
    number = 0
    for row in places[0]:
        for column in places[1]:
            patch, mean = patches[number], np.float32(0.0)
            for j in range(size):
                for h in range(size):
                    patch[j * size + h] = tile[row + j, column + h]
            for j in range(len(patch)):
                mean += patch[j]
            mean /= np.float32(len(patch))
            for j in range(len(patch)):
                patch[j] -= mean
            number += 1
    return patches


@kernel
def _responses(patches, some, tables, k, room, responses):
    """Of these patches along the axes of a shape, (n, m_k); `room` has then the patches themselves."""
    begin, end, pixels = tables.begins[k], tables.begins[k + 1], patches.shape[1]
    axes = tables.analysis[begin * pixels : end * pixels].reshape((pixels, end - begin))
    gather(patches, some, room)
    u = responses[: len(some) * (end - begin)].reshape((len(some), end - begin))
    np.dot(room[: len(some)], axes, u)
    return u


@kernel
def _peaks_of_candidates(patches, columns, levels, tables, firsts, listed):
    """How well each shape explains the patches that are listed for it, in nats above noise alone."""
    room, responses = np.empty((RUN, patches.shape[1]), np.float32), _room_of_responses(tables)
    peaks = np.empty(len(listed), np.float32)
    for k in range(len(firsts) - 1):
        for start in range(firsts[k], firsts[k + 1], RUN):
            some = listed[start : min(start + RUN, firsts[k + 1])]
            u = _responses(patches, some, tables, k, room, responses)
            for i in range(len(some)):
                level = level_of(levels, some[i], columns)
                peaks[start + i] = peak_of(u[i], tables.gains[level, k], tables.constants[level, k])
    return peaks


@kernel
def _parts_of_candidates(peaks, listed, count, mixed):
    """What each candidate adds to the mean of its patch: by its probability; or the best one all, if not `mixed`."""
    highest, totals = np.full(count, LOWEST, np.float32), np.zeros(count, np.float32)
    for pair in range(len(listed)):
        highest[listed[pair]] = max(highest[listed[pair]], peaks[pair])
    parts = np.zeros(len(listed), np.float32)
    for pair in range(len(listed)):
        number = listed[pair]
        if mixed:
            part = np.exp(peaks[pair] - highest[number])
            parts[pair] = part if part >= SMALL else np.float32(0.0)
        elif peaks[pair] == highest[number] and totals[number] == 0.0:
            parts[pair] = np.float32(1.0)
        totals[number] += parts[pair]
    for pair in range(len(listed)):
        parts[pair] /= totals[listed[pair]]
    return parts


@kernel
def _without_zeros(firsts, listed, parts):
    """The lists without what adds nothing."""
    kept, place = np.zeros_like(firsts), 0
    numbers, some = np.empty_like(listed), np.empty_like(parts)
    for k in range(len(firsts) - 1):
        for pair in range(firsts[k], firsts[k + 1]):
            if parts[pair] > 0.0:
                numbers[place], some[place] = listed[pair], parts[pair]
                place += 1
        kept[k + 1] = place
    return kept, numbers[:place], some[:place]


@kernel
def _add_posterior_means(patches, size, places, levels, tables, firsts, listed, parts, total):
    columns, pixels = len(places[1]), size * size
    room, responses = np.empty((RUN, pixels), np.float32), _room_of_responses(tables)
    clean, of_contrasts = np.empty((RUN, pixels), np.float32), np.empty(tables.gains.shape[2], np.float32)
    keep = np.empty(tables.gains.shape[3], np.float32)
    for k in range(len(firsts) - 1):
        begin, end = tables.begins[k], tables.begins[k + 1]
        back = tables.synthesis[begin * pixels : end * pixels].reshape((end - begin, pixels))
        for start in range(firsts[k], firsts[k + 1], RUN):
            some = listed[start : min(start + RUN, firsts[k + 1])]
            u = _responses(patches, some, tables, k, room, responses)
            for i in range(len(some)):
                level = level_of(levels, some[i], columns)
                gains, keeps, constants = tables.gains[level, k], tables.keeps[level, k], tables.constants[level, k]
                _shrink(u[i], gains, keeps, constants, of_contrasts, keep)
            np.dot(u, back, clean[: len(some)])
            for i in range(len(some)):
                row, column = places[0][some[i] // columns], places[1][some[i] % columns]
                _add_patch(total[row : row + size, column : column + size], clean[i], room[i], parts[start + i])


@kernel
def _room_of_responses(tables):
    """Of RUN patches to any shape."""
    return np.empty(RUN * tables.gains.shape[3], np.float32)


@kernel(fastmath=FAST, inline="always")
def _add_patch(window, clean, noisy, part):
    """window += part (clean − noisy)."""
    for j in range(window.shape[0]):
        for h in range(window.shape[1]):
            place = j * window.shape[1] + h
            window[j, h] += part * (clean[place] - noisy[place])


@kernel(fastmath=FAST)
def _shrink(u, gains, keeps, constants, parts, clean):
    """u ← Σ_g P(g | u) keep_g u; `parts` (G,) and `clean` are room for it."""
    highest = LOWEST
    for g in range(len(parts)):
        parts[g] = logarithm_of(u, gains[g]) + constants[g]
        highest = max(highest, parts[g])
    total = np.float32(0.0)
    for g in range(len(parts)):
        parts[g] = np.exp(parts[g] - highest)
        total += parts[g]
    for d in range(len(u)):
        clean[d] = np.float32(0.0)
    for g in range(len(parts)):
        part, keep = parts[g] / total, keeps[g]
        for d in range(len(u)):
            clean[d] += part * keep[d]
    for d in range(len(u)):
        u[d] *= clean[d]
