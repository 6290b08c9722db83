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
def floats(count):
    """Room for so many numbers. np.empty itself would be compiled anew for every constant and every shape."""
    return np.empty(count, np.float32)


@kernel(fastmath=FAST)
def square(values):
    """values ← values², (n,)."""
    for i in range(len(values)):
        values[i] *= values[i]


@kernel(fastmath=FAST)
def peak(squares, energy, gains, rest, constants):
    """The largest log-density over contrasts, of one patch whose responses have these squares (m',)."""
    highest = LOWEST
    for g in range(len(constants)):
        highest = max(highest, weighted_sum(squares, gains[g]) + (rest[g] * energy + constants[g]))
    return highest


@kernel(fastmath=FAST, inline="always")
def weighted_sum(values, weights):
    """Σ_d weight_d value_d."""
    total = np.float32(0.0)
    for d in range(len(values)):
        total += weights[d] * values[d]
    return total


@kernel(fastmath=FAST)
def peaks(squares, energies, gains, rest, constants, highest, logs):
    """The same for each column of squares (m', n), into `highest` (n,); `logs` (n,) is room."""
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


def candidates_on_grid_plain(patches: FloatArray, levels: IntArray, tables: ShapeTables, candidates: int) -> IntArray:
    """The twin: patches (m, n, a) and their noise levels (m, n) → best shapes first, at every GRID-th patch.

    The kernel takes patches whose levels are SIMILAR to be of one.
    """
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
    return int(levels[0, 0]), None if levels.size == 1 else levels


def candidates_on_grid(
    patches: FloatArray, rows: int, levels: IntArray, tables: ShapeTables, candidates: int
) -> IntArray:
    """The best shapes of every GRID-th patch, by the subspace: (rows of such patches, columns of them, candidates).

    Of patches (n, a) without their mean, so many rows of them.
    """
    shape = (-(-rows // GRID), -(-(len(patches) // rows) // GRID))
    best = np.zeros((shape[0] * shape[1], candidates), np.int32)
    _find_candidates(patches, rows, shape[1], *levels_of_kernels(levels), tables.shared, tables.coarse, best)
    return best.reshape(*shape, candidates)


@kernel
def _find_candidates(patches, rows, wide, level, levels, shared, coarse, best):
    columns = len(patches) // rows
    room, numbers = floats(RUN * patches.shape[1]).reshape((RUN, patches.shape[1])), np.empty(RUN, np.int64)
    start = 0
    while start < len(best):
        some = 0
        while some < RUN and start + some < len(best):
            row, column = (start + some) // wide, (start + some) % wide
            numbers[some] = row * GRID * columns + column * GRID
            if levels is not None:
                here = levels[row * GRID, column * GRID]
                if some == 0:
                    level = here
                elif abs(here - level) > SIMILAR:
                    break
            some += 1
        take(patches, numbers[:some], room)
        y = floats(len(shared) * some).reshape((len(shared), some))
        np.dot(shared, np.ascontiguousarray(room[:some].T), y)
        _best_shapes(y, coarse, level, best[start : start + some])
        start += some


def list_by_shape(best: IntArray, rows: int, columns: int, shapes: int) -> tuple[IntArray, IntArray]:
    """The patches for which each shape k is a candidate: listed[firsts[k] : firsts[k + 1]]."""
    count = rows * columns
    most = min(4 * best.shape[2], shapes)  # at most four patches of the grid are neighbours
    found, many = np.empty((count, most), np.int32), np.zeros(count, np.int32)
    last = np.full(shapes, -1, np.int64)  # patch that has listed a shape last: none lists one twice
    firsts = np.zeros(shapes + 1, np.int64)
    _count_by_shape(best, rows, columns, found, many, last, firsts)
    np.cumsum(firsts, out=firsts)
    listed = np.empty(firsts[-1], np.int64)
    _list_by_shape(found, many, firsts.copy(), listed)
    return firsts, listed


@kernel
def _count_by_shape(best, rows, columns, found, many, last, firsts):
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


@kernel
def _list_by_shape(found, many, place, listed):
    for number in range(len(many)):
        for other in range(many[number]):
            shape = found[number, other]
            listed[place[shape]] = number
            place[shape] += 1


@kernel(inner=True)
def _best_shapes(y, coarse, level, best):
    """The shapes of highest density in the subspace, for each column of y (q, n), of one noise level."""
    shapes, rows, dimension = coarse.axes.shape
    wanted, count = best.shape[1], y.shape[1]
    stacked = coarse.axes.reshape((shapes * rows, dimension))
    responses = floats(TOGETHER * rows * count).reshape((TOGETHER * rows, count))
    values = floats(wanted * count).reshape((wanted, count))
    values[:] = LOWEST
    highest, logs = floats(count), floats(count)
    energies = _sums_of_squares(y)
    for first in range(0, shapes, TOGETHER):
        some = min(TOGETHER, shapes - first)
        u = responses[: some * rows]
        np.dot(stacked[first * rows : (first + some) * rows], y, u)
        square(u.reshape(-1))
        for number in range(some):
            k = first + number
            gains, rest, constants = coarse.gains[level, k], coarse.rest[level, k], coarse.constants[level, k]
            peaks(u[number * rows : (number + 1) * rows], energies, gains, rest, constants, highest, logs)
            _insert(highest, k, values, best)


@kernel(inner=True, fastmath=FAST)
def _sums_of_squares(y):
    """Of each column of y (q, n)."""
    total = floats(y.shape[1])
    total[:] = np.float32(0.0)
    for d in range(len(y)):
        row = y[d]
        for i in range(len(total)):
            total[i] += row[i] * row[i]
    return total


@kernel(inner=True)
def _insert(found, shape, values, best):
    """Put a shape among the best of each patch, if it is one: values (wanted, n), falling, and numbers (n, wanted)."""
    last = len(values) - 1
    lowest = values[last]
    for i in range(len(found)):
        if found[i] > lowest[i]:
            place = last
            while place > 0 and found[i] > values[place - 1, i]:
                values[place, i] = values[place - 1, i]
                best[i, place] = best[i, place - 1]
                place -= 1
            values[place, i] = found[i]
            best[i, place] = shape


@kernel(inline="always")
def corner(places, number):
    """Row and column at which a patch begins."""
    row, column = divmod(number, len(places[1]))
    return places[0][row], places[1][column]


@kernel(inner=True)
def take(patches, numbers, room):
    """The patches of these numbers, one after the other."""
    for i in range(len(numbers)):
        source, target = patches[numbers[i]], room[i]
        for j in range(len(source)):
            target[j] = source[j]


@kernel(fastmath=FAST)
def cut_centred_patches(image, places, size):
    """The patches that begin at the places (rows, columns), row by row, without their mean: (n, a)."""
    count, pixels = len(places[0]) * len(places[1]), size * size
    patches = floats(count * pixels).reshape((count, pixels))
    for i in range(len(patches)):
        row, column = corner(places, i)
        mean = np.float32(0.0)
        for j in range(size):
            own, line = patches[i, j * size : (j + 1) * size], image[row + j, column : column + size]
            for h in range(size):
                own[h] = line[h]
                mean += line[h]
        mean /= np.float32(size * size)
        own = patches[i]
        for j in range(len(own)):
            own[j] -= mean
    return patches
