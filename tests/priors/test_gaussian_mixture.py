"""The mixture of Gaussians with contrasts: its closed forms, and what it does not model.

The laws of the protocol are in test_protocol.py; here stand those that need quadrature in three dimensions.
"""

import laws
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import kstest, multivariate_normal

from examples import GAUSSIAN_MIXTURES, Altered, gaussian_mixture, span_of
from heatprior import GaussianMixturePrior, tweedie

every_mixture = pytest.mark.parametrize("prior", GAUSSIAN_MIXTURES.values(), ids=GAUSSIAN_MIXTURES)
# Three dimensions, and widths near each other: grids of half a million points.
WIDE = {
    "one Gaussian": gaussian_mixture(2, 1, narrowest=0.25),
    "two Gaussians": gaussian_mixture(2, 2, seed=1, narrowest=0.25),
    "two shapes at two contrasts": gaussian_mixture(2, 2, (0.7, 1.4), seed=2, narrowest=0.25),
}
every_wide_mixture = pytest.mark.parametrize("prior", WIDE.values(), ids=WIDE)


class NoiseOnOneAxisOnly(GaussianMixturePrior):
    """Wrong: noise widens the longest axis of each shape and no other."""

    def _evaluate(self, function, y, sigma):
        longest = self.turns[:, :1]  # (K, 1, d)
        widened = self.covariances + np.max(sigma) ** 2 * longest.swapaxes(1, 2) @ longest
        return GaussianMixturePrior(widened, self.log_weights)._evaluate(function, y, 0.0)


def wrong_mixture(prior):
    return NoiseOnOneAxisOnly(prior.covariances, prior.log_weights)


def patches(prior, sigma, count=5):
    return prior.sample(count, sigma, rng=np.random.default_rng(0))


@every_wide_mixture
@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_mass_is_one(prior, sigma):
    laws.mass_is_one(prior, span_of(prior), sigma)


@every_wide_mixture
def test_diffusing_twice_is_diffusing_once_for_the_sum_of_the_times(prior):
    laws.diffusion_is_a_semigroup(prior, span_of(prior), patches(prior, 0.3, 2), 0.2, 0.3)


@every_wide_mixture
def test_the_posterior_is_that_by_quadrature(prior):
    y = patches(prior, 0.4, 2)
    laws.tweedie_is_the_posterior_mean(prior, span_of(prior), y, 0.4)
    laws.variance_is_the_posterior_variance(prior, span_of(prior), y, 0.4)


def test_with_noise_on_one_axis_only_it_is_no_diffusion():
    prior = WIDE["two Gaussians"]
    wrong, span, y = wrong_mixture(prior), span_of(prior), patches(prior, 0.3, 2)
    laws.mass_is_one(wrong, span, 0.0)  # without noise nothing is wrong
    with pytest.raises(AssertionError):
        laws.log_prob_solves_the_heat_equation(wrong, span, y, 0.3)
    with pytest.raises(AssertionError):
        laws.diffusion_is_a_semigroup(wrong, span, y, 0.2, 0.3)
    with pytest.raises(AssertionError):
        laws.tweedie_is_the_posterior_mean(wrong, span, y, 0.4)
    with pytest.raises(AssertionError):
        laws.samples_obey_steins_identity(wrong, span, 0.3, rng=np.random.default_rng(0))


@every_mixture
@pytest.mark.parametrize("sigma", [0.0, 1e-3, 0.1, 3.0])
def test_the_density_is_the_sum_of_its_gaussians(prior, sigma):
    y = np.concatenate([patches(prior, sigma), 5 * patches(prior, 0.0, 2)])
    noise = sigma**2 * np.eye(len(prior.basis))
    density = sum(
        weight * multivariate_normal(cov=contrast * covariance + noise).pdf(y @ prior.basis.T)
        for covariance, weights in zip(prior.covariances, np.exp(prior.log_weights), strict=True)
        for contrast, weight in zip(prior.contrasts, weights, strict=True)
    )
    np.testing.assert_allclose(prior.log_prob(y, sigma), np.log(density), rtol=1e-9, atol=1e-9)


