"""Matrix products that are added to what is there: total += a @ b, which numpy and numba have no words for.

The library of matrix products has, and saves a pass over the result. It is called through the function by which numba
itself calls it for `np.dot`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

_FLOATS = types.CPointer(types.float32)
_ARGUMENTS: Any = (
    *(types.char, types.char, types.char),  # kind of number; whether the first matrix is transposed, and the second
    *(types.intp, types.intp, types.intp),  # rows and columns of the result, inner length
    *(_FLOATS, _FLOATS, types.intp, _FLOATS, types.intp),  # factor, both matrices with the lengths of their columns
    *(_FLOATS, _FLOATS, types.intp),  # factor of what is there, the result with the length of its columns
)
_multiply: Any = types.ExternalFunction("numba_xxgemm", types.intc(*_ARGUMENTS))


@njit(nogil=True, cache=True)
def add_product(a, b, total):
    """total += a @ b for contiguous matrices of float32; row by row they are the transposed ones, column by column."""
    if a.shape[1] != b.shape[0] or total.shape != (a.shape[0], b.shape[1]):
        raise ValueError("the shapes of a product do not match")
    one = np.ones(1, np.float32)
    _multiply(
        *(ord("s"), ord("n"), ord("n"), b.shape[1], a.shape[0], a.shape[1]),
        *(one.ctypes, b.ctypes, b.shape[1], a.ctypes, a.shape[1]),
        *(one.ctypes, total.ctypes, total.shape[1]),
    )
