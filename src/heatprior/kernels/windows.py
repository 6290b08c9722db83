"""Weighted sums over windows of a grid: the weights fall with the distance, and with the difference of a pilot map.

w = held · exp(−distance² / 2 width²) · exp(−(pilot − pilot')² / 2 alike²), up to a distance of `reach`; wanted are, at
each place, Σ w v for several values v, Σ w and Σ w². `…_plain` is the numpy twin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.clamping import clamped
from heatprior.kernels.compiler import FAST, kernel
from heatprior.kernels.threads import for_each

ROWS = 8  # of the grid that one thread does at a time


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
        _fill(columns_last, held, pilot, float(width), float(alike), float(reach), first, last, *result)

    for_each(fill, range(0, len(held), ROWS))
    return result._replace(values=np.moveaxis(result.values, -1, 0))


@kernel(fastmath=FAST)
def _fill(values, held, pilot, width, alike, reach, first, last, sums, weights, squares):
    rows, columns, levels = values.shape
    side = int(clamped(reach, 0.0, float(rows + columns)))
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
