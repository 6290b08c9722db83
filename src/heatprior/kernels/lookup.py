"""Functions of one number on a whole image, by straight lines between tabulated values.

`table` holds values at `table.size` equidistant places from −reach to reach; beyond them, lines are extrapolated.
`…_plain` is the numpy twin.
"""

from __future__ import annotations

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.clamping import clamped, clamped_plain
from heatprior.kernels.compiler import kernel


def look_up_plain(u: FloatArray, table: FloatArray, reach: float) -> FloatArray:
    """The twin: values at u, of any shape."""
    place = (u + reach) * ((table.size - 1) / (2.0 * reach))
    cell = clamped_plain(np.floor(place), 0, table.size - 2).astype(np.int64)
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
        cell = np.int32(clamped(place, none, last))
        u[i] = table[cell] + (place - u.dtype.type(cell)) * (table[cell + 1] - table[cell])
