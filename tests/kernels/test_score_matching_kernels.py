"""The loops of learning compute what their numpy twins say, wherever their three ways of summing meet."""

import numpy as np
import pytest
from scipy.special import log_softmax

from heatprior.kernels.chains import BLOCK, chains_from_the_middle, chains_from_the_middle_plain
from heatprior.kernels.score_matching import (
    error_and_gradient_plain,
    error_to_gradient,
    score_derivatives,
    score_derivatives_plain,
    weight_gradient,
    weight_gradient_plain,
)

WEIGHTS = {
    "even": lambda rng, count: rng.standard_normal((3, count)),
    "starved by hundreds": lambda rng, count: rng.uniform(-800.0, 0.0, (3, count)),
    "starved smoothly": lambda _, count: np.tile(-(np.linspace(0.0, 30.0, count) ** 2), (3, 1)),
    "all on one end": lambda _, count: np.tile(np.where(np.arange(count) == count - 1, 0.0, -300.0), (3, 1)),
}
NOISE = [0.0, 1e-6, 0.02, 0.1, 0.5, 3.0]
TOLERANCE = 1e-10


def problem(weights, components, *, count=300, seed=0):
    """Responses (3, n) inside the grid, on it, between its points and far outside; log-weights and means."""
    rng = np.random.default_rng(seed)
    means = np.linspace(-1.0, 1.0, components)
    special = np.concatenate([means, (means[:-1] + means[1:]) / 2, [50.0, -50.0, 49.3, -3.0, 3.0]])
    responses = np.concatenate([rng.uniform(-1.2, 1.2, (3, count)), np.tile(special, (3, 1))], axis=1)
    return responses, log_softmax(WEIGHTS[weights](rng, components), axis=1), means


def variances_of(responses, means, tau):
    return np.broadcast_to((means[1] - means[0]) ** 2 + np.square(tau), responses.shape).copy()


def assert_equal_derivatives(kernel, twin, responses, variances, tolerance):
    """Relative to what they are made of: with u/s of size one, phi s, phi' s² and ∂phi/∂s² s³ are of size one."""
    size = 1.0 + np.abs(responses) / np.sqrt(variances)
    for name, power in (("score", 1), ("in_response", 2), ("in_variance", 3)):
        scale = variances ** (power / 2) / size**power
        ours, theirs = (getattr(result, name) * scale for result in (kernel, twin))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance, err_msg=name)
    # The twin finds the totals as the exponential of a difference of exponents, which far outside are huge.
    rounding = 1e-15 * (1.0 + responses**2 / variances)
    fed = kernel.totals != 0.0
    assert (np.abs(kernel.totals - twin.totals)[fed] <= ((tolerance + rounding) * twin.totals)[fed]).all()


@pytest.mark.parametrize("tau", NOISE)
@pytest.mark.parametrize("components", [2, 3, 4, 5, 125, 126])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_derivatives_equal_their_twin(weights, components, tau):
    responses, log_weights, means = problem(weights, components)
    variances = variances_of(responses, means, tau)
    kernel = score_derivatives(responses, variances, log_weights, means)
    twin = score_derivatives_plain(responses, variances, log_weights, means)
    assert_equal_derivatives(kernel, twin, responses, variances, TOLERANCE)


def gradients(responses, variances, coefficients, log_weights, means):
    derivatives = score_derivatives(responses, variances, log_weights, means)
    kernel = weight_gradient(responses, variances, coefficients, derivatives, log_weights, means)
    return kernel, weight_gradient_plain(responses, variances, coefficients, log_weights, means)


def assert_equal_gradients(kernel, twin, coefficients, variances, tolerance):
    """Relative to the largest entry of an expert; a sum without any cancellation would be below `most`."""
    most = 2.0 * (np.abs(coefficients) / variances).sum(axis=1, keepdims=True)
    scale = np.maximum(np.abs(twin).max(axis=1, keepdims=True), 1e-3 * most)
    np.testing.assert_allclose(kernel / scale, twin / scale, rtol=0, atol=tolerance)


@pytest.mark.parametrize("tau", NOISE)
@pytest.mark.parametrize("components", [2, 3, 4, 5, 125, 126])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_gradient_in_the_weights_equals_its_twin(weights, components, tau):
    responses, log_weights, means = problem(weights, components)
    variances = variances_of(responses, means, tau)
    coefficients = np.random.default_rng(1).standard_normal(responses.shape)
    kernel, twin = gradients(responses, variances, coefficients, log_weights, means)
    assert_equal_gradients(kernel, twin, coefficients, variances, TOLERANCE)


