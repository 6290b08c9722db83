"""Numbers held to a range before they become indices.

A float beyond the range of an integer, or NaN, has no defined conversion: the index may be anything, and the program
reads memory that is not the table's. So every kernel clamps as a float first, and NaN becomes the lower end.
"""

from __future__ import annotations

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.compiler import kernel


def clamped_plain(values: FloatArray, lowest: float, highest: float) -> FloatArray:
    """The twin, of any shape."""
    return np.clip(np.where(np.isnan(values), lowest, values), lowest, highest)


@kernel
def clamped(value, lowest, highest):
    """min(max(value, lowest), highest), and `lowest` for NaN; all three of one type."""
    value = value if value > lowest else lowest  # false for NaN
    return value if value < highest else highest
