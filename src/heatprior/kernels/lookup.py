"""Functions of one number by straight lines between tabulated values, and numbers clamped before they become indices.

A float beyond the range of an integer, or NaN, has no defined conversion: the index may be anything, and the program
reads memory that is not the table's. So every kernel clamps as a float first, and NaN becomes the lower end.

`…_plain` are the numpy twins.
"""

from __future__ import annotations

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.compiler import kernel


def clamp_plain(values: FloatArray, lowest: float, highest: float) -> FloatArray:
    """The twin, of any shape."""
    return np.clip(np.where(np.isnan(values), lowest, values), lowest, highest)


@kernel
def clamp(value, lowest, highest):
    """min(max(value, lowest), highest), and `lowest` for NaN; all three of one type."""
    value = value if value > lowest else lowest  # false for NaN
    return value if value < highest else highest


def look_up_plain(u: FloatArray, table: FloatArray, reach: float) -> FloatArray:
    """The twin: values at u, of any shape, of a table at `table.size` equidistant places from −reach to reach."""
    place = (u + reach) * ((table.size - 1) / (2.0 * reach))
    cell = clamp_plain(np.floor(place), 0, table.size - 2).astype(np.int64)
    return np.asarray(table[cell] + (place - cell) * (table[cell + 1] - table[cell]))


def look_up(u: FloatArray, table: FloatArray, reach: float) -> None:
    """The kernel: replaces u, contiguous, by the values there."""
    _look_up(u.reshape(-1), table.astype(u.dtype), u.dtype.type(reach))


@kernel(fastmath={"contract"})
def _look_up(u, table, reach):
    none, last = u.dtype.type(0), u.dtype.type(table.size - 2)
    scale = u.dtype.type((table.size - 1) / (2 * reach))
    for i in range(u.size):
        place = (u[i] + reach) * scale
        cell = np.int32(clamp(place, none, last))
        u[i] = table[cell] + (place - u.dtype.type(cell)) * (table[cell + 1] - table[cell])