@pytest.mark.parametrize("count", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_blocks_of_responses_meet_without_a_seam(count):
    rng = np.random.default_rng(2)
    _, log_weights, means = problem("even", 125)
    responses = rng.uniform(-1.1, 1.1, (3, count))
    variances = variances_of(responses, means, rng.choice(NOISE, responses.shape))
    coefficients = rng.standard_normal(responses.shape)
    kernel = score_derivatives(responses, variances, log_weights, means)
    twin = score_derivatives_plain(responses, variances, log_weights, means)
    assert_equal_derivatives(kernel, twin, responses, variances, TOLERANCE)
    gradient, of_twin = gradients(responses, variances, coefficients, log_weights, means)
    assert_equal_gradients(gradient, of_twin, coefficients, variances, TOLERANCE)


def test_every_expert_and_response_may_be_of_another_case():
    """Wide, narrow and starved responses side by side in one block."""
    responses, log_weights, means = problem("starved by hundreds", 125, count=2000)
    log_weights[1] = log_softmax(np.zeros(125))
    variances = variances_of(responses, means, np.random.default_rng(3).choice(NOISE, responses.shape))
    coefficients = np.random.default_rng(4).standard_normal(responses.shape)
    kernel = score_derivatives(responses, variances, log_weights, means)
    twin = score_derivatives_plain(responses, variances, log_weights, means)
    assert (kernel.totals == 0.0).any()
    assert (kernel.totals != 0.0).any()
    assert_equal_derivatives(kernel, twin, responses, variances, TOLERANCE)
    gradient, of_twin = gradients(responses, variances, coefficients, log_weights, means)
    assert_equal_gradients(gradient, of_twin, coefficients, variances, TOLERANCE)


def test_the_gradient_in_the_weights_of_an_expert_sums_to_zero():
    """A constant added to all logits changes nothing."""
    responses, log_weights, means = problem("even", 125)
    variances = variances_of(responses, means, 0.1)
    coefficients = np.random.default_rng(5).standard_normal(responses.shape)
    kernel, _ = gradients(responses, variances, coefficients, log_weights, means)
    scale = (np.abs(coefficients) / variances).sum(axis=1)
    assert (np.abs(kernel.sum(axis=1)) <= 1e-12 * scale).all()


def test_the_comparison_notices_a_weight_that_is_off_by_one_part_in_a_million():
    responses, log_weights, means = problem("even", 125)
    variances = variances_of(responses, means, 0.1)
    coefficients = np.random.default_rng(6).standard_normal(responses.shape)
    off = log_weights.copy()
    off[1, 60] += 1e-6
    assert_equal_gradients(
        *gradients(responses, variances, coefficients, log_weights, means), coefficients, variances, TOLERANCE
    )
    kernel = score_derivatives(responses, variances, off, means)
    with pytest.raises(AssertionError):
        assert_equal_derivatives(
            kernel, score_derivatives_plain(responses, variances, log_weights, means), responses, variances, TOLERANCE
        )
    gradient, _ = gradients(responses, variances, coefficients, off, means)
    of_twin = weight_gradient_plain(responses, variances, coefficients, log_weights, means)
    with pytest.raises(AssertionError):
        assert_equal_gradients(gradient, of_twin, coefficients, variances, TOLERANCE)


@pytest.mark.parametrize("components", [2, 3, 8, 9, 125, 126])
def test_chains_from_the_middle(components):
    weights = np.random.default_rng(0).random((3, components))
    kernel, twin = chains_from_the_middle(weights), chains_from_the_middle_plain(weights)
    np.testing.assert_allclose(kernel, twin, rtol=1e-14)
    assert kernel[:, :, 0].sum() == pytest.approx(weights.sum())
    assert np.abs(kernel - chains_from_the_middle_plain(weights[:, ::-1])).max() > 0.01


def test_squared_error_and_its_gradient():
    rng = np.random.default_rng(4)
    changes, noise = rng.standard_normal((2, 9, 37))
    sigma = rng.uniform(0.01, 0.4, 37)
    expected, gradient = error_and_gradient_plain(changes, noise, sigma)
    replaced = changes.copy()
    assert error_to_gradient(replaced, noise, sigma) == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(replaced, gradient, rtol=1e-13)
    step = 1e-6 * rng.standard_normal(changes.shape)
    after, before = (error_and_gradient_plain(changes + way * step, noise, sigma)[0] for way in (1, -1))
    rise = after - before
    assert 0.5 * rise == pytest.approx(float((gradient * step).sum()), rel=1e-5)
    assert abs(0.5 * rise - float((gradient[:, ::-1] * step).sum())) > 1e-3 * abs(rise)  # of other patches
