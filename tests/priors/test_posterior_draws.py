"""Draws from the posterior: their moments are those that `posterior` gives, for every prior that can be drawn from."""

import numpy as np
import pytest
from synthetic import oriented_mixture, sparse_prior

from heatprior.priors.experts import Experts
from heatprior.priors.wavelet import WaveletBasis, WaveletPrior

DRAWS = 4000
SIGMA = 0.2
FAR = 6.0  # standard errors: of a few hundred pixels, none is further off by chance


def wavelet_prior():
    basis = WaveletBasis(np.array([1.0, 1.0]) / np.sqrt(2.0), 1, 0)
    count = len(basis.strides)
    logits = -np.abs(np.linspace(-1.0, 1.0, 31)) / np.geomspace(0.03, 0.3, count)[:, None]
    return WaveletPrior(basis, np.linspace(0.5, 1.0, count), Experts(logits))


def noisy(prior, rng):
    if isinstance(prior, WaveletPrior):
        return prior.sample(1, SIGMA, rng=rng, shape=(8, 8))
    return prior.sample(8, SIGMA, rng=rng)


def worst_deviation(prior, told, rng):
    """In standard errors, over all pixels: of the mean, and of the variance."""
    y = noisy(prior, rng)
    draws = prior.posterior_sample(np.broadcast_to(y, (DRAWS, *y.shape)), told, rng=rng)
    mean, variance = prior.posterior(y, SIGMA)
    squares = (draws - mean) ** 2
    by_mean = np.abs(draws.mean(axis=0) - mean) / np.sqrt(variance / DRAWS)
    by_variance = np.abs(squares.mean(axis=0) - variance) / (squares.std(axis=0) / np.sqrt(DRAWS))
    return max(by_mean.max(), by_variance.max())


PRIORS = pytest.mark.parametrize("make", [sparse_prior, oriented_mixture, wavelet_prior])


@PRIORS
def test_draws_have_the_mean_and_the_variance_of_the_posterior(make):
    assert worst_deviation(make(), SIGMA, np.random.default_rng(0)) < FAR


@PRIORS
def test_draws_at_another_noise_level_do_not(make):
    assert worst_deviation(make(), 1.3 * SIGMA, np.random.default_rng(0)) > FAR


@pytest.mark.parametrize("make", [sparse_prior, oriented_mixture])
def test_a_draw_given_a_noisy_patch_of_the_prior_is_a_clean_patch_of_it(make):
    """The second moments of both agree, but for brightness, which no prior knows."""
    prior, rng = make(), np.random.default_rng(1)
    clean, y = prior.sample(2000, 0.0, rng=rng), prior.sample(2000, SIGMA, rng=rng)
    variances = [np.var(x, axis=1) for x in (clean, prior.posterior_sample(y, SIGMA, rng=rng))]
    error = np.hypot(*(x.std() / np.sqrt(x.size) for x in variances))
    assert abs(variances[0].mean() - variances[1].mean()) < 5.0 * error
