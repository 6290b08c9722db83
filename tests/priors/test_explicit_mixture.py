"""The oracle of Theorem 1 against scipy's Gaussian densities; the laws of the protocol are in test_protocol.py."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from paper.claims.explicit_mixture import ExplicitMixture

RNG = np.random.default_rng(0)
FACTOR = RNG.standard_normal((4, 4))
FULL = ExplicitMixture(np.log([0.2, 0.5, 0.3]), RNG.standard_normal((3, 4)), FACTOR @ FACTOR.T + np.eye(4))


@pytest.mark.parametrize("sigma", [0.0, 0.5, 3.0])
def test_log_prob_is_that_of_the_widened_gaussians(sigma):
    y = np.random.default_rng(1).standard_normal((6, 4))
    covariance = np.linalg.inv(FULL.precision) + sigma**2 * np.eye(4)
    density = sum(
        np.exp(w) * multivariate_normal(mean, covariance).pdf(y)
        for w, mean in zip(FULL.log_weights, FULL.means, strict=True)
    )
    np.testing.assert_allclose(FULL.log_prob(y, sigma), np.log(density), rtol=0, atol=1e-12)


def test_samples_have_the_moments_of_the_mixture():
    samples = FULL.sample(100_000, 0.5, rng=np.random.default_rng(2))
    weights = np.exp(FULL.log_weights)
    mean = weights @ FULL.means
    covariance = np.linalg.inv(FULL.precision) + 0.25 * np.eye(4) + np.cov(FULL.means.T, aweights=weights, ddof=0)
    # Five standard errors of moments of order one, 100,000 samples.
    np.testing.assert_allclose(samples.mean(axis=0), mean, rtol=0, atol=5 * np.sqrt(np.diag(covariance).max() / 1e5))
    np.testing.assert_allclose(
        np.cov(samples.T), covariance, rtol=0, atol=5 * np.sqrt(3 / 1e5) * np.diag(covariance).max()
    )


def test_what_the_precision_does_not_see_has_no_influence():
    axis = np.array([1.0, 1.0, 1.0, 1.0]) / 2
    blind = np.eye(4) - np.outer(axis, axis)
    mixture = ExplicitMixture(FULL.log_weights, FULL.means @ blind, blind @ FULL.precision @ blind)
    y = np.random.default_rng(3).standard_normal((5, 4))
    np.testing.assert_allclose(mixture.log_prob(y + 10 * axis, 0.1), mixture.log_prob(y, 0.1), rtol=1e-10)
    np.testing.assert_allclose(mixture.score(y, 0.1) @ axis, 0.0, rtol=0, atol=1e-10)
    np.testing.assert_allclose(mixture.sample(5, 0.1, rng=np.random.default_rng(4)) @ axis, 0.0, rtol=0, atol=1e-10)
