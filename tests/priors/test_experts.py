"""One-dimensional mixtures: derivatives, diffusion, posterior and samples of each expert."""

import numpy as np
import pytest
from laws import derivative
from scipy.stats import kstest, norm

from heatprior import Experts, InvalidInputError
from paper.learning.ipalm import initial_experts

LOPSIDED = Experts(np.random.default_rng(0).standard_normal((3, 9)), reach=0.7)
PAPER = initial_experts(3)
every_bank = pytest.mark.parametrize("experts", [LOPSIDED, PAPER], ids=["lopsided", "paper's"])
every_noise = pytest.mark.parametrize("tau", [0.0, 1e-6, 0.05, 1.0, 100.0])


def responses(experts, tau, count=7):
    """Likely ones, and others up to six times as far out."""
    return experts.sample(count, tau, rng=np.random.default_rng(1)) * np.linspace(1.0, 6.0, count)[:, None]


def line(experts, tau, narrowest):
    """A uniform line over all the mass, (n, J), and its step: 0.7 of the narrowest Gaussian, exact to rounding."""
    half = experts.reach + 9.0 * np.hypot(experts.base_sigma, tau)
    points = np.linspace(-half, half, int(2 * half / (0.7 * narrowest)) + 2)
    return np.repeat(points[:, None], len(experts.logits), axis=1), points[1] - points[0]


def width_of_product(one, other):
    return (one**-2 + other**-2) ** -0.5


@every_bank
@every_noise
def test_the_density_is_the_sum_over_the_components_of_equation_6(experts, tau):
    u = responses(experts, tau)
    components = norm.pdf(u[..., None], experts.means, np.hypot(experts.base_sigma, tau))
    density = (experts.weights * components).sum(axis=-1)
    np.testing.assert_allclose(np.exp(experts.log_density(u, tau)), density, rtol=1e-10, atol=1e-300)


