"""Log-densities of the patches of an image at several noise levels and contrasts: the inner loop of noise estimation.

For b×b patches p on a grid of an image: responses u_j = ⟨k_j, p⟩, and for each noise level s and each contrast c the
sum Σ_j l_scj(u_j). The functions l_scj are given as tables of straight lines. `…_plain` is the numpy twin.

A response goes through all tables while it is in the cache; no set of patches or responses is ever in memory, only the
sums. Look-ups are three loops, as in patch_averaging.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.clamping import clamped, clamped_plain
from heatprior.kernels.compiler import FAST, kernel
from heatprior.kernels.patches import extract
from heatprior.kernels.threads import for_each

ROWS = 8  # of patches that one thread does at a time
RUN = 512  # patches of a row that go through together: their responses stay in the cache


class LevelTables(NamedTuple):
    """Functions l_scj(u) as lines a + b q of q = u · cells / (2 half[s, c, j]).

    Cell i is [i, i + 1) of q + cells / 2; the first and the last extend to infinity.
    """

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
    cell = clamped_plain(np.floor(q + cells / 2), 0, cells - 1).astype(np.int64)
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
        _fill_rows(image, filters, words, scale, size, stride, first, min(first + ROWS, rows), sums)

    for_each(fill, range(0, rows, ROWS))
    return sums


@kernel(fastmath=FAST)
def _fill_rows(image, filters, words, scale, size, stride, first, end, sums):
    levels, contrasts, count, cells = words.shape
    columns = sums.shape[3]
    patches = np.empty((size * size, RUN), np.float32)
    cell, fetched = np.empty(RUN, np.uint32), np.empty(RUN, np.uint64)
    halves = fetched.view(np.float32)
    total = np.empty(RUN, np.float32)
    middle, top = np.float32(0.5 * cells), np.float32(cells - 1)
    for row in range(first, end):
        for left in range(0, columns, RUN):
            length = min(RUN, columns - left)
            for i in range(size):
                line = image[row * stride + i]
                for j in range(size):
                    begin = left * stride + j
                    for n in range(length):
                        patches[i * size + j, n] = line[begin + n * stride]
            responses = np.dot(filters, patches)
            for s in range(levels):
                for c in range(contrasts):
                    total[:length] = np.float32(0.0)
                    for j in range(count):
                        u, table, factor = responses[j], words[s, c, j], scale[s, c, j]
                        for n in range(length):
                            cell[n] = np.uint32(np.int32(clamped(u[n] * factor + middle, np.float32(0.0), top)))
                        for n in range(length):
                            fetched[n] = table[cell[n]]
                        for n in range(length):
                            total[n] += halves[2 * n] + halves[2 * n + 1] * (u[n] * factor)
                    for n in range(length):
                        sums[s, c, row, left + n] = total[n]
