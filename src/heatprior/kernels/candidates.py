"""Which shapes may explain a patch: all are compared on a grid, in a subspace, and the best few are handed on.

The first of the short cuts of shapes.py, and by far the one that saves most. `…_plain` are the numpy twins.

Of a covariance c Σ + s² Id the largest c λ_d are kept, and those left out are replaced by their mean: probabilistic PCA
(Tipping and Bishop 1999). With ρ the gain of the mean, the log-density over that of noise, Σ_d gain_d u_d² + constant,
becomes Σ_kept (gain_d − ρ) u_d² + ρ |y|² + constant: a few axes instead of all, and |y|² is the same for all shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.compiler import FAST, fetch, kernel, read, write

if TYPE_CHECKING:
    from heatprior.kernels.shapes import ShapeTables

CANDIDATES = 4  # of a patch on the grid, handed to its neighbours
GRID = 2  # patches from one at which all shapes are compared to the next, in either direction
SIMILAR = 2  # noise levels apart that count as one where all shapes are compared
TOGETHER = 10  # shapes in one product in the subspace: the BLAS packs the patches once for all of them
RUN = 240  # patches in one product: OpenBLAS has a faster way for 240 × 64 × 63, and 240 × 10 · 16 × 24, than for more
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


@kernel(inner=True)
def peak(squares, energy, gains, rest, constants):
    """The largest log-density over contrasts, of one patch whose responses have these squares (m',)."""
    highest = LOWEST
    for g in range(len(constants)):
        weights, log = gains[g], rest[g] * energy + constants[g]
        for d in range(len(squares)):
            log += weights[d] * squares[d]
        highest = max(highest, log)
    return highest


@kernel(inner=True)
def peaks(squares, energies, gains, rest, constants, highest, logs):
    """The same for each column of squares (m', n), into `highest` (n,); `logs` (n,) is room."""
    for g in range(len(gains)):
        slope, constant, weights = rest[g], constants[g], gains[g]
        for i in range(len(logs)):
            logs[i] = slope * energies[i] + constant
        for d in range(0, len(squares), UNROLLED):  # one pass over the logs, where a loop over each d makes eight
            r0, r1, r2, r3 = squares[d], squares[d + 1], squares[d + 2], squares[d + 3]
            r4, r5, r6, r7 = squares[d + 4], squares[d + 5], squares[d + 6], squares[d + 7]
            w0, w1, w2, w3 = weights[d], weights[d + 1], weights[d + 2], weights[d + 3]
            w4, w5, w6, w7 = weights[d + 4], weights[d + 5], weights[d + 6], weights[d + 7]
            for i in range(len(logs)):
                left = (w0 * fetch(r0, i) + w1 * fetch(r1, i)) + (w2 * fetch(r2, i) + w3 * fetch(r3, i))
                right = (w4 * fetch(r4, i) + w5 * fetch(r5, i)) + (w6 * fetch(r6, i) + w7 * fetch(r7, i))
                write(logs, i, read(logs, i) + (left + right))
        for i in range(len(logs)):
            highest[i] = logs[i] if g == 0 else max(highest[i], logs[i])


def candidates_on_grid_plain(patches: FloatArray, levels: IntArray, tables: ShapeTables, candidates: int) -> IntArray:
    """The twin, but for SIMILAR levels: patches (m, n, a), levels (m, n) → the best shapes at every GRID-th patch."""
    y, level = patches[::GRID, ::GRID], levels[::GRID, ::GRID]
    coarse = ((y - y.mean(axis=-1, keepdims=True)) @ tables.shared.T).reshape(-1, len(tables.shared))  # (n, q)
    energy, shapes = (coarse**2).sum(axis=-1), len(tables.begins) - 1
    found = np.stack([peaks_plain(coarse, energy, tables.coarse, k, level.ravel()) for k in range(shapes)], axis=-1)
    best = np.argsort(-found, axis=-1, kind="stable")[:, :candidates]
    return np.asarray(best.reshape(*level.shape, -1), np.int32)


def list_by_shape_plain(best: IntArray, rows: int, columns: int, shapes: int) -> list[list[int]]:
    """The twin: for each shape the numbers of the patches of which it is a candidate, ascending."""
    listed: list[list[int]] = [[] for _ in range(shapes)]
    for number in range(rows * columns):
        row, column = divmod(number, columns)
        around = best[row // GRID : (row + GRID - 1) // GRID + 1, column // GRID : (column + GRID - 1) // GRID + 1]
        for shape in np.unique(around):
            listed[shape].append(number)
    return listed


def levels_of_kernels(levels: IntArray) -> tuple[int, IntArray | None]:
    """The noise level of all patches, or that of each: what is None is not compiled for."""
    return int(levels.flat[0]), None if levels.size == 1 else levels


def candidates_on_grid(
    patches: FloatArray, rows: int, levels: IntArray, tables: ShapeTables, candidates: int
) -> IntArray:
    """The best shapes of every GRID-th of so many rows of centred patches (n, a): (rows, columns, candidates)."""
    some = patches.reshape(rows, -1, patches.shape[1])[::GRID, ::GRID]
    y = np.dot(some.reshape(-1, patches.shape[1]), tables.shared.T)
    best, values = np.zeros((len(y), candidates), np.int32), np.empty((RUN, candidates), np.float32)
    level, each = levels_of_kernels(np.ravel(levels[::GRID, ::GRID]))
    shapes, axes, dimension = tables.coarse.axes.shape
    stacked = tables.coarse.axes.reshape(shapes * axes, dimension)
    room, energies = np.empty(TOGETHER * axes * RUN, np.float32), np.einsum("nq,nq->n", y, y)
    highest, logs = np.empty((2, RUN), np.float32)
    own = (tables.coarse.gains, tables.coarse.rest, tables.coarse.constants)
    _find_candidates(y, energies, level, each, stacked, *own, room, highest, logs, values, best)
    return best.reshape(*some.shape[:2], candidates)


@kernel(fastmath=FAST)
def _find_candidates(y, energies, level, levels, axes, gains, rest, constants, room, highest, logs, values, best):
    """The shapes of highest density in the subspace, of patches (n, q) there; runs of them have nearly one level."""
    shapes, kept, start = gains.shape[1], gains.shape[3], 0
    while start < len(best):
        end = min(start + RUN, len(best))
        if levels is not None:
            level = levels[start]
            for i in range(start, end):
                if abs(levels[i] - level) > SIMILAR:
                    end = i
                    break
        count = end - start
        values[:] = LOWEST
        for first in range(0, shapes, TOGETHER):
            last = min(first + TOGETHER, shapes)
            squares = room[: (last - first) * kept * count]
            responses = squares.reshape(((last - first) * kept, count))
            np.dot(axes[first * kept : last * kept], y[start:end].T, responses)
            for i in range(len(squares)):
                squares[i] *= squares[i]
            for k in range(first, last):
                own = responses[(k - first) * kept : (k - first + 1) * kept]
                slopes, offsets = rest[level, k], constants[level, k]
                peaks(own, energies[start:end], gains[level, k], slopes, offsets, highest[:count], logs[:count])
                _insert(highest[:count], k, values, best[start:end])
        start = end


@kernel(inner=True)
def _insert(found, shape, values, best):
    """Put a shape among the best of each patch, if it is one: values (n, wanted), falling, and numbers beside them."""
    last = values.shape[1] - 1
    for i in range(len(found)):
        if found[i] > values[i, last]:
            place = last
            while place > 0 and found[i] > values[i, place - 1]:
                values[i, place] = values[i, place - 1]
                best[i, place] = best[i, place - 1]
                place -= 1
            values[i, place] = found[i]
            best[i, place] = shape


@kernel
def list_by_shape(best, rows, columns, shapes):
    """The patches for which each shape k is a candidate: listed[firsts[k] : firsts[k + 1]]."""
    count = rows * columns
    most = min(4 * best.shape[2], shapes)  # at most four patches of the grid are neighbours
    found, many = np.empty((count, most), np.int32), np.zeros(count, np.int32)
    last = np.full(shapes, -1, np.int64)  # patch that has listed a shape last: none lists one twice
    firsts = np.zeros(shapes + 1, np.int64)
    for row in range(rows):
        for column in range(columns):
            number = row * columns + column
            for i in range(row // GRID, min((row + GRID - 1) // GRID, best.shape[0] - 1) + 1):
                for j in range(column // GRID, min((column + GRID - 1) // GRID, best.shape[1] - 1) + 1):
                    for h in range(best.shape[2]):
                        shape = best[i, j, h]
                        if last[shape] != number:
                            last[shape] = number
                            found[number, many[number]] = shape
                            many[number] += 1
                            firsts[shape + 1] += 1
    for shape in range(shapes):
        firsts[shape + 1] += firsts[shape]
    place, listed = firsts.copy(), np.empty(firsts[shapes], np.int64)
    for number in range(count):
        for other in range(many[number]):
            shape = found[number, other]
            listed[place[shape]] = number
            place[shape] += 1
    return firsts, listed


@kernel(inner=True)
def take(patches, numbers, room):
    """The patches of these numbers, one after the other."""
    for i in range(len(numbers)):
        source, target = patches[numbers[i]], room[i]
        for j in range(len(source)):
            target[j] = source[j]


def cut_centred_patches(image: FloatArray, places: tuple[IntArray, IntArray], size: int) -> FloatArray:
    """The patches that begin at the places (rows, columns), row by row, without their mean: (n, a)."""
    patches = np.empty((len(places[0]) * len(places[1]), size * size), np.float32)
    _cut_centred(image, *places, size, patches)
    return patches


@kernel(fastmath=FAST)
def _cut_centred(image, rows, columns, size, patches):
    for i in range(len(patches)):
        row, column = rows[i // len(columns)], columns[i % len(columns)]
        own, mean = patches[i], np.float32(0.0)
        for j in range(size):
            line = image[row + j, column : column + size]
            for h in range(size):
                own[j * size + h] = line[h]
                mean += line[h]
        mean /= np.float32(size * size)
        for j in range(len(own)):
            own[j] -= mean
