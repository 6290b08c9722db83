"""Which shapes may explain a patch: all are compared in ever more dimensions, and ever fewer go on.

The first of the short cuts of shapes.py, and by far the one that saves most. A first look at all shapes within a few
dimensions leaves some; a second look at these, in the whole subspace that the shapes share, leaves the candidates. In
the first look the logarithm of a density is a quadratic form, the same product for all patches and all components.
`…_plain` are the numpy twins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.compiler import FAST, kernel

if TYPE_CHECKING:
    from heatprior.kernels.shapes import ShapeTables

CANDIDATES = 4  # of a patch
HOPELESS = np.float32(6.0)  # nats behind the best in the second look from which on a shape is no candidate
KEPT = 16  # shapes after the first look, at most, but for shapes that are equally good
BEHIND = np.float32(16.0)  # nats by which a shape may be behind the best in the first look
HALVINGS = 7  # of that range, to find where KEPT shapes are left
SIMILAR = 2  # noise levels apart that count as one where shapes are compared in few dimensions
LOWEST = np.float32(-3e38)  # not infinite: fast arithmetic takes every number for finite
AT_ONCE = 960  # patches in one first look
SHAPES_AT_ONCE = 16  # in one product of it, so that what comes out stays near


def candidates_plain(
    patches: FloatArray, levels: IntArray, tables: ShapeTables, candidates: int, apart: int
) -> IntArray:
    """The twin: patches (n, a) and their noise levels (n,) → best shapes first, (n, candidates).

    Where there are fewer, the best is there again. The kernel takes patches whose levels are SIMILAR to be of one.
    """
    y = (patches - patches.mean(axis=-1, keepdims=True)) @ tables.shared.T  # (n, q)
    first, second = [], []
    for k, axes in enumerate(tables.coarse_axes):
        logs = (tables.first_forms[levels, k] * _products_plain(y, tables)[:, None]).sum(axis=-1)
        first.append((logs + tables.first_constants[levels, k]).max(axis=-1))
        gains, constants = tables.coarse_gains[levels, k], tables.coarse_constants[levels, k]  # (n, G, …)
        second.append(((gains * ((y @ axes) ** 2)[:, None, :]).sum(axis=-1) + constants).max(axis=-1))
    looks = np.array(first).T, np.array(second).T
    places = np.argsort(np.argsort(-looks[0], axis=1, kind="stable"), axis=1, kind="stable")
    values = np.where(places < max(KEPT, candidates), looks[1], -np.inf)
    best = np.argsort(-values, axis=1, kind="stable")[:, :candidates]
    if apart > 1 or candidates >= len(tables.coarse_axes):
        return np.asarray(best, np.int32)
    hopeless = np.take_along_axis(values, best, 1) < values.max(axis=1, keepdims=True) - HOPELESS
    return np.asarray(np.where(hopeless, best[:, :1], best), np.int32)


def _products_plain(y: FloatArray, tables: ShapeTables) -> FloatArray:
    """y_d y_e for d ≤ e among the first dimensions, (n, q0 (q0 + 1) / 2)."""
    first = few_of(tables.first_forms.shape[3])
    return np.stack([y[:, d] * y[:, e] for d in range(first) for e in range(d, first)], axis=1)


def listed_by_shape_plain(best: IntArray, rows: int, columns: int, shapes: int, apart: int) -> list[list[int]]:
    """The twin: for each shape the numbers of the patches of which it is a candidate, ascending."""
    listed: list[list[int]] = [[] for _ in range(shapes)]
    for number in range(rows * columns):
        row, column = divmod(number, columns)
        around = best[
            row // apart : (row + apart - 1) // apart + 1, column // apart : (column + apart - 1) // apart + 1
        ]
        for shape in np.unique(around):
            listed[shape].append(number)
    return listed


@kernel
def candidates_on_grid(patches, columns, levels, tables, candidates, apart):
    """The best shapes of every `apart`-th patch: (rows of such patches, columns of them, candidates).

    `patches` (n, a), without their means, are so many columns, row by row.
    """
    shape = ((len(patches) // columns + apart - 1) // apart, (columns + apart - 1) // apart)
    best = np.zeros((shape[0] * shape[1], candidates), np.int32)
    own = np.zeros(len(best), np.int64)
    for number in range(len(best)):
        own[number] = level_of(levels, _on_all(number, shape[1], columns, apart), columns)
    order = np.argsort(own, kind="mergesort")  # patches of similar levels together
    room = np.empty((AT_ONCE, patches.shape[1]), np.float32)
    numbers, start = np.empty(AT_ONCE, np.int64), 0
    while start < len(best):
        end = start
        while end < min(start + AT_ONCE, len(best)) and own[order[end]] - own[order[start]] <= SIMILAR:
            numbers[end - start] = _on_all(order[end], shape[1], columns, apart)
            end += 1
        gather(patches, numbers[: end - start], room)
        level = own[order[(start + end) // 2]]
        y = np.dot(room[: end - start], tables.shared.T)  # (n, q)
        some = np.zeros((end - start, candidates), np.int32)
        _best_shapes(y, tables, level, some, apart > 1)
        for i in range(start, end):
            best[order[i]] = some[i - start]
        start = end
    return best.reshape((*shape, candidates))


@kernel(inline="always")
def _on_all(number, on_grid, columns, apart):
    """The number of a patch of the grid, with so many columns, among all."""
    row, column = divmod(number, on_grid)
    return row * apart * columns + column * apart


@kernel
def listed_by_shape(best, rows, columns, shapes, apart):
    """The patches for which each shape k is a candidate: listed[firsts[k] : firsts[k + 1]]."""
    count, wanted = rows * columns, best.shape[2]
    most = min(4 * wanted, shapes)  # at most four patches of the grid are neighbours
    found = np.empty((count, most), np.int32)
    many = np.zeros(count, np.int32)
    firsts = np.zeros(shapes + 1, np.int64)
    for row in range(rows):
        for column in range(columns):
            number = row * columns + column
            for i in range(row // apart, min((row + apart - 1) // apart, best.shape[0] - 1) + 1):
                for j in range(column // apart, min((column + apart - 1) // apart, best.shape[1] - 1) + 1):
                    for h in range(wanted):
                        shape = best[i, j, h]
                        new = True
                        for other in range(many[number]):
                            if found[number, other] == shape:
                                new = False
                        if new:
                            found[number, many[number]] = shape
                            many[number] += 1
                            firsts[shape + 1] += 1
    for k in range(shapes):
        firsts[k + 1] += firsts[k]
    listed, place = np.empty(firsts[-1], np.int64), firsts.copy()
    for number in range(count):
        for other in range(many[number]):
            shape = found[number, other]
            listed[place[shape]] = number
            place[shape] += 1
    return firsts, listed


@kernel(fastmath=FAST)
def _best_shapes(y, tables, level, best, for_others):
    """The shapes of highest density in the subspace, for each row of y (n, q), of one noise level; best first.

    The hopeless are replaced by the best, unless they may be candidates `for_others`.
    """
    count, wanted = len(y), best.shape[1]
    axes, gains, constants = tables.coarse_axes, tables.coarse_gains[level], tables.coarse_constants[level]
    firsts = np.zeros((len(axes), count), np.float32)
    least = np.full(count, LOWEST, np.float32)
    if len(axes) > max(KEPT, wanted):
        _first_look(y, tables.first_forms[level], tables.first_constants[level], firsts)
        _least_of_kept(firsts, max(KEPT, wanted), least)
    values = np.full((count, wanted), LOWEST, np.float32)
    numbers, room = np.empty(count + 1, np.int64), np.empty(y.shape, np.float32)
    responses = np.empty(y.shape, np.float32)
    for k in range(len(axes)):
        row, some = firsts[k], 0
        for i in range(count):
            numbers[some] = i
            some += row[i] >= least[i]
        gather(y, numbers[:some], room)
        np.dot(room[:some], axes[k], responses[:some])
        for i in range(some):
            number, value = numbers[i], peak_of(responses[i], gains[k], constants[k])
            if value > values[number, wanted - 1]:
                place = wanted - 1
                while place > 0 and value > values[number, place - 1]:
                    values[number, place] = values[number, place - 1]
                    best[number, place] = best[number, place - 1]
                    place -= 1
                values[number, place] = value
                best[number, place] = k
    if for_others or wanted >= len(axes):
        return
    for i in range(count):
        for place in range(1, wanted):
            if values[i, place] < values[i, 0] - HOPELESS:
                best[i, place] = best[i, 0]


@kernel(fastmath=FAST)
def _first_look(y, forms, constants, peaks):
    """Within the first dimensions: forms (K, G, p), constants (K, G) → the largest logarithms over contrasts (K, n)."""
    shapes, contrasts, products = forms.shape
    count, first = len(y), few_of(products)
    squares = np.empty((products, count), np.float32)
    place = 0
    for d in range(first):
        for e in range(d, first):
            for i in range(count):
                squares[place, i] = y[i, d] * y[i, e]
            place += 1
    logs = np.empty(SHAPES_AT_ONCE * contrasts * count, np.float32)
    for start in range(0, shapes, SHAPES_AT_ONCE):
        end = min(start + SHAPES_AT_ONCE, shapes)
        rows = (end - start) * contrasts
        density = logs[: rows * count].reshape((rows, count))
        np.dot(forms[start:end].reshape((rows, products)), squares, density)
        for k in range(start, end):
            _peaks(density[(k - start) * contrasts : (k - start + 1) * contrasts], constants[k], peaks[k])


@kernel(fastmath=FAST)
def _peaks(logs, constants, peak):
    """The largest over contrasts: logs (G, n), constants (G,) → peak (n,)."""
    count = logs.shape[1]
    for i in range(count):
        peak[i] = LOWEST
    for g in range(len(logs)):
        row, constant = logs[g], constants[g]
        for i in range(count):
            peak[i] = max(peak[i], row[i] + constant)


@kernel(fastmath=FAST)
def _least_of_kept(values, kept, least):
    """Values (K, n) → what at most `kept` of a column reach, and nearly so many, unless they are BEHIND the best."""
    count = values.shape[1]
    middle, many, highest = np.empty(count, np.float32), np.empty(count, np.float32), np.full(count, LOWEST, np.float32)
    for k in range(len(values)):
        row = values[k]
        for i in range(count):
            highest[i] = max(highest[i], row[i])
    for i in range(count):
        least[i] = highest[i]
    width = BEHIND
    for _ in range(HALVINGS):
        width *= np.float32(0.5)
        for i in range(count):
            middle[i], many[i] = least[i] - width, np.float32(0.0)
        for k in range(len(values)):
            row = values[k]
            for i in range(count):
                many[i] += np.float32(1.0) if row[i] >= middle[i] else np.float32(0.0)
        for i in range(count):
            least[i] = middle[i] if many[i] <= kept else least[i]


@kernel(fastmath=FAST, inline="always")
def logarithm_of(u, gains):
    """Of the density of responses over that of noise, but for a constant."""
    value = np.float32(0.0)
    for d in range(len(u)):
        value += gains[d] * (u[d] * u[d])
    return value


@kernel(fastmath=FAST)
def peak_of(u, gains, constants):
    """The largest over contrasts of the logarithm of the density, over that of noise."""
    highest = LOWEST
    for g in range(len(constants)):
        highest = max(highest, logarithm_of(u, gains[g]) + constants[g])
    return highest


@kernel(fastmath=FAST)
def gather(rows, numbers, some):
    """The rows of these numbers become the first ones of `some`."""
    for i in range(len(numbers)):
        number = numbers[i]
        for d in range(rows.shape[1]):
            some[i, d] = rows[number, d]


@kernel(inline="always")
def few_of(products):
    """q0, of which there are q0 (q0 + 1) / 2 products of two."""
    return int((np.sqrt(8.0 * products + 1.0) - 1.0) / 2.0 + 0.5)


@kernel(inline="always")
def level_of(levels, number, columns):
    """The noise level of a patch."""
    if levels.size == 1:
        return levels[0, 0]
    return levels[number // columns, number % columns]
