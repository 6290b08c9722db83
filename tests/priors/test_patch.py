"""The patch prior: Theorems 1 and 2, Corollary 2.1, and what the filters do not see."""

import laws
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import kstest

from examples import PATCH_PRIORS, patch_prior, span_of, tilted
from heatprior import Experts, FilterBank, InvalidInputError, PatchPrior, tweedie
from paper.claims.explicit_mixture import ExplicitMixture
from paper.claims.heat_residual import time_derivative

every_patch_prior = pytest.mark.parametrize("prior", PATCH_PRIORS.values(), ids=PATCH_PRIORS)
SMALL = {name: prior for name, prior in PATCH_PRIORS.items() if prior.filters.count <= 2}
every_small_prior = pytest.mark.parametrize("prior", SMALL.values(), ids=SMALL)
TINY = [patch_prior(2, 1, 5), patch_prior(2, 3, 4, seed=1), patch_prior(3, 5, 3, seed=2), patch_prior(4, 9, 2, seed=3)]


def patches(prior, sigma, count=5):
    return prior.sample(count, sigma, rng=np.random.default_rng(0))


@pytest.mark.parametrize("prior", TINY, ids=lambda p: "{}^{}".format(*p.experts.logits.shape[::-1]))
@pytest.mark.parametrize("sigma", [0.0, 1e-6, 0.1, 3.0, 100.0])
def test_the_product_of_experts_is_the_mixture_of_all_combinations(prior, sigma):
    mixture = ExplicitMixture.of(prior)
    y = np.concatenate([patches(prior, sigma), 30 * patches(prior, 0.0, 2)])
    np.testing.assert_allclose(prior.log_prob(y, sigma), mixture.log_prob(y, sigma), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(prior.score(y, sigma), mixture.score(y, sigma), rtol=1e-10, atol=1e-10)


def test_a_tilted_product_is_its_mixture_without_noise_only():
    prior = tilted(patch_prior(2, 2, 3, seed=4), 5)
    mixture, y = ExplicitMixture.of(prior), patches(prior, 0.1)
    volume = np.log(np.linalg.svd(prior.filters.matrix, compute_uv=False)).sum() - np.log(prior.filters.norms).sum()
    np.testing.assert_allclose(prior.log_prob(y, 0.0) + volume, mixture.log_prob(y, 0.0), rtol=0, atol=1e-10)
    assert np.abs(prior.log_prob(y, 0.5) + volume - mixture.log_prob(y, 0.5)).max() > 1e-2


def test_the_mixture_has_the_precision_of_equation_7_and_all_its_components():
    prior = patch_prior(3, 4, 3)
    mixture = ExplicitMixture.of(prior)
    assert mixture.means.shape == (3**4, 9)
    outer = sum(np.outer(k, k) for k in prior.filters.matrix)
    np.testing.assert_allclose(mixture.precision, outer / prior.experts.base_sigma**2, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.exp(mixture.log_weights).sum(), 1.0, rtol=1e-12)
    responses = prior.filters.analyse(mixture.means)
    np.testing.assert_allclose(np.unique(responses.round(9)), prior.experts.means, rtol=0, atol=1e-9)


def test_a_mixture_too_large_to_write_out_is_refused():
    with pytest.raises(InvalidInputError, match=r"^125\^48 components are too many to write out; at most \d+$"):
        ExplicitMixture.of(PatchPrior(FilterBank.dct(7), Experts.student(48)))


@every_patch_prior
@pytest.mark.parametrize("sigma", [0.02, 0.3, 2.0])
def test_the_heat_equation_holds_with_the_experts_own_derivatives(prior, sigma):
    y = patches(prior, sigma)
    u, norms = prior.filters.analyse(y), prior.filters.norms
    variance = prior.experts.base_sigma**2 + (sigma * norms) ** 2
    laplacian = ((prior.experts.moments(u, sigma * norms).variance - variance) / variance**2) @ norms**2
    drift = prior.experts.first_derivative(u, sigma * norms) ** 2 @ norms**2
    in_time = time_derivative(prior.log_prob, y, sigma, span_of(prior).widths.min())
    # 1e-7 of the largest term; finite differences are in time only.
    np.testing.assert_allclose(in_time, laplacian + drift, rtol=0, atol=1e-7 * np.abs([laplacian, drift]).max())


def marginal_p_values(prior, sigma, expert_sigma):
    """Kolmogorov–Smirnov of ⟨k_j, Y⟩ against psi_j, for every j."""
    responses = prior.filters.analyse(patches(prior, sigma, 5_000))
    experts = prior.experts
    widths = np.sqrt(experts.base_sigma**2 + (prior.filters.norms * expert_sigma) ** 2)
    return np.array(
        [
            kstest(z, lambda x, w=w, s=s: ndtr((x[:, None] - experts.means) / s) @ w).pvalue
            for z, w, s in zip(responses.T, experts.weights, widths, strict=True)
        ]
    )


@every_patch_prior
@pytest.mark.parametrize("sigma", [0.0, 0.1, 1.0])
def test_experts_are_the_laws_of_the_responses(prior, sigma):
    # Up to 24 tests each: by chance the least of their p-values is below 1e-4 once in 400.
    assert marginal_p_values(prior, sigma, sigma).min() > 1e-4


@every_patch_prior
def test_experts_at_another_noise_level_are_not_the_laws_of_the_responses(prior):
    assert marginal_p_values(prior, 1.0, 0.5).min() < 1e-8


@every_patch_prior
@pytest.mark.parametrize("sigma", [0.0, 0.05, 1.0, 100.0])
def test_the_posterior_mean_is_tweedies(prior, sigma):
    y = patches(prior, sigma)
    # Tweedie's difference cancels: its roundings are those of y.
    expected = tweedie(prior, y, sigma)
    np.testing.assert_allclose(prior.posterior(y, sigma).mean, expected, rtol=0, atol=1e-12 * (1 + np.abs(y).max()))


@every_patch_prior
@pytest.mark.parametrize("sigma", [0.02, 0.3, 2.0])
def test_the_posterior_variance_is_tweedies_second_formula(prior, sigma):
    laws.variance_is_tweedies_second_formula(prior, span_of(prior), patches(prior, sigma), sigma)


@every_small_prior
@pytest.mark.parametrize("sigma", [0.1, 0.4, 3.0])
def test_the_posterior_variance_is_that_by_quadrature(prior, sigma):
    laws.variance_is_the_posterior_variance(prior, span_of(prior), patches(prior, sigma), sigma)


@every_patch_prior
def test_the_posterior_variance_is_that_by_monte_carlo(prior):
    y, rng = patches(prior, 1.0)[0], np.random.default_rng(1)
    laws.variance_is_the_posterior_variance_of_samples(prior, span_of(prior), y, 1.0, rng=rng)


@every_patch_prior
def test_without_noise_the_posterior_is_the_input_for_sure(prior):
    y = patches(prior, 0.3)
    mean, variance = prior.posterior(y, 0.0)
    np.testing.assert_array_equal(mean, y)
    np.testing.assert_array_equal(variance, 0.0)
    np.testing.assert_allclose(prior.posterior(y, 1e-9).variance, 1e-18, rtol=1e-6)


@every_patch_prior
def test_under_much_noise_the_posterior_is_the_prior_on_the_span_and_the_input_off_it(prior):
    y, sigma = np.full(prior.filters.pixels, 0.4), 1e6
    axes, experts, norms = span_of(prior).axes, prior.experts, prior.filters.norms
    prior_mean = (experts.weights @ experts.means / norms) @ axes
    response_variance = experts.weights @ experts.means**2 - (experts.weights @ experts.means) ** 2
    prior_variance = ((response_variance + experts.base_sigma**2) / norms**2) @ axes**2
    mean, variance = prior.posterior(y, sigma)
    np.testing.assert_allclose(mean, prior_mean + y - axes.T @ (axes @ y), rtol=0, atol=1e-9)
    # sigma² of what is unseen is known to the rounding of 1 − Σ axes², hence relative to sigma².
    off_span = sigma**2 * (1 - (axes**2).sum(axis=0))
    np.testing.assert_allclose(variance, prior_variance + off_span, rtol=1e-9, atol=1e-15 * sigma**2)


def test_brightness_is_not_modelled_by_zero_mean_filters():
    prior = PATCH_PRIORS["three filters on 2×2"]
    y = patches(prior, 0.1)
    np.testing.assert_allclose(prior.log_prob(y + 0.7, 0.1), prior.log_prob(y, 0.1), rtol=1e-12)
    np.testing.assert_allclose(prior.posterior(y + 0.7, 0.1).mean, prior.posterior(y, 0.1).mean + 0.7, rtol=1e-12)
    np.testing.assert_allclose(prior.score(y, 0.1).sum(axis=-1), 0.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(patches(prior, 0.1).sum(axis=-1), 0.0, rtol=0, atol=1e-12)


def test_brightness_is_modelled_by_a_full_bank():
    prior = PATCH_PRIORS["brightness too"]
    y = patches(prior, 0.1)
    assert np.abs(prior.log_prob(y + 0.7, 0.1) - prior.log_prob(y, 0.1)).min() > 0.01


def test_the_same_generator_gives_the_same_samples():
    prior = PATCH_PRIORS["two filters on 3×3"]
    np.testing.assert_array_equal(patches(prior, 0.1), patches(prior, 0.1))


def test_parameters_are_counted():
    assert PatchPrior(FilterBank.dct(3), Experts.student(8, 5)).parameters == 8 * 9 + 8 * 5


def test_filters_without_experts_are_refused():
    with pytest.raises(InvalidInputError, match=r"^8 filters but 7 experts; each filter needs one$"):
        PatchPrior(FilterBank.dct(3), Experts.student(7))
