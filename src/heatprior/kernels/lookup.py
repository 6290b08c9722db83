"""Functions of one number on a whole image, by straight lines between tabulated values.

`table` holds values at `table.size` equidistant places from −reach to reach; beyond the ends the outermost lines go on.
`…_plain` is the numpy twin.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from heatprior.arrays import FloatArray


def look_up_plain(u: FloatArray, table: FloatArray, reach: float) -> FloatArray:
    """The twin: values at u, of any shape."""
    place = (u + reach) * ((table.size - 1) / (2.0 * reach))
    cell = np.clip(np.floor(place), 0, table.size - 2).astype(np.int64)
    return np.asarray(table[cell] + (place - cell) * (table[cell + 1] - table[cell]))


def look_up(u: FloatArray, table: FloatArray, reach: float) -> None:
    """The kernel: replaces u, contiguous, by the values there."""
    _look_up(u.reshape(-1), table.astype(u.dtype), u.dtype.type(reach))


@njit(nogil=True, cache=True, fastmath={"contract"})
def _look_up(u, table, reach):
    last = table.size - 2
    scale = (table.size - 1) / (2 * reach)
    for i in range(u.size):
        place = (u[i] + reach) * scale
        cell = min(max(int(place), 0), last)
        u[i] = table[cell] + (place - cell) * (table[cell + 1] - table[cell])