def p_values(prior, samples, sigma):
    """Kolmogorov–Smirnov along ten directions, against the closed form of the marginal, a mixture on the line."""
    directions = np.random.default_rng(1).standard_normal((10, len(prior.basis)))
    for direction in directions / np.linalg.norm(directions, axis=1, keepdims=True):
        variances = np.outer(direction @ prior.covariances @ direction, prior.contrasts) + sigma**2
        weights, widths = np.exp(prior.log_weights).ravel(), np.sqrt(variances).ravel()
        along = samples @ (direction @ prior.basis)
        yield kstest(along, lambda x, s=widths, w=weights: ndtr(x[:, None] / s) @ w).pvalue


@every_mixture
@pytest.mark.parametrize("sigma", [0.0, 0.2])
def test_samples_follow_the_marginals_in_closed_form(prior, sigma):
    samples = patches(prior, sigma, 5000)
    assert min(p_values(prior, samples, sigma)) > 1e-4  # by chance once in 1000
    assert min(p_values(prior, 1.2 * samples, sigma)) < 1e-4


@every_mixture
@pytest.mark.parametrize("sigma", [1e-6, 0.02, 0.3, 2.0])
def test_the_posterior_mean_is_tweedies(prior, sigma):
    y = patches(prior, sigma)
    np.testing.assert_allclose(prior.posterior(y, sigma).mean, tweedie(prior, y, sigma), rtol=0, atol=1e-12)


@every_mixture
@pytest.mark.parametrize("sigma", [0.02, 0.3, 2.0])
def test_the_posterior_variance_is_tweedies_second_formula(prior, sigma):
    laws.variance_is_tweedies_second_formula(prior, span_of(prior), patches(prior, sigma), sigma)


@every_mixture
def test_the_posterior_variance_is_that_by_monte_carlo(prior):
    y, rng = patches(prior, 1.0)[0], np.random.default_rng(1)
    laws.variance_is_the_posterior_variance_of_samples(prior, span_of(prior), y, 1.0, rng=rng)


def test_a_variance_too_large_is_noticed():
    prior = WIDE["two Gaussians"]
    wrong, y = Altered(prior, variance_factor=1.01), patches(prior, 0.3)
    with pytest.raises(AssertionError):
        laws.variance_is_tweedies_second_formula(wrong, span_of(prior), y, 0.3)


@every_mixture
def test_without_noise_the_posterior_is_the_input_for_sure(prior):
    y = patches(prior, 0.3)
    mean, variance = prior.posterior(y, 0.0)
    np.testing.assert_array_equal(mean, y)
    np.testing.assert_array_equal(variance, 0.0)
    np.testing.assert_allclose(prior.posterior(y, 1e-9).variance, 1e-18, rtol=1e-6)


@every_mixture
def test_under_much_noise_the_posterior_is_the_prior_and_the_brightness_of_the_input(prior):
    y, sigma, pixels = np.full(prior.size**2, 0.4), 1e6, prior.size**2
    mean, variance = prior.posterior(y, sigma)
    np.testing.assert_allclose(mean, y, rtol=0, atol=1e-9)
    weights = np.exp(prior.log_weights)
    covariance = np.einsum("kg,g,kde->de", weights, prior.contrasts, prior.covariances)
    expected = np.einsum("dp,de,ep->p", prior.basis, covariance, prior.basis)
    # The brightness adds sigma² / a, which is all that doubles can tell of the sum at this noise level.
    np.testing.assert_allclose(variance - sigma**2 / pixels, expected, rtol=1e-3, atol=1e-15 * sigma**2)


@every_mixture
def test_brightness_is_not_modelled(prior):
    y = patches(prior, 0.1)
    np.testing.assert_allclose(prior.log_prob(y + 0.7, 0.1), prior.log_prob(y, 0.1), rtol=1e-12)
    np.testing.assert_allclose(prior.posterior(y + 0.7, 0.1).mean, prior.posterior(y, 0.1).mean + 0.7, rtol=1e-12)
    np.testing.assert_allclose(prior.posterior(y + 0.7, 0.1).variance, prior.posterior(y, 0.1).variance, rtol=1e-12)
    np.testing.assert_allclose(prior.score(y, 0.1).sum(axis=-1), 0.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(patches(prior, 0.1).sum(axis=-1), 0.0, rtol=0, atol=1e-12)
