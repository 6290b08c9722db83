"""The loops of training compute, in float32, what their numpy twins say in float64, wherever their ways meet."""

import numpy as np
import pytest
from scipy.special import log_softmax

from heatprior.kernels.expert_moments import chains_from_the_middle
from heatprior.kernels.score_matching import (
    BLOCK,
    error_and_gradient_plain,
    error_to_gradient,
    score_derivatives,
    score_derivatives_plain,
    weight_gradient,
    weight_gradient_plain,
)
from heatprior.learning.patch_training import MOST_COMPONENTS

WEIGHTS = {
    "even": lambda rng, count: rng.standard_normal((3, count)),
    "peaked": lambda _, count: np.tile(-np.abs(np.linspace(-40.0, 40.0, count)), (3, 1)),
    "starved by hundreds": lambda rng, count: rng.uniform(-300.0, 0.0, (3, count)),
    "all on one end": lambda _, count: np.tile(np.where(np.arange(count) == count - 1, 0.0, -300.0), (3, 1)),
}
NOISE = [0.0, 0.02, 0.1, 0.5, 3.0]
TOLERANCE = {"score": 1e-4, "in_response": 1e-4, "in_variance": 2e-4}  # of seven digits, chains and moments keep five
OF_GRADIENT = 1e-4


def problem(weights, components, tau, count=900, reach=1.2):
    """Responses (3, n) in float32, their variances, log-weights and means; noise `tau`, or one of each response."""
    rng = np.random.default_rng(0)
    means = np.linspace(-1.0, 1.0, components)
    special = np.concatenate([means, (means[:-1] + means[1:]) / 2, [-3.0, 3.0, 20.0]])
    responses = np.concatenate([rng.uniform(-reach, reach, (3, count)), np.tile(special, (3, 1))], axis=1)
    noise = rng.choice(NOISE, responses.shape) if tau is None else np.full(responses.shape, tau)
    variances = (means[1] - means[0]) ** 2 + noise**2
    return (
        responses.astype(np.float32),
        variances.astype(np.float32),
        log_softmax(WEIGHTS[weights](rng, components), axis=1),
        means,
    )


def differences(responses, variances, log_weights, means, of_twin=None):
    """How far phi s, phi' s² and ∂phi/∂s² s³ are off, relative to their size, for u/s of size one."""
    kernel = score_derivatives(responses, variances, log_weights, means)
    exact = [array.astype(np.float64) for array in (responses, variances)]
    twin = score_derivatives_plain(*exact, log_weights if of_twin is None else of_twin, means)
    size = 1.0 + np.abs(exact[0]) / np.sqrt(exact[1])
    return {
        name: np.abs(getattr(kernel, name) - getattr(twin, name)) * exact[1] ** (power / 2) / size**power
        for name, power in (("score", 1), ("in_response", 2), ("in_variance", 3))
    }


@pytest.mark.parametrize("tau", [*NOISE, None])
@pytest.mark.parametrize("components", [2, 5, 125, 126, MOST_COMPONENTS])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_derivatives_equal_their_twin(weights, components, tau):
    for name, found in differences(*problem(weights, components, tau)).items():
        assert found.max() < TOLERANCE[name] * max(1.0, (components / 126) ** 2), name


@pytest.mark.parametrize("weights", WEIGHTS)
def test_remote_responses_are_right_to_the_rounding_of_float32(weights):
    responses, variances, log_weights, means = problem(weights, 125, None)
    kernel = score_derivatives(responses, variances, log_weights, means)
    remote = kernel.totals == 0.0
    assert remote.any()
    exact = [array.astype(np.float64) for array in (responses, variances)]
    twin = score_derivatives_plain(*exact, log_weights, means)
    for name in ("score", "in_response", "in_variance"):
        ours, theirs = getattr(kernel, name)[remote], getattr(twin, name)[remote]
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5 * np.abs(theirs).mean(), err_msg=name)
    assert not np.allclose(kernel.in_variance[remote], (twin.score * twin.in_response)[remote], rtol=1e-5)  # no skew


