"""A mixture of Gaussians in correlated noise as a density: the oracle of the fast step."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray
from heatprior.noise_value import NoiseSpectrum
from heatprior.priors.arguments import as_patches
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.mixture_step import Whitening, whitening


class CorrelatedMixture:
    """A mixture in noise of one spectrum, as a `DiffusedPrior`: `sigma` is the standard deviation of a noisy pixel.

    It solves the heat equation along C: ∂_t f = ∇ · C ∇ f, with sigma = sqrt(2t); Tweedie's formula reads
    E[X | Y = y] = y + sigma² C ∇ log f(y, t).
    """

    def __init__(self, prior: GaussianMixturePrior, spectrum: NoiseSpectrum) -> None:
        self.prior, self.spectrum = prior, spectrum
        self.patch_shape = (prior.size, prior.size)

    @property
    def _white(self) -> Whitening:
        return whitening(self.prior, self.spectrum)

    @cached_property
    def covariance(self) -> FloatArray:
        """C of the noise on patches without their brightness, (a, a)."""
        return self._white.synthesis.T @ self._white.synthesis

    def log_prob(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """log f(y, t) on patches without their brightness: (...)."""
        white = self._white
        log_determinant = np.linalg.slogdet(white.analysis @ white.mixture.basis.T)[1]
        return white.mixture.log_prob(self._to_white(y), sigma) + y.dtype.type(log_determinant)

    def score(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """∇ log f(y, t): (..., a)."""
        white = self._white
        found = white.mixture.score(self._to_white(y), sigma) @ white.mixture.basis.T @ white.analysis
        return np.asarray(found, y.dtype)

    def posterior_mean(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """E[X | Y = y] = y + sigma² C ∇ log f(y, t): (..., a)."""
        levels = np.asarray(sigma)[..., None]
        return np.asarray(y + levels**2 * (self.score(y, sigma) @ self.covariance), y.dtype)

    def sample(self, count: int, sigma: ArrayLike = 0.0, *, rng: np.random.Generator) -> FloatArray:
        """Exact draws of noisy patches without brightness, (count, a)."""
        white = self._white
        return white.mixture.sample(count, sigma, rng=rng) @ white.mixture.basis.T @ white.synthesis

    def _to_white(self, y: FloatArray) -> FloatArray:
        white = self._white
        patches = as_patches(y, self.prior.size)
        return np.asarray(patches @ white.analysis.T @ white.mixture.basis, y.dtype)
