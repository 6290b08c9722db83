"""Expectation and maximisation: sums are those written out, no step lowers the likelihood, noise is seen through."""

import numpy as np
import pytest
from scipy.special import logsumexp

from examples import gaussian_mixture
from heatprior import GaussianMixturePrior, InvalidInputError
from heatprior.kernels import threads
from heatprior.priors import expectation_maximisation as module
from heatprior.priors.expectation_maximisation import Statistics, expected_statistics, log_likelihood

PRIOR = gaussian_mixture(3, 3, (0.25, 1.0, 4.0), seed=1)
OTHER = gaussian_mixture(3, 3, (0.25, 1.0, 4.0), seed=2)


@pytest.fixture
def exact(monkeypatch):
    """Every component has its part in every patch, and every axis counts."""
    monkeypatch.setitem(expected_statistics.__kwdefaults__, "least_part", 0.0)
    monkeypatch.setitem(expected_statistics.__kwdefaults__, "least_keep", 0.0)


def maximise(statistics, contrasts):
    """The M-step: π_kg ∝ n_kg and Σ_k = M_k / Σ_g n_kg."""
    covariances = statistics.moments / statistics.weights.sum(axis=1)[:, None, None]
    covariances = covariances + module.FLOOR * np.eye(covariances.shape[-1])
    return GaussianMixturePrior(covariances, np.log(statistics.weights), contrasts)


def drawn(prior, sigma, count=1000, seed=0):
    return prior.sample(count, sigma, rng=np.random.default_rng(seed))


def written_out(prior, y, sigma, least=0.0):
    """The sums of the module's docstring in double precision, component by component and patch by patch."""
    u, identity = y @ prior.basis.T, np.eye(len(prior.basis))
    noisy = prior.contrasts[:, None, None] * prior.covariances[:, None] + sigma**2 * identity  # (K, G, d, d)
    squares = np.einsum("nd,kgde,ne->nkg", u, np.linalg.inv(noisy), u)
    logs = prior.log_weights - 0.5 * (squares + np.linalg.slogdet(2 * np.pi * noisy)[1])
    total = logsumexp(logs, axis=(1, 2), keepdims=True)
    parts = np.exp(logs - total)
    parts = np.where(parts < least, 0.0, parts)
    parts /= parts.sum(axis=(1, 2), keepdims=True)
    moments = np.zeros_like(prior.covariances)
    for k, covariance in enumerate(prior.covariances):
        for g, contrast in enumerate(prior.contrasts):
            gain = contrast * covariance @ np.linalg.inv(noisy[k, g])
            left = contrast * covariance - gain @ (contrast * covariance)  # covariance of the posterior
            means = u @ gain.T
            second = (means * parts[:, k, g, None]).T @ means + parts[:, k, g].sum() * left
            moments[k] += second / contrast
    return Statistics(parts.sum(axis=0), moments, float(total.sum()), len(y))


def assert_close(found, right):
    # Single precision: 1e-4 of the largest entry.
    np.testing.assert_allclose(found.weights, right.weights, rtol=1e-4, atol=1e-4 * right.weights.max())
    np.testing.assert_allclose(found.moments, right.moments, rtol=1e-4, atol=1e-4 * np.abs(right.moments).max())
    assert found.log_likelihood == pytest.approx(right.log_likelihood, rel=1e-5)
    assert found.patches == right.patches


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("sigma", [0.0, 0.05, 0.5])
def test_the_sums_are_those_written_out(sigma):
    y = drawn(PRIOR, sigma)
    assert_close(expected_statistics(OTHER, y, sigma), written_out(OTHER, y, sigma))


@pytest.mark.parametrize("sigma", [0.0, 0.1])
def test_small_parts_are_left_out_and_the_others_take_their_share(sigma):
    y = drawn(PRIOR, sigma)
    found = expected_statistics(OTHER, y, sigma, least_part=0.1)
    assert_close(found, written_out(OTHER, y, sigma, least=0.1))
    assert found.weights.sum() == pytest.approx(len(y), rel=1e-5)
    with pytest.raises(AssertionError):
        assert_close(found, written_out(OTHER, y, sigma))


@pytest.mark.parametrize("least", [0.0, 1e-3])
def test_sharpness_takes_the_probability_of_each_shape_to_a_power(least):
    y = drawn(PRIOR, 0.3, 1)
    soft, sharp = (
        expected_statistics(OTHER, y, 0.3, sharpness=sharpness, least_part=least).weights for sharpness in (1.0, 2.0)
    )
    expected = soft.sum(axis=1) ** 2 / (soft.sum(axis=1) ** 2).sum()
    np.testing.assert_allclose(sharp.sum(axis=1), expected, rtol=1e-3, atol=2e-3)
    np.testing.assert_allclose(
        sharp / sharp.sum(axis=1, keepdims=True), soft / soft.sum(axis=1, keepdims=True), rtol=1e-3
    )
    assert sharp.sum(axis=1).max() > soft.sum(axis=1).max() + 0.01


def test_axes_that_noise_hides_may_be_left_as_they_are():
    y = drawn(PRIOR, 0.5)
    sums = [expected_statistics(PRIOR, y, 0.5, least_keep=least) for least in (0.0, 0.9999)]
    np.testing.assert_array_equal(sums[0].weights, sums[1].weights)
    kept = [s.moments / s.weights.sum(axis=1)[:, None, None] for s in sums]
    np.testing.assert_allclose(kept[1], PRIOR.covariances, rtol=0, atol=1e-9)
    assert np.abs(kept[0] - PRIOR.covariances).max() > 1e-4


