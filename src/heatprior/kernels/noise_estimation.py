"""The inner loops of noise estimation: log-densities of patches, sums over windows; `…_plain` are the numpy twins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from heatprior.arrays import FloatArray
from heatprior.kernels.compiler import FAST, kernel
from heatprior.kernels.lookup import clamp, clamp_plain
from heatprior.kernels.patches import extract
from heatprior.kernels.threads import for_each

# Log-densities of the patches of an image at several noise levels and contrasts: the inner loop of noise estimation.
#
# For b×b patches p on a grid of an image: responses u_j = ⟨k_j, p⟩, and for each noise level s and each contrast c the
# sum Σ_j l_scj(u_j). A response goes through all tables while it is in the cache; only some rows of patches are ever in
# memory. Look-ups are three loops, as in patch_averaging.py.

ROWS = 8  # of patches, or of the grid of windows, that one thread does at a time
RUN = 512  # patches that go through together: their responses stay in the cache


class LevelTables(NamedTuple):
    """Functions l_scj(u) as lines a + b q of q = u · cells / (2 half[s, c, j]), in the cells of `ResponseTables`."""

    lines: FloatArray  # (S, C, J, cells, 2): a, b in float32
    half: FloatArray  # (S, C, J)


def patch_log_densities_plain(image: FloatArray, filters: FloatArray, tables: LevelTables, stride: int) -> FloatArray:
    """The twin: image (H, W), filters (J, b²) → sums (S, C, rows, columns) of the patches at every stride-th pixel."""
    size = int(np.sqrt(filters.shape[1]))
    height, width = (length - size + 1 for length in image.shape)
    patches = extract(image, size).reshape(height, width, -1)[::stride, ::stride]
    u = patches @ filters.T  # (rows, columns, J)
    cells = tables.lines.shape[3]
    q = u * cells / (2.0 * tables.half[:, :, None, None])  # (S, C, rows, columns, J)
    cell = clamp_plain(np.floor(q + cells / 2), 0, cells - 1).astype(np.int64)
    levels, contrasts, _, _, experts = np.ogrid[tuple(slice(n) for n in q.shape)]
    lines = tables.lines[levels, contrasts, experts, cell].astype(np.float64)
    return np.asarray((lines[..., 0] + lines[..., 1] * q).sum(axis=-1))


def patch_log_densities(image: FloatArray, filters: FloatArray, tables: LevelTables, stride: int) -> FloatArray:
    """The kernel, in float32, on all cores: as `patch_log_densities_plain`; the image must be finite."""
    size = int(np.sqrt(filters.shape[1]))
    image = np.ascontiguousarray(image, np.float32)
    filters = np.ascontiguousarray(filters, np.float32)
    words = np.ascontiguousarray(tables.lines, np.float32).view(np.uint64)[..., 0]
    scale = np.asarray(words.shape[3] / (2.0 * tables.half), np.float32)
    rows, columns = (-(-(length - size + 1) // stride) for length in image.shape)
    sums = np.empty((*words.shape[:2], rows, columns), np.float32)

    def fill(first: int) -> None:
        here = slice(first, min(first + ROWS, rows))
        pixels = image[first * stride : (here.stop - 1) * stride + size]
        found = filters @ sliding_window_view(pixels, (size, size))[::stride, ::stride].reshape(-1, size * size).T
        own = np.empty((*words.shape[:2], found.shape[1]), np.float32)
        cell, fetched = np.empty(RUN, np.uint32), np.empty(RUN, np.uint64)
        _add_log_densities(found, words, scale, cell, fetched, fetched.view(np.float32), own)
        sums[:, :, here] = own.reshape(*words.shape[:2], -1, columns)

    for_each(fill, range(0, rows, ROWS))
    return sums


@kernel(fastmath=FAST)
def _add_log_densities(responses, words, scale, cell, fetched, halves, sums):
    """Responses (J, n) → sums (S, C, n); the others are room for a run, `halves` being what was `fetched`."""
    levels, contrasts, count, cells = words.shape
    middle, top = np.float32(0.5 * cells), np.float32(cells - 1)
    for first in range(0, responses.shape[1], RUN):
        for s in range(levels):
            for c in range(contrasts):
                total = sums[s, c, first : first + RUN]
                for n in range(len(total)):
                    total[n] = np.float32(0.0)
                for j in range(count):
                    u, table, factor = responses[j, first : first + RUN], words[s, c, j], scale[s, c, j]
                    for n in range(len(total)):
                        cell[n] = np.uint32(np.int32(clamp(u[n] * factor + middle, np.float32(0.0), top)))
                    for n in range(len(total)):
                        fetched[n] = table[cell[n]]
                    for n in range(len(total)):
                        total[n] += halves[2 * n] + halves[2 * n + 1] * (u[n] * factor)


# Weighted sums over windows of a grid: the weights fall with the distance, and with the difference of a pilot map.
#
# w = held · exp(−distance² / 2 width²) · exp(−(pilot − pilot')² / 2 alike²), up to a distance of `reach`; wanted are,
# at each place, Σ w v for several values v, Σ w and Σ w².


class WindowSums(NamedTuple):
    """Sums of the weighted values (S, rows, columns), of the weights and of their squares (rows, columns)."""

    values: FloatArray
    weights: FloatArray
    squares: FloatArray


def window_sums_plain(
    values: FloatArray, held: FloatArray, pilot: FloatArray, width: float, alike: float, reach: float
) -> WindowSums:
    """The twin: values (S, rows, columns), held and pilot (rows, columns)."""
    rows, columns = held.shape
    result = WindowSums(np.zeros_like(values), np.zeros(held.shape), np.zeros(held.shape))
    for i in range(1 - rows, rows):
        for j in range(1 - columns, columns):
            if i * i + j * j > reach**2:
                continue
            here = (slice(max(0, -i), rows - max(0, i)), slice(max(0, -j), columns - max(0, j)))
            there = (slice(max(0, i), rows + min(0, i)), slice(max(0, j), columns + min(0, j)))
            difference = np.square(pilot[here] - pilot[there]) / alike**2
            weight = held[there] * np.exp(-0.5 * ((i * i + j * j) / width**2 + difference))
            result.values[:, *here] += weight * values[:, *there]
            result.weights[here] += weight
            result.squares[here] += weight**2
    return result


def window_sums(
    values: FloatArray, held: FloatArray, pilot: FloatArray, width: float, alike: float, reach: float
) -> WindowSums:
    """The kernel, on all cores: as `window_sums_plain`."""
    columns_last = np.ascontiguousarray(np.moveaxis(values, 0, -1), np.float64)
    result = WindowSums(np.zeros_like(columns_last), np.zeros(held.shape), np.zeros(held.shape))
    held, pilot = (np.ascontiguousarray(array, np.float64) for array in (held, pilot))

    def fill(first: int) -> None:
        last = min(first + ROWS, len(held))
        _add_windows(columns_last, held, pilot, float(width), float(alike), float(reach), first, last, *result)

    for_each(fill, range(0, len(held), ROWS))
    return result._replace(values=np.moveaxis(result.values, -1, 0))


@kernel(fastmath=FAST)
def _add_windows(values, held, pilot, width, alike, reach, first, last, sums, weights, squares):
    rows, columns, levels = values.shape
    side = int(clamp(reach, 0.0, float(rows + columns)))
    for i in range(first, last):
        for j in range(columns):
            total = sums[i, j]
            for k in range(max(0, i - side), min(rows, i + side + 1)):
                for m in range(max(0, j - side), min(columns, j + side + 1)):
                    distance = (k - i) * (k - i) + (m - j) * (m - j)
                    if distance > reach * reach or held[k, m] == 0.0:
                        continue
                    difference = (pilot[k, m] - pilot[i, j]) / alike
                    weight = held[k, m] * np.exp(-0.5 * (distance / (width * width) + difference * difference))
                    weights[i, j] += weight
                    squares[i, j] += weight * weight
                    for s in range(levels):
                        total[s] += weight * values[k, m, s]
