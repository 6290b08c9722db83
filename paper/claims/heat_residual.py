"""The heat equation in logarithmic form, ∂_t log f = Δ log f + |∇ log f|² with t = sigma²/2, Eq. (1): its three terms.

Derivatives are central differences of order eight. With steps of 5 % of the width of the density (1 % of its square in
time) their truncation error is about 1e-9 of the derivative at worst; rounding adds about 1e-13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from heatprior.arrays import FloatArray

SPACE_STEP, TIME_STEP = 0.05, 0.01  # of the width of the narrowest component, noise included, and of its square
STENCIL = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))

LogDensity = Callable[[FloatArray, float], FloatArray]  # of points (..., a) at a noise level: (...)
Score = Callable[[FloatArray, float], FloatArray]  # its gradient (..., a)


class HeatTerms(NamedTuple):
    """∂_t log f, Δ log f and |∇ log f|² at each point."""

    in_time: FloatArray
    laplacian: FloatArray
    drift: FloatArray

    @property
    def residual(self) -> FloatArray:
        """What vanishes for a solution."""
        return np.asarray(self.in_time - self.laplacian - self.drift)


def heat_terms(
    log_prob: LogDensity, score: Score, y: FloatArray, axes: FloatArray, sigma: float, width: float = 0.0
) -> HeatTerms:
    """At points y (..., a); `axes` (d, a) span what is modelled, `width` is that of the narrowest component, clean."""
    scale = float(np.hypot(width, sigma))
    in_time = time_derivative(log_prob, y, sigma, width)
    curvatures = [_curvature(score, y, axis, sigma, SPACE_STEP * scale) for axis in axes]
    return HeatTerms(in_time, np.sum(curvatures, axis=0), np.square(score(y, sigma)).sum(axis=-1))


def time_derivative(log_prob: LogDensity, y: FloatArray, sigma: float, width: float = 0.0) -> FloatArray:
    """∂_t log f at points y (..., a), with t = sigma² / 2."""
    step = min(TIME_STEP * (width**2 + sigma**2), sigma**2 / 4)
    return 2.0 * derivative(lambda h: log_prob(y, float(np.sqrt(max(sigma**2 + h, 0.0)))), step)


def derivative(function: Callable[[Any], FloatArray], step: Any) -> FloatArray:
    """f'(0) of a function of a real number (or of an array of independent ones, with one step each)."""
    terms = [c * (function(k * step) - function(-k * step)) for k, c in STENCIL]
    return np.asarray(np.sum(terms, axis=0) / step)


def _curvature(score: Score, y: FloatArray, axis: FloatArray, sigma: float, step: float) -> FloatArray:
    """The second derivative along one axis."""
    return derivative(lambda h: score(y + h * axis, sigma) @ axis, step)