def test_leaving_them_out_changes_the_sums_by_little():
    y = drawn(PRIOR, 0.1)
    found, right = expected_statistics(OTHER, y, 0.1), written_out(OTHER, y, 0.1)
    assert np.abs(found.weights - right.weights).max() < 1e-2 * right.weights.max()
    assert np.abs(found.moments - right.moments).max() < 1e-2 * np.abs(right.moments).max()


@pytest.mark.parametrize("sigma", [0.0, 0.2])
def test_the_mean_log_likelihood_is_that_of_the_prior(sigma):
    y = drawn(PRIOR, sigma, 5000)
    expected = PRIOR.log_prob(y, sigma).mean()
    assert log_likelihood(PRIOR, y, sigma) == pytest.approx(expected, abs=1e-4)
    statistics = expected_statistics(PRIOR, y, sigma)
    assert statistics.log_likelihood / statistics.patches == pytest.approx(expected, abs=1e-4)


def test_sums_add_up_over_chunks_and_threads(monkeypatch):
    y = drawn(PRIOR, 0.1)
    whole = expected_statistics(PRIOR, y, 0.1)
    halves = expected_statistics(PRIOR, y[:400], 0.1).plus(expected_statistics(PRIOR, y[400:], 0.1))
    assert_close(halves, whole)
    monkeypatch.setattr(module, "CHUNK", 30)
    found = []
    for count in (1, 2):
        monkeypatch.setattr(threads, "get_num_threads", lambda count=count: count)
        found.append(expected_statistics(PRIOR, y, 0.1))
    assert_close(found[0], whole)
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


def test_no_patches_give_zeros():
    found = expected_statistics(PRIOR, np.zeros((0, 9)), 0.1)
    assert (found.patches, found.log_likelihood, found.weights.sum(), found.moments.sum()) == (0, 0.0, 0.0, 0.0)


def test_patches_of_another_size_are_refused():
    with pytest.raises(InvalidInputError, match="acts on 9"):
        expected_statistics(PRIOR, np.zeros((5, 16)), 0.1)


def fitted(start, y, sigma, rounds):
    """After each of some rounds of expectation and maximisation."""
    for _ in range(rounds):
        start = maximise(expected_statistics(start, y, sigma), start.contrasts)
        yield start


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("sigma", [0.0, 0.1, 0.5])
def test_no_round_lowers_the_likelihood(sigma):
    y = drawn(PRIOR, sigma, 2000)
    values = [OTHER.log_prob(y, sigma).mean(), *(p.log_prob(y, sigma).mean() for p in fitted(OTHER, y, sigma, 12))]
    assert (np.diff(values) > -1e-5).all()  # single precision
    assert values[-1] > values[0] + 0.05


def test_the_true_mixture_is_a_fixed_point_and_others_are_not():
    y = drawn(PRIOR, 0.1, 50_000)
    for start, stays in ((PRIOR, True), (OTHER, False)):
        (after,) = fitted(start, y, 0.1, 1)
        changes = np.abs(after.covariances - start.covariances).max(axis=(1, 2)) / start.variances.max()
        assert (changes.max() < 0.05) == stays  # sums over a few thousand patches of a shape


def true_mixture():
    """Two shapes that differ much, on 3×3, with a narrow direction each: what noise hides."""
    rng = np.random.default_rng(7)
    turns, _ = np.linalg.qr(rng.standard_normal((2, 8, 8)))
    variances = np.array([[0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.02, 0.02], [0.02, 0.05, 0.1, 0.1, 0.2, 0.2, 0.3, 0.3]])
    covariances = (turns * variances[:, None] ** 2) @ turns.swapaxes(1, 2)
    return GaussianMixturePrior(covariances, np.log([[0.6], [0.4]]))


def errors(prior, truth):
    """Of the covariances, relative to their norm, whichever order the shapes came in."""
    pairs = [(prior.covariances, truth.covariances), (prior.covariances[::-1], truth.covariances)]
    norms = np.linalg.norm(truth.covariances, axis=(1, 2))
    return min((np.linalg.norm(a - b, axis=(1, 2)) / norms for a, b in pairs), key=np.max)


def test_noisy_patches_give_the_covariances_of_clean_ones_unless_the_noise_is_ignored():
    truth, sigma = true_mixture(), 0.15
    y = drawn(truth, sigma, 40_000)
    start = GaussianMixturePrior(
        np.stack([0.02 * np.diag(np.geomspace(1.0, 2.0, 8)[::way]) for way in (1, -1)]), np.zeros((2, 1))
    )
    *_, seen_through = fitted(start, y, sigma, 60)
    *_, ignored = fitted(start, y, 0.0, 60)
    assert errors(seen_through, truth).max() < 0.1
    assert errors(ignored, truth).max() > 0.3
    less_noisy = drawn(truth, 0.1, 20_000, seed=5)
    best = truth.log_prob(less_noisy, 0.1).mean()
    assert 0.0 < best - seen_through.log_prob(less_noisy, 0.1).mean() < 0.05  # narrow directions are still on their way
    assert best - ignored.log_prob(less_noisy, 0.1).mean() > 0.3


def test_a_patch_that_no_component_explains_well_counts_for_the_best_one():
    prior = gaussian_mixture(2, 40, seed=1)
    alike = GaussianMixturePrior(np.repeat(prior.covariances[:1], 40, axis=0), np.zeros((40, 1)))
    patches = alike.sample(50, 0.1, rng=np.random.default_rng(0))
    sums = expected_statistics(alike, patches, 0.1, least_part=0.5)  # each explains a fortieth
    assert sums.weights.sum() == pytest.approx(50)
    assert np.isfinite(sums.moments).all()
