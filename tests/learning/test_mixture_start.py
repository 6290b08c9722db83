"""The start of a mixture: lines that are there are found, and covariances are those of clean patches."""

import numpy as np
import pytest

from heatprior.learning.mixture_training import LEAST_VARIANCE, SHRINKAGE, cluster_covariances, cluster_directions


def three_lines(count=3000, spread=0.05):
    """Unit vectors near three directions of six dimensions, of either sign, and which direction each belongs to."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.standard_normal((6, 6)))[0][:3]
    labels = rng.integers(3, size=count)
    signs = rng.choice([-1.0, 1.0], size=(count, 1))
    z = signs * directions[labels] + spread * rng.standard_normal((count, 6))
    return z / np.linalg.norm(z, axis=1, keepdims=True), labels, directions


def same_groups(one, two):
    """Whether two labellings agree up to the names."""
    pairs = set(zip(one.tolist(), two.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(two.tolist()))


@pytest.mark.parametrize("seed", range(5))
def test_lines_that_are_there_are_found_whatever_the_signs(seed):
    z, labels, _ = three_lines()
    found = cluster_directions(z, 6, rng=np.random.default_rng(seed))
    # With more lines than directions each direction has lines of its own.
    assert all(len(set(labels[found == k].tolist())) <= 1 for k in range(6))
    with pytest.raises(AssertionError):
        assert same_groups(labels, (z[:, 0] > 0).astype(int))


def test_vectors_of_one_direction_stay_together():
    z, _, directions = three_lines(spread=0.01)
    found = cluster_directions(np.concatenate([z, directions, -directions]), 3, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(found[-6:-3], found[-3:])


def test_one_shape_has_the_covariance_of_all_patches():
    rng = np.random.default_rng(0)
    u = rng.standard_normal((20_000, 8)) * np.geomspace(0.5, 0.05, 8)
    (found,) = cluster_covariances(u, 1, 0.0, alike=False, rng=rng)
    textured = np.linalg.norm(u, axis=1) > np.quantile(np.linalg.norm(u, axis=1), 0.2)
    own = u[textured].T @ u[textured] / textured.sum()
    np.testing.assert_allclose(found, (1 - SHRINKAGE) * own + SHRINKAGE * u.T @ u / len(u), rtol=0, atol=2e-6)


def test_noise_is_taken_off_the_shared_part():
    rng = np.random.default_rng(0)
    u = rng.standard_normal((50_000, 8)) * np.r_[0.5 * np.ones(4), np.zeros(4)]
    noisy = u + 0.2 * rng.standard_normal(u.shape)
    for sigma, least in ((0.2, 1e-3), (0.0, 0.03)):
        covariances = cluster_covariances(noisy, 2, sigma, alike=False, rng=np.random.default_rng(1))
        narrow = np.linalg.eigvalsh(covariances)[:, :4].max()
        assert narrow < 3 * least
        assert (narrow > least) == (sigma == 0.0)


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("u", [np.zeros((50, 8)), np.eye(8)])
def test_few_patches_and_flat_ones_give_covariances_all_the_same(u, alike):
    covariances = cluster_covariances(u, 5, 0.0, alike=alike, rng=np.random.default_rng(0))
    assert covariances.shape == (5, 8, 8)
    assert np.linalg.eigvalsh(covariances).min() > 0.2 * LEAST_VARIANCE


def test_alike_patches_count_the_same_whatever_their_contrast():
    rng = np.random.default_rng(0)
    u = rng.standard_normal((5000, 8))
    u *= np.where(np.arange(5000) % 2, 10.0, 1.0)[:, None]  # so that no quantile cuts through a group
    traces = [
        np.trace(cluster_covariances(u, 3, 0.0, alike=alike, rng=np.random.default_rng(0)), axis1=1, axis2=2)
        for alike in (True, False)
    ]
    assert np.ptp(traces[0]) < 1e-6 * traces[0].max()
    assert np.ptp(traces[1]) > 1e-3 * traces[1].max()