@every_bank
@every_noise
def test_derivatives_are_those_of_the_log_density(experts, tau):
    u, width = responses(experts, tau), np.hypot(experts.base_sigma, tau)
    step = 0.05 * width
    first = derivative(lambda h: experts.log_density(u + h, tau), step)
    second = derivative(lambda h: experts.first_derivative(u + h, tau), step)
    own = (experts.moments(u, tau).variance - width**2) / width**2
    # 1e-8 in units of the width: the truncation of the stencil.
    np.testing.assert_allclose(width * experts.first_derivative(u, tau), width * first, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(own, width**2 * second, rtol=1e-8, atol=1e-8)


@every_bank
@every_noise
def test_mass_is_one(experts, tau):
    points, step = line(experts, tau, np.hypot(experts.base_sigma, tau))
    np.testing.assert_allclose(np.exp(experts.log_density(points, tau)).sum(axis=0) * step, 1.0, rtol=1e-12)


@every_bank
@pytest.mark.parametrize(("first", "second"), [(0.0, 0.1), (0.05, 0.02), (0.3, 1.0)])
def test_diffusing_twice_is_diffusing_once_for_the_sum_of_the_times(experts, first, second):
    points, step = line(experts, first, width_of_product(np.hypot(experts.base_sigma, first), second))
    density = np.exp(experts.log_density(points, first))  # (n, J)
    u = responses(experts, first)[:3]
    kernel = norm.pdf(u[:, None, :], points, second)
    convolved = (kernel * density).sum(axis=1) * step
    np.testing.assert_allclose(convolved, np.exp(experts.log_density(u, np.hypot(first, second))), rtol=1e-10)


@every_bank
@pytest.mark.parametrize("tau", [0.01, 0.1, 1.0])
def test_the_posterior_has_the_moments_by_quadrature(experts, tau):
    points, _ = line(experts, 0.0, width_of_product(experts.base_sigma, tau))
    u = experts.sample(5, tau, rng=np.random.default_rng(2))
    weights = norm.pdf(u[:, None, :], points, tau) * np.exp(experts.log_density(points, 0.0))  # (5, n, J)
    weights /= weights.sum(axis=1, keepdims=True)
    expected_mean = (weights * points).sum(axis=1)
    expected_variance = (weights * (points - expected_mean[:, None]) ** 2).sum(axis=1)
    mean, variance = experts.posterior(u, tau)
    np.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(variance, expected_variance, rtol=1e-9)


@every_bank
def test_without_noise_the_posterior_is_the_response_and_under_much_noise_the_prior(experts):
    u = responses(experts, 0.1)
    mean, variance = experts.posterior(u, 0.0)
    np.testing.assert_array_equal(mean, u)
    np.testing.assert_array_equal(variance, 0.0)
    prior_mean = experts.weights @ experts.means
    prior_variance = experts.weights @ experts.means**2 - prior_mean**2 + experts.base_sigma**2
    mean, variance = experts.posterior(u, 1e7)
    # What is left of the response is its part in 1e14.
    np.testing.assert_allclose(mean, np.broadcast_to(prior_mean, u.shape), rtol=0, atol=1e-11)
    np.testing.assert_allclose(variance, np.broadcast_to(prior_variance, u.shape), rtol=1e-10)


@every_bank
@every_noise
def test_responses_of_50_have_finite_derivatives_that_point_back(experts, tau):
    u = np.full((1, 3), 50.0) * [[1.0], [-1.0]]
    slope = experts.first_derivative(u, tau)
    assert np.isfinite(experts.log_density(u, tau)).all()
    assert (slope * u < 0).all()
    assert (np.abs(slope) <= (50 + experts.reach) / (experts.base_sigma**2 + tau**2)).all()


def test_symmetric_experts_have_an_odd_score_and_an_even_density():
    u = np.linspace(0.0, 3.0, 31)[:, None] * np.ones(3)
    for tau in (0.0, 0.1, 10.0):
        np.testing.assert_allclose(PAPER.first_derivative(-u, tau), -PAPER.first_derivative(u, tau), rtol=0, atol=1e-9)
        np.testing.assert_allclose(PAPER.log_density(-u, tau), PAPER.log_density(u, tau), rtol=1e-12)


def test_lopsided_experts_do_not():
    u = np.full((1, 3), 0.3)
    assert np.abs(LOPSIDED.first_derivative(-u, 0.1) + LOPSIDED.first_derivative(u, 0.1)).min() > 0.01


@every_bank
@pytest.mark.parametrize("tau", [0.0, 0.2])
def test_samples_are_of_the_density(experts, tau):
    samples = experts.sample(20_000, tau, rng=np.random.default_rng(3))
    width = np.hypot(experts.base_sigma, tau)
    for z, weights in zip(samples.T, experts.weights, strict=True):
        assert kstest(z, lambda x, w=weights: norm.cdf(x[:, None], experts.means, width) @ w).pvalue > 1e-3
    variance = experts.weights @ experts.means**2 - (experts.weights @ experts.means) ** 2 + width**2
    # Five standard errors of a variance, whose kurtosis is below six.
    np.testing.assert_allclose(samples.var(axis=0), variance, rtol=5 * np.sqrt(5 / 20_000))


def test_initial_experts_are_the_papers():
    experts = initial_experts(2)
    means = np.arange(-62, 63) / 62
    assert experts.logits.shape == (2, 125)
    assert experts.base_sigma == pytest.approx(2 / 124)
    np.testing.assert_allclose(experts.means, means, rtol=0, atol=1e-15)
    np.testing.assert_allclose(experts.logits[1], 0.1 * np.sqrt(1000) / (1 + 1000 * means**2), rtol=1e-12)


def test_students_experts_have_the_tails_of_a_cauchy_density():
    experts = Experts.student(2)
    weights = experts.weights[1] / experts.weights[1].max()
    np.testing.assert_allclose(weights, 1 / (1 + 1000 * experts.means**2), rtol=1e-12)
    outermost = [bank.weights[0, 0] / bank.weights[0, 62] for bank in (experts, initial_experts(2))]
    assert outermost[0] < 0.001
    assert outermost[1] > 0.04  # the control: the paper's start is flat there


@every_bank
def test_weights_lie_on_the_simplex(experts):
    assert (experts.weights > 0).all()
    np.testing.assert_allclose(experts.weights.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(np.log(experts.weights), experts.log_weights, rtol=0, atol=1e-12)


def test_adding_a_constant_to_the_logits_changes_nothing():
    shifted = Experts(LOPSIDED.logits + np.array([[1.0], [-300.0], [1e4]]), LOPSIDED.reach)
    np.testing.assert_allclose(shifted.log_weights, LOPSIDED.log_weights, rtol=0, atol=1e-11)


def test_parameters_are_a_copy_that_cannot_be_written():
    logits = np.zeros((1, 3))
    experts = Experts(logits)
    logits[:] = 1.0
    assert (experts.logits == 0).all()
    with pytest.raises(ValueError, match="read-only"):
        experts.logits[0, 0] = 1.0


@pytest.mark.parametrize(
    ("logits", "reach", "message"),
    [
        (np.zeros(3), 1.0, r"logits have shape \(3,\); expected \(experts, components ≥ 2\)"),
        (np.zeros((3, 1)), 1.0, r"logits have shape \(3, 1\)"),
        (np.zeros((0, 5)), 1.0, r"logits have shape \(0, 5\)"),
        (np.full((1, 2), np.nan), 1.0, "logits hold NaN or infinite values"),
        (np.array([[0.0, -np.inf]]), 1.0, "a weight of zero is not allowed"),
        (np.zeros((1, 2)), 0.0, "reach is 0.0; expected a number from"),
        (np.zeros((1, 2)), np.nan, "reach is nan"),
        (np.zeros((1, 2)), np.inf, "reach is inf"),
    ],
)
def test_what_is_no_bank_of_experts_is_refused(logits, reach, message):
    with pytest.raises(InvalidInputError, match=message):
        Experts(logits, reach)