def gradients(responses, variances, log_weights, means):
    """By kernel and twin, (J, L) each, and the size of its terms if none of them cancelled."""
    coefficients = np.random.default_rng(1).standard_normal(responses.shape).astype(np.float32)
    derivatives = score_derivatives(responses, variances, log_weights, means)
    kernel = weight_gradient(responses, variances, coefficients, derivatives, log_weights, means)
    exact = [array.astype(np.float64) for array in (responses, variances, coefficients)]
    most = 1e-3 * 2.0 * (np.abs(exact[2]) / exact[1]).sum(axis=1, keepdims=True)
    twin = weight_gradient_plain(*exact, log_weights, means)
    return kernel, twin, np.maximum(np.abs(twin).max(axis=1, keepdims=True), most)


@pytest.mark.parametrize("tau", [*NOISE, None])
@pytest.mark.parametrize("components", [2, 5, 125, 126])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_gradient_in_the_weights_equals_its_twin(weights, components, tau):
    kernel, twin, scale = gradients(*problem(weights, components, tau))
    assert (np.abs(kernel - twin) / scale).max() < OF_GRADIENT


@pytest.mark.parametrize("count", [1, BLOCK - 1, BLOCK, BLOCK + 1])
def test_blocks_of_responses_meet_without_a_seam(count):
    responses, variances, log_weights, means = problem("even", 125, None, count=2 * BLOCK)
    whole = score_derivatives(responses, variances, log_weights, means)
    part = score_derivatives(responses[:, :count].copy(), variances[:, :count].copy(), log_weights, means)
    np.testing.assert_array_equal(part.score, whole.score[:, :count])


def test_the_gradient_in_the_weights_of_an_expert_sums_to_zero():
    """A constant added to all logits changes nothing."""
    kernel, _, _ = gradients(*problem("even", 125, 0.1))
    np.testing.assert_allclose(kernel.sum(axis=1), 0.0, atol=1e-4 * np.abs(kernel).sum(axis=1).max())
    assert np.abs(kernel[:, :62].sum(axis=1)).max() > 1e-4 * np.abs(kernel).sum(axis=1).max()


def test_double_precision_is_that_of_the_twins():
    responses, variances, log_weights, means = (x.astype(np.float64) for x in problem("even", 125, 0.1))
    derivatives = score_derivatives(responses, variances, log_weights, means)
    for found, expected in zip(
        derivatives, score_derivatives_plain(responses, variances, log_weights, means), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    ones = np.ones_like(responses)
    np.testing.assert_array_equal(
        weight_gradient(responses, variances, ones, derivatives, log_weights, means),
        weight_gradient_plain(responses, variances, ones, log_weights, means),
    )


def test_nan_stays_nan():
    responses, variances, log_weights, means = problem("even", 125, 0.1)
    responses[1, 7] = np.nan
    derivatives = score_derivatives(responses, variances, log_weights, means)
    for found in derivatives[:3]:
        assert np.isnan(found[1, 7])
        assert np.isnan(found).sum() == 1
    gradient = weight_gradient(responses, variances, np.ones_like(responses), derivatives, log_weights, means)
    np.testing.assert_array_equal(np.isnan(gradient).all(axis=1), [False, True, False])
    np.testing.assert_array_equal(np.isnan(gradient).any(axis=1), [False, True, False])


def test_the_comparison_notices_a_weight_that_is_off_by_a_tenth():
    responses, variances, log_weights, means = problem("even", 125, 0.1)
    off = log_weights.copy()
    off[1, 60] += 0.1
    found = differences(responses, variances, off, means, of_twin=log_weights)
    assert found["score"].max() > TOLERANCE["score"]
    kernel, _, scale = gradients(responses, variances, off, means)
    _, twin, _ = gradients(responses, variances, log_weights, means)
    assert (np.abs(kernel - twin) / scale).max() > OF_GRADIENT


@pytest.mark.parametrize("components", [2, 3, 8, 9, 125, 126])
def test_chains_from_the_middle(components):
    weights = np.random.default_rng(0).random((3, components))
    up, down = np.moveaxis(chains_from_the_middle(weights), 1, 0)
    middle = (components - 1) // 2
    np.testing.assert_array_equal(np.trim_zeros(up[0], "b"), weights[0, middle:])
    np.testing.assert_array_equal(np.trim_zeros(down[0])[::-1], weights[0, :middle])
    assert down.shape[1] % 4 == 0


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
