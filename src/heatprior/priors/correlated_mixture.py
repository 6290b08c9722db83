"""A mixture of Gaussians under correlated noise: f(p, t) = Σ_k Σ_g π_kg G(p; 0, c_g Σ_k + sigma² C), exact for any C.

In coordinates in which the noise is white, p' = C^(−½) p, it is a mixture again, of shapes C^(−½) Σ_k C^(−½) in noise
of variance sigma². So whatever can be done in white noise, exactly or fast, can be done here: patches are turned by one
matrix on the way in, and by its inverse on the way out. C is the noise of patches without their brightness.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray
from heatprior.noise_model import NoiseSpectrum
from heatprior.priors.arguments import as_patches

if TYPE_CHECKING:
    from heatprior.priors.gaussian_mixture import GaussianMixturePrior


class Whitening(NamedTuple):
    """A mixture in coordinates in which the noise is white, and the way there and back."""

    mixture: GaussianMixturePrior
    analysis: FloatArray  # (d, a): C^(−½) of the coordinates of a patch in the cosine basis
    synthesis: FloatArray  # (d, a): C^(½), its pseudo-inverse transposed
    log_determinant: float  # of C^(−½)


@lru_cache(maxsize=16)  # for the scales and channels of one image
def whitening(prior: GaussianMixturePrior, spectrum: NoiseSpectrum | None) -> Whitening:
    """In noise of this spectrum; None is white noise, for which nothing changes."""
    if spectrum is None:
        return Whitening(prior, prior.basis, prior.basis, 0.0)
    values, vectors = np.linalg.eigh(prior.basis @ spectrum.covariance(prior.size) @ prior.basis.T)
    inverse, forth = (vectors * values**-0.5) @ vectors.T, (vectors * values**0.5) @ vectors.T
    covariances = inverse @ prior.covariances @ inverse
    return Whitening(
        type(prior)(covariances, prior.log_weights, prior.contrasts),
        inverse @ prior.basis,
        forth @ prior.basis,
        float(-0.5 * np.log(values).sum()),
    )


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
        return white.mixture.log_prob(self._to_white(y), sigma) + y.dtype.type(white.log_determinant)

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
