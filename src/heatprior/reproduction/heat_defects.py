"""How far a model is from solving the heat equation, Eq. (1), and from the true diffusion of its clean density.

With samples y of the true diffusion f and a normalised model g, at one noise level:

    residual         RMS of ∂t log g − Δ log g − ‖∇ log g‖², over that of ∂t log g,
    total variation  ½ ∫ |g − f| = E[(1 − g/f)₊],
    divergence       E[log f − log g], that of Kullback and Leibler.

All three vanish for an exact model, up to the rounding of finite differences and sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray

Density = Callable[[FloatArray, float], FloatArray]  # log-density of points (n, a) at a noise level: (n,)
Score = Callable[[FloatArray, float], FloatArray]  # its gradient (n, a)

SPACE_STEP, TIME_STEP = 0.05, 0.01  # of the width of the narrowest component, and of its square
STENCIL = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))  # central differences of order eight


class Defect(NamedTuple):
    """Of a model at one noise level."""

    sigma: float
    residual: float
    total_variation: float
    divergence: float


def heat_defect(
    log_prob: Density, score: Score, truth: Density, y: FloatArray, axes: FloatArray, sigma: float, width: float
) -> Defect:
    """Measured at samples y (n, a) of the truth; `axes` (d, a) span what is modelled.

    `width` is that of the narrowest component without noise.
    """
    ratio = log_prob(y, sigma) - truth(y, sigma)
    step = float(np.hypot(width, sigma))
    time_step = min(TIME_STEP * step**2, sigma**2 / 4)
    in_time = 2.0 * _derivative(lambda h: log_prob(y, float(np.sqrt(max(sigma**2 + h, 0.0)))), time_step)
    laplacian = sum((_curvature(score, y, axis, sigma, SPACE_STEP * step) for axis in axes), np.zeros(len(y)))
    residual = in_time - laplacian - np.square(score(y, sigma)).sum(axis=-1)
    return Defect(
        sigma,
        float(np.sqrt(np.mean(residual**2) / np.mean(in_time**2))),
        float(np.mean(np.maximum(-np.expm1(ratio), 0.0))),
        float(np.mean(np.expm1(ratio) - ratio)),  # E[g/f] = 1, so this is E[−ratio], with less scatter
    )


def _curvature(score: Score, y: FloatArray, axis: FloatArray, sigma: float, step: float) -> FloatArray:
    """The second derivative along one axis."""
    return _derivative(lambda h: score(y + h * axis, sigma) @ axis, step)


def _derivative(function: Callable[[float], FloatArray], step: float) -> FloatArray:
    """f'(0)."""
    terms = [c * (function(k * step) - function(-k * step)) for k, c in STENCIL]
    return np.asarray(np.sum(terms, axis=0) / step)
