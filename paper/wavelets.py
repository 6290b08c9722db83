"""Daubechies' wavelets: the bases on which the paper's convolutional model is learnt, and exact."""

from __future__ import annotations

from math import comb

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError


def daubechies(order: int) -> FloatArray:
    """The shortest scaling filter with `order` vanishing moments, 2·order taps; order 1 is Haar's.

    |H|² = (cos²)^order P(sin²), P(x) = Σ_k C(order − 1 + k, k) x^k; of zeros z, 1/z the inner one is taken.
    """
    if not 1 <= order <= 8:
        raise InvalidInputError(f"order is {order}; expected 1 to 8 (beyond, rounding spoils the zeros)")
    taps = np.ones(1)
    for _ in range(order):
        taps = np.convolve(taps, [1.0, 1.0])
    for x in np.roots([comb(order - 1 + k, k) for k in reversed(range(order))]):
        middle = 1.0 - 2.0 * x  # (z + 1/z) / 2, since sin² = (2 − z − 1/z) / 4
        z = middle + np.sqrt(middle**2 - 1.0 + 0j)
        taps = np.convolve(taps, [1.0, -(z if abs(z) < 1.0 else 1.0 / z)])
    real = np.real(taps)
    return np.asarray(real * np.sqrt(2.0) / real.sum())
