"""Small priors of whole images, and how the laws, which speak of patches (..., a), take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from laws import Span

from heatprior.priors.convolutional import ConvolutionalPrior, Tiling
from heatprior.priors.experts import Experts
from heatprior.priors.protocol import ImagePrior, Posterior
from heatprior.priors.wavelet import WaveletBasis, WaveletPrior
from paper.wavelets import daubechies


def lopsided(count: int, components: int, *, seed: int = 0) -> Experts:
    return Experts(np.random.default_rng(seed).standard_normal((count, components)), reach=0.8)


def wavelet_prior(order: int, levels: int, splits: int = 0, components: int = 4, *, seed: int = 0) -> WaveletPrior:
    """Random weights, norms whose product is not one."""
    basis = WaveletBasis(daubechies(order), levels, splits)
    return WaveletPrior(basis, np.geomspace(0.4, 1.7, basis.count), lopsided(basis.count, components, seed=seed))


def convolutional_prior(scales: int, orientations: int, components: int = 5, *, seed: int = 0) -> ConvolutionalPrior:
    tiling = Tiling(scales, orientations)
    return ConvolutionalPrior(
        tiling, np.geomspace(0.6, 1.5, tiling.count), lopsided(tiling.count, components, seed=seed)
    )


@dataclass(frozen=True)
class OnGrid:
    """A prior of whole images on one grid, its images as vectors (..., H·W)."""

    prior: ImagePrior
    shape: tuple[int, int]

    def _images(self, y):
        return np.reshape(y, (*np.shape(y)[:-1], *self.shape))

    def log_prob(self, y, sigma):
        return self.prior.log_prob(self._images(y), sigma)

    def score(self, y, sigma):
        return self.prior.score(self._images(y), sigma).reshape(np.shape(y))

    def posterior(self, y, sigma):
        return Posterior(*(part.reshape(np.shape(y)) for part in self.prior.posterior(self._images(y), sigma)))

    def sample(self, count, sigma=0.0, *, rng):
        return self.prior.sample(count, sigma, rng=rng, shape=self.shape).reshape(count, -1)


def analysis_matrix(prior: WaveletPrior, shape: tuple[int, int]) -> np.ndarray:
    """Its basis on a grid, one row for each coefficient, (coefficients, H·W), and the band of each."""
    pixels = np.eye(shape[0] * shape[1]).reshape(-1, *shape)
    parts = [c.reshape(len(pixels), -1).T for c in prior.analyse(pixels)]
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def span_on_grid(prior: WaveletPrior, shape: tuple[int, int]) -> Span:
    axes, band = analysis_matrix(prior, shape)
    return Span(axes, prior.experts.base_sigma / prior.norms[band], prior.experts.reach / prior.norms[band])
