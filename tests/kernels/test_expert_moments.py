"""The kernel computes what its numpy twin says, wherever its three ways of summing meet."""

import numpy as np
import pytest
from scipy.special import log_softmax

from heatprior.kernels.expert_moments import mixture_moments, mixture_moments_plain

WEIGHTS = {
    "even": lambda rng, count: rng.standard_normal((3, count)),
    "starved by hundreds": lambda rng, count: rng.uniform(-800.0, 0.0, (3, count)),
    "starved smoothly": lambda _, count: np.tile(-(np.linspace(0.0, 30.0, count) ** 2), (3, 1)),
    "all on one end": lambda _, count: np.tile(np.where(np.arange(count) == count - 1, 0.0, -300.0), (3, 1)),
}
NOISE = [0.0, 1e-6, 0.02, 0.1, 0.5, 3.0, 100.0]


def problem(weights, components, *, rows=600, seed=0):
    """Responses (n, 3) inside the grid, on it, between its points and far outside; log-weights and means."""
    rng = np.random.default_rng(seed)
    means = np.linspace(-1.0, 1.0, components)
    special = np.concatenate([means, (means[:-1] + means[1:]) / 2, [50.0, -50.0, 49.3, -3.0, 3.0]])
    inside = rng.uniform(-1.2, 1.2, (rows, 3))
    responses = np.concatenate([inside, np.repeat(special[:, None], 3, axis=1)])
    return responses, log_softmax(WEIGHTS[weights](rng, components), axis=1), means


def variances_of(responses, means, tau):
    return np.broadcast_to((means[1] - means[0]) ** 2 + np.square(tau), responses.shape)


def assert_equal_moments(kernel, twin, variances, tolerance):
    """Relative to what the moments are used with: means lie in [−1, 1], their variance is added to s²."""
    np.testing.assert_allclose(kernel.log_density, twin.log_density, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(kernel.mean, twin.mean, rtol=0, atol=tolerance)
    np.testing.assert_allclose(kernel.variance + variances, twin.variance + variances, rtol=tolerance)


@pytest.mark.parametrize("tau", NOISE)
@pytest.mark.parametrize("components", [2, 3, 4, 5, 125, 126])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_kernel_equals_twin_in_double_precision(weights, components, tau):
    responses, log_weights, means = problem(weights, components)
    variances = variances_of(responses, means, tau)
    kernel = mixture_moments(responses, variances, log_weights, means)
    twin = mixture_moments_plain(responses, variances, log_weights, means)
    # Seen: at most 4e-13 for log-densities, 3e-13 for means, 3e-12 for variances, from 62 successive products.
    assert_equal_moments(kernel, twin, variances, 1e-10)


@pytest.mark.parametrize("tau", NOISE)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_kernel_equals_twin_on_single_precision(weights, tau):
    responses, log_weights, means = problem(weights, 125)
    responses = responses.astype(np.float32)
    variances = variances_of(responses, means, tau).astype(np.float32)
    kernel = mixture_moments(responses, variances, log_weights, means)
    twin = mixture_moments_plain(responses.astype(np.float64), variances.astype(np.float64), log_weights, means)
    score, score_of_twin = ((m.mean - responses) / variances for m in (kernel, twin))
    np.testing.assert_allclose(np.float32(kernel.log_density), np.float32(twin.log_density), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.float32(score), np.float32(score_of_twin), rtol=1e-5, atol=1e-5)
    total, total_of_twin = (m.variance + variances for m in (kernel, twin))
    np.testing.assert_allclose(np.float32(total), np.float32(total_of_twin), rtol=1e-5)


def test_the_comparison_notices_a_weight_that_is_off_by_one_part_in_a_million():
    responses, log_weights, means = problem("even", 125)
    variances = variances_of(responses, means, 0.1)
    off = log_weights.copy()
    off[1, 60] += 1e-6
    kernel = mixture_moments(responses, variances, off, means)
    with pytest.raises(AssertionError):
        assert_equal_moments(kernel, mixture_moments_plain(responses, variances, log_weights, means), variances, 1e-10)


def test_every_response_may_have_its_own_noise():
    responses, log_weights, means = problem("even", 125)
    tau = np.random.default_rng(1).choice(NOISE, responses.shape)
    variances = variances_of(responses, means, tau)
    kernel = mixture_moments(responses, variances, log_weights, means)
    assert_equal_moments(kernel, mixture_moments_plain(responses, variances, log_weights, means), variances, 1e-10)


@pytest.mark.parametrize("rows", [0, 1, 255, 256, 257, 513])
def test_rows_do_not_depend_on_their_neighbours(rows):
    responses, log_weights, means = problem("even", 125, rows=600)
    variances = variances_of(responses, means, np.geomspace(1e-3, 10.0, len(responses))[:, None])
    whole = mixture_moments(responses, variances, log_weights, means)
    part = mixture_moments(responses[:rows], variances[:rows], log_weights, means)
    for some, all_of_them in zip(part, whole, strict=True):
        assert some.shape == (rows, 3)
        # Whether a row falls into a vector instruction or into its remainder may change a last bit.
        np.testing.assert_allclose(some, all_of_them[:rows], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("layout", ["transposed", "every second row", "read only"])
def test_memory_layout_does_not_matter(layout):
    responses, log_weights, means = problem("even", 5)
    arrays = {
        "transposed": np.asfortranarray(responses),
        "every second row": np.repeat(responses, 2, axis=0)[::2],
        "read only": responses.copy(),
    }
    arrays["read only"].flags.writeable = False
    variances = variances_of(responses, means, 0.1)
    result = mixture_moments(arrays[layout], variances, log_weights, means)
    expected = mixture_moments(responses, variances, log_weights, means)
    np.testing.assert_array_equal(result.mean, expected.mean)


def test_log_density_is_left_out_where_it_is_not_wanted():
    responses, log_weights, means = problem("even", 125)
    variances = variances_of(responses, means, 0.1)
    short = mixture_moments(responses, variances, log_weights, means, want_log_density=False)
    full = mixture_moments(responses, variances, log_weights, means)
    assert short.log_density.size == 0
    np.testing.assert_array_equal(short.mean, full.mean)
    np.testing.assert_array_equal(short.variance, full.variance)


@pytest.mark.parametrize("size", [1e6, 1e12, 1e17, 1e30])
def test_absurdly_remote_responses_see_the_nearest_end_of_the_grid(size):
    _, log_weights, means = problem("even", 125)
    responses = size * np.array([[1.0, -1.0, 1.0]])
    variances = variances_of(responses, means, 0.1)
    result = mixture_moments(responses, variances, log_weights, means)
    np.testing.assert_allclose(result.log_density, -0.5 * responses**2 / variances, rtol=1e-5)
    # The origin of the sums is a difference of numbers of this size.
    np.testing.assert_allclose(result.mean, [[1.0, -1.0, 1.0]], rtol=0, atol=max(1e-15 * size, 1e-12))


def test_the_mixture_is_a_density():
    _, log_weights, means = problem("even", 5)
    line = np.repeat(np.linspace(-6.0, 6.0, 401)[:, None], 3, axis=1)
    density = np.exp(mixture_moments(line, variances_of(line, means, 0.2), log_weights, means).log_density)
    # The trapezoidal rule is exact to rounding for steps far below the width.
    np.testing.assert_allclose(density.sum(axis=0) * (line[1, 0] - line[0, 0]), 1.0, rtol=1e-12)
