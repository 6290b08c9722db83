"""How far a model is from solving the heat equation, Eq. (1), and from the true diffusion of its clean density.

With samples y of the true diffusion f and a normalised model g, at one noise level:

    residual         RMS of ∂t log g − Δ log g − ‖∇ log g‖², over that of ∂t log g,
    total variation  ½ ∫ |g − f| = E[(1 − g/f)₊],
    divergence       E[log f − log g], that of Kullback and Leibler.

All three vanish for an exact model, up to the rounding of finite differences and sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from paper.claims.heat_residual import LogDensity, Score, heat_terms


class Defect(NamedTuple):
    """Of a model at one noise level."""

    sigma: float
    residual: float
    total_variation: float
    divergence: float


def heat_defect(
    log_prob: LogDensity, score: Score, truth: LogDensity, y: FloatArray, axes: FloatArray, sigma: float, width: float
) -> Defect:
    """Measured at samples y (n, a) of the truth; `axes` (d, a) span what is modelled.

    `width` is that of the narrowest component without noise.
    """
    ratio = log_prob(y, sigma) - truth(y, sigma)
    terms = heat_terms(log_prob, score, y, axes, sigma, width)
    return Defect(
        sigma,
        float(np.sqrt(np.mean(terms.residual**2) / np.mean(terms.in_time**2))),
        float(np.mean(np.maximum(-np.expm1(ratio), 0.0))),
        float(np.mean(np.expm1(ratio) - ratio)),  # E[g/f] = 1, so this is E[−ratio], with less scatter
    )
