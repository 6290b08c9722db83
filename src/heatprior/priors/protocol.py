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


@runtime_checkable
class ImagePrior(DiffusedPrior, Protocol):
    """One on whole images y (..., H, W), taken to be cyclic; `sigma` is one number or one per image.

    Its log_prob may lack a constant, and its samples may be approximate: each prior says so.
    """

    @property
    def margin(self) -> int:
        """How many pixels beyond an edge matter."""
        ...

    @property
    def unit(self) -> int:
        """The period of the coarsest band: pixels that a piece of an image needs along each side."""
        ...

    def sample(
        self, count: int, sigma: ArrayLike = 0.0, *, rng: np.random.Generator, shape: tuple[int, int] = (128, 128)
    ) -> FloatArray:
        """Independent draws of the noisy image, (count, H, W)."""
        ...

    def denoised(self, image: FloatArray, sigma: float) -> FloatArray:
        """One step of empirical Bayes of an image (H, W) of any size, the same wherever the image is shifted to."""
        ...

    def misfit(self, image: FloatArray, sigma: float) -> float:
        """What is least, on average, at the noise level that an image (H, W) has: −log f if that is normalised."""
        ...


def tweedie(prior: DiffusedPrior, y: FloatArray, sigma: ArrayLike) -> FloatArray:
    """Posterior mean E[X | Y = y] = y + sigma² ∇ log f(y, t): Tweedie, Eq. (3)."""
    score = prior.score(y, sigma)
    return np.asarray(y + np.square(sigma, dtype=np.float64)[..., None] * score).astype(score.dtype)
