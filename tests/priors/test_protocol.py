"""Every prior obeys every law of the protocol. That the laws can fail is shown in tests/test_laws.py."""

import laws
import numpy as np
import pytest

from examples import PRIORS, patch_prior, span_of, tilted
from heatprior.priors.protocol import DiffusedPrior, tweedie
from paper.claims.explicit_mixture import ExplicitMixture

every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
SMALL = {name: prior for name, prior in PRIORS.items() if len(span_of(prior).axes) <= 2}
every_small_prior = pytest.mark.parametrize("prior", SMALL.values(), ids=SMALL)


def points(prior, sigma, *, seed):
    """Four likely patches and two remote ones."""
    rng = np.random.default_rng(seed)
    return prior.sample(6, sigma, rng=rng) * np.array([1, 1, 1, 1, 5, 5])[:, None]


@every_prior
def test_every_prior_fulfils_the_protocol(prior):
    assert isinstance(prior, DiffusedPrior)


@every_prior
@pytest.mark.parametrize("sigma", [0.0, 0.02, 0.3, 2.0, 100.0])
def test_score_is_the_gradient_of_log_prob(prior, sigma):
    laws.score_is_the_gradient_of_log_prob(prior, span_of(prior), points(prior, sigma, seed=1), sigma)


@every_prior
@pytest.mark.parametrize("sigma", [0.02, 0.05, 0.3, 2.0, 100.0])
def test_log_prob_solves_the_heat_equation(prior, sigma):
    laws.log_prob_solves_the_heat_equation(prior, span_of(prior), points(prior, sigma, seed=2), sigma)


@every_small_prior
@pytest.mark.parametrize(("first", "second"), [(0.0, 0.3), (0.1, 0.2), (0.5, 0.3)])
def test_diffusing_twice_is_diffusing_once_for_the_sum_of_the_times(prior, first, second):
    laws.diffusion_is_a_semigroup(prior, span_of(prior), points(prior, first, seed=3)[:4], first, second)


THREE_DIMENSIONS = {
    "three filters on 2×2": PRIORS["three filters on 2×2"],
    "three filters that are not orthogonal": ExplicitMixture.of(tilted(patch_prior(2, 3, 3, seed=7), 30)),
}


@pytest.mark.parametrize("prior", (SMALL | THREE_DIMENSIONS).values(), ids=(SMALL | THREE_DIMENSIONS))
@pytest.mark.parametrize("sigma", [0.0, 0.1, 1.0])
def test_mass_is_one_on_the_span_in_one_to_three_dimensions(prior, sigma):
    laws.mass_is_one(prior, span_of(prior), sigma)


@every_small_prior
@pytest.mark.parametrize("sigma", [0.1, 0.4, 3.0])
def test_tweedie_is_the_posterior_mean_by_quadrature(prior, sigma):
    laws.tweedie_is_the_posterior_mean(prior, span_of(prior), points(prior, sigma, seed=4)[:4], sigma)


@every_prior
def test_tweedie_is_the_posterior_mean_by_monte_carlo(prior):
    span = span_of(prior)
    y = prior.sample(1, 2.0, rng=np.random.default_rng(5))[0]
    laws.tweedie_is_the_posterior_mean_of_samples(prior, span, y, 2.0, rng=np.random.default_rng(6))


@every_small_prior
@pytest.mark.parametrize("sigma", [0.0, 0.2, 2.0])
def test_samples_follow_the_density(prior, sigma):
    laws.samples_follow_the_density(prior, span_of(prior), sigma, rng=np.random.default_rng(7))


@every_prior
@pytest.mark.parametrize("sigma", [0.0, 0.1, 1.0])
def test_samples_obey_steins_identity(prior, sigma):
    laws.samples_obey_steins_identity(prior, span_of(prior), sigma, rng=np.random.default_rng(8))


@every_prior
def test_one_sigma_per_patch_is_patch_by_patch(prior):
    laws.sigma_per_patch_is_patch_by_patch(prior, points(prior, 0.1, seed=9), np.geomspace(0.01, 10.0, 6))


@every_prior
def test_one_sigma_per_patch_gives_each_sample_its_own_noise(prior):
    span, sigmas = span_of(prior), np.tile([0.0, 100.0], 2000)
    samples = prior.sample(4000, sigmas, rng=np.random.default_rng(10)) @ span.axes.T
    assert (np.abs(samples[::2]) < span.radii + 6 * span.widths).all()
    # Five standard errors of the root of a mean of 2000 squares, one part in √4000 each.
    np.testing.assert_allclose(np.sqrt((samples[1::2] ** 2).mean()), 100.0, rtol=0.08)


@every_prior
def test_without_noise_tweedie_returns_the_input(prior):
    y = points(prior, 0.1, seed=11)
    np.testing.assert_array_equal(tweedie(prior, y, 0.0), y)
    # The step is sigma² times the score, and that is at most the distance from the means over the least variance.
    np.testing.assert_allclose(tweedie(prior, y, 1e-7), y, rtol=0, atol=1e-14 * 20 / span_of(prior).narrowest(0.0) ** 2)


@every_prior
def test_under_much_noise_tweedie_returns_the_prior_mean_on_the_span(prior):
    span = span_of(prior)
    samples = prior.sample(100_000, rng=np.random.default_rng(12))
    y = 0.3 * np.ones(samples.shape[1])
    expected = samples.mean(axis=0) + y - span.axes.T @ (span.axes @ y)
    standard_error = samples.std(axis=0) / np.sqrt(len(samples))
    assert (np.abs(tweedie(prior, y, 1e4) - expected) < 5 * standard_error + 1e-6).all()
