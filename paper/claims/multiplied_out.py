"""The convolutional model multiplied out on a tiny grid, and what its diffusion really is: the oracle of section 3.2.

A band on n pixels with m frequencies has K = xi P, P the projection onto them. The product over pixels of mixtures of L
components is a mixture of L^n Gaussians on the m dimensions of the band: for means μ (n,),

    ‖xi P x − μ‖² = xi² ‖P x − P μ / xi‖² + ‖μ − P μ‖²,

so a component has the mean P μ / xi, the variance s² / xi² and the weight ∏_i w_μ(i) · exp(−‖μ − P μ‖² / 2 s²).
Diffusion adds sigma² to the variance, which is what s² = sigma_0² + xi² sigma² does, but leaves weights alone: those of
the true diffusion keep sigma_0² in the place of s². Bands share no frequency, so they are independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy.special import logsumexp, softmax

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.priors.bands import Shape, image_of, to_spectrum
from heatprior.priors.convolutional import ConvolutionalPrior

MOST_COMPONENTS = 1_000_000
CHUNK_NUMBERS = 1 << 22  # in memory at once


@dataclass(frozen=True, eq=False)
class _Band:
    axes: FloatArray  # orthonormal, of the frequencies of the band (m, n)
    xi: float
    means: FloatArray  # of the components along the axes (C, m)
    log_products: FloatArray  # of the weights of the experts (C,)
    off: FloatArray  # ‖μ − P μ‖² (C,)


@dataclass(frozen=True, eq=False)
class MultipliedOut:
    """The true diffusion of a convolutional prior on a grid of `shape`, normalised; images `y` are (..., H, W)."""

    prior: ConvolutionalPrior
    shape: Shape

    @cached_property
    def _bands(self) -> list[_Band]:
        labels = self.prior.bands.labels(self.shape)
        experts, pixels = self.prior.experts, labels.size
        components = experts.logits.shape[1]
        if components**pixels > MOST_COMPONENTS:
            raise InvalidInputError(
                f"{components}^{pixels} components are too many to write out; at most {MOST_COMPONENTS}"
            )
        choices = np.array(list(product(range(components), repeat=pixels)))  # (C, n)
        means = experts.means[choices]
        images = np.eye(pixels).reshape(-1, *self.shape)
        bands = []
        for j in range(self.prior.bands.count):
            spectrum = self.prior.bands.spectrum(j, self.shape)
            if not (labels == j).any():
                continue
            projection = image_of(spectrum * to_spectrum(images), self.shape).reshape(pixels, pixels)
            eigenvalues, vectors = np.linalg.eigh(projection)
            axes, xi = vectors[:, eigenvalues > 0.5].T, float(self.prior.norms[j])
            along = means @ axes.T
            off = np.clip((means**2).sum(axis=1) - (along**2).sum(axis=1), 0.0, None)
            bands.append(_Band(axes, xi, along / xi, experts.log_weights[j][choices].sum(axis=1), off))
        return bands

    @property
    def axes(self) -> FloatArray:
        """Orthonormal axes of all that is modelled, (n − 1, n)."""
        return np.concatenate([band.axes for band in self._bands])

    def log_prob(self, y: FloatArray, sigma: float) -> FloatArray:
        """log of the density f(·, 0) / Z(0) of the model, convolved with a Gaussian of deviation sigma: (...)."""
        flat = y.reshape(-1, self.shape[0] * self.shape[1])
        total = np.zeros(len(flat))
        for band in self._bands:
            variance = (self.prior.experts.base_sigma / band.xi) ** 2 + sigma**2
            log_weights = _log_weights(band, self.prior.experts.base_sigma**2)
            log_weights = log_weights - logsumexp(log_weights)
            places = flat @ band.axes.T
            for start in range(0, len(flat), rows := max(1, CHUNK_NUMBERS // band.means.size)):
                offsets = places[start : start + rows, None] - band.means  # (rows, C, m)
                exponents = log_weights - 0.5 * (offsets**2).sum(axis=-1) / variance
                total[start : start + rows] += logsumexp(exponents, axis=-1)
            total -= 0.5 * len(band.axes) * np.log(2.0 * np.pi * variance)
        return total.reshape(y.shape[:-2])

    def sample(self, count: int, sigma: float = 0.0, *, rng: np.random.Generator) -> FloatArray:
        """Exact draws, (count, H, W)."""
        images = np.zeros((count, self.shape[0] * self.shape[1]))
        for band in self._bands:
            width = np.hypot(self.prior.experts.base_sigma / band.xi, sigma)
            weights = softmax(_log_weights(band, self.prior.experts.base_sigma**2))
            chosen = rng.choice(len(weights), size=count, p=weights)
            images += (band.means[chosen] + width * rng.standard_normal((count, len(band.axes)))) @ band.axes
        return images.reshape(count, *self.shape)

    def log_normaliser(self, sigma: float) -> float:
        """log Z(t) = log ∫ ∏_j ∏_i psi_j((K_j x)_i, t) dx over what is modelled: the paper takes it to be constant."""
        total = 0.0
        for band in self._bands:
            dimensions, pixels = band.axes.shape
            variance = self.prior.experts.base_sigma**2 + (band.xi * sigma) ** 2
            total += float(logsumexp(_log_weights(band, variance)))
            total += 0.5 * (dimensions - pixels) * np.log(2.0 * np.pi * variance) - dimensions * np.log(band.xi)
        return total


def _log_weights(band: _Band, variance: float) -> FloatArray:
    return band.log_products - 0.5 * band.off / variance
