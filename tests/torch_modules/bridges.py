"""How the laws, which speak numpy, take a torch module, and the small priors that stand for all."""

from __future__ import annotations

import numpy as np
import torch
from whole_images import wavelet_prior

import heatprior.torch as ht
from examples import gaussian_mixture, patch_prior
from heatprior.priors.protocol import Posterior

SMALL = {
    "three filters on 2×2": patch_prior(2, 3, 4, seed=2),
    "brightness too": patch_prior(2, 4, 3, seed=3, zero_mean=False),
    "five filters of nine components on 3×3": patch_prior(3, 5, 9, seed=1),
    "one Gaussian": gaussian_mixture(2, 1),
    "two shapes at three contrasts": gaussian_mixture(2, 2, (0.5, 1.0, 2.0), seed=2),
    "five shapes on 4×4": gaussian_mixture(4, 5, (0.25, 1.0, 4.0), seed=3),
}
WAVELETS = {
    "Haar": wavelet_prior(1, 1),
    "two vanishing moments, split": wavelet_prior(2, 2, 1),
}


class AsNumpy:
    """A module as the protocol has it: arrays in, arrays out, by its tensor operations, never by the kernels."""

    def __init__(self, prior):
        self.module = ht.from_prior(prior)

    def _call(self, name, y, sigma):
        answer = getattr(self.module, name)(
            torch.tensor(y, requires_grad=True), torch.as_tensor(sigma, dtype=torch.float64)
        )
        return answer if isinstance(answer, tuple) else (answer,)

    def log_prob(self, y, sigma):
        return self._call("log_prob", y, sigma)[0].detach().numpy()

    def score(self, y, sigma):
        return self._call("score", y, sigma)[0].detach().numpy()

    def posterior(self, y, sigma):
        return Posterior(*(part.detach().numpy() for part in self._call("posterior", y, sigma)))

    def sample(self, count, sigma=0.0, *, rng, **shape):
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        return self.module.sample(
            count, torch.as_tensor(sigma, dtype=torch.float64), generator=generator, **shape
        ).numpy()


def module_of(prior, *, learnt=True):
    """A module whose parameters, if learnt, are a little off what they were: no angle is zero."""
    module = ht.from_prior(prior)
    if learnt:
        generator = torch.Generator().manual_seed(0)
        for parameter in module.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    return module


def relative(found, expected):
    """The largest error over the largest value."""
    found, expected = (np.asarray(x.detach() if isinstance(x, torch.Tensor) else x) for x in (found, expected))
    return np.abs(found - expected).max() / np.abs(expected).max()
