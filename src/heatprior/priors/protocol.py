"""What every prior offers, whatever it is made of: the density of a noisy patch at every noise level.

Section 2.2 of the paper. `sigma` is the standard deviation of the noise, sqrt(2t), in the units of the patches: one
number, or one per patch (an array that broadcasts against the leading axes of the patches). It is never state.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray


class Posterior(NamedTuple):
    """Mean and variance, pixel by pixel, of the clean patch given the noisy one."""

    mean: FloatArray
    variance: FloatArray


@runtime_checkable
class DiffusedPrior(Protocol):
    """A density f(·, t) that solves the heat equation, Eq. (1), evaluated at noise level sigma = sqrt(2t)."""

    def log_prob(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """log f(y, t), the log-density of the noisy patch."""
        ...

    def score(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """∇ log f(y, t)."""
        ...

    def sample(self, count: int, sigma: ArrayLike = 0.0, *, rng: np.random.Generator) -> FloatArray:
        """Independent draws of the noisy patch."""
        ...


def tweedie(prior: DiffusedPrior, y: FloatArray, sigma: ArrayLike) -> FloatArray:
    """Posterior mean E[X | Y = y] = y + sigma² ∇ log f(y, t): Tweedie, Eq. (3)."""
    score = prior.score(y, sigma)
    return np.asarray(y + np.square(sigma, dtype=np.float64)[..., None] * score).astype(score.dtype)
