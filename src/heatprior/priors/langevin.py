"""Annealed Langevin dynamics, section 2.1: samples of a density of which nothing but the score is known.

Langevin dynamics, y ← y + ½ε ∇log f(y, t) + √ε n, has f(·, t) as its stationary law, up to an error that falls with ε.
It moves between distant modes only while noise merges them; so it starts at a high noise level, which falls in small
ratios, always near equilibrium.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.row_bands import Progress

Score = Callable[[FloatArray, float], FloatArray]  # ∇ log f(y, t) at noise level sigma = sqrt(2t)

RATIO = 1.05  # of successive noise levels
STEPS = 16  # at each level
RATE = 0.2  # ε over sigma²: no density at that level is narrower than sigma, so a variance errs by less than RATE / 4
# A band of width w falls behind once the time spent near sigma, 20 STEPS RATE sigma², is less than w²: its variance
# is then too large by 1 / (20 STEPS RATE), less than 2 %.


def falling_levels(highest: float, lowest: float, ratio: float = RATIO) -> FloatArray:
    """Noise levels from highest to lowest, neighbours no further apart than `ratio`."""
    if not 0.0 < lowest <= highest or not ratio > 1.0:
        raise InvalidInputError(
            f"noise levels from {highest:g} to {lowest:g} by {ratio:g}; expected 0 < lowest ≤ highest, ratio > 1"
        )
    return np.geomspace(highest, lowest, 1 + int(np.ceil(np.log(highest / lowest) / np.log(ratio))))


def annealed_langevin(
    score: Score,
    start: FloatArray,
    sigmas: Sequence[float] | FloatArray,
    *,
    rng: np.random.Generator,
    steps: int = STEPS,
    rate: float = RATE,
    progress: Progress | None = None,
) -> FloatArray:
    """`steps` of Langevin dynamics at each noise level in turn, from `start`, of any shape; all entries move at once.

    The result follows the law of the last level. Directions in which the score is zero just gather noise. `progress` is
    told the part of the levels that is done.
    """
    y = np.array(start, np.float64)
    for number, sigma in enumerate(sigmas):
        epsilon = rate * float(sigma) ** 2
        for _ in range(steps):
            y += 0.5 * epsilon * score(y, float(sigma)) + np.sqrt(epsilon) * rng.standard_normal(y.shape)
        if progress is not None:
            progress((number + 1) / len(sigmas))
    return y
