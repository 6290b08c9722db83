"""Marginals of noisy patches: what is counted is right, and what chance adds to it is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from synthetic import sparse_prior

from paper.claims.marginals import NoisyResponses, Responses, each_discrepancy, each_marginal, expert_density

SIGMAS = (0.0, 0.05, 0.2)


def patches_of(prior, count, seed=0):
    return prior.sample(count, rng=np.random.default_rng(seed)).T


def test_noise_that_widens_is_noise_that_is_drawn():
    rng = np.random.default_rng(0)
    clean = rng.laplace(scale=0.1, size=200_000)
    edges = np.linspace(-0.8, 0.8, 41)
    computed = NoisyResponses(Responses.count(clean, 0.2), 0.2).histogram(edges)
    counts, _ = np.histogram(clean + 0.2 * rng.standard_normal(clean.size), edges)
    width = edges[1] - edges[0]
    drawn, error = counts / (clean.size * width), np.sqrt(counts) / (clean.size * width)
    assert (np.abs(computed.density - drawn) < 5.0 * error + 1e-9).all()  # five standard errors


def test_of_one_response_noise_makes_a_gaussian():
    edges = np.linspace(-1.0, 1.0, 81)
    found = NoisyResponses(Responses.count(np.full(10, 0.1), 0.15), 0.15).histogram(edges).density
    expected = np.diff(norm.cdf(edges, 0.1, 0.15)) / np.diff(edges)
    np.testing.assert_allclose(found, expected, atol=2e-3 * expected.max())  # a fine bin is 1e-4 wide


def test_the_interval_leaves_out_kappa_on_either_side():
    responses = Responses.count(np.random.default_rng(0).standard_normal(100_000), 1.0)
    np.testing.assert_allclose(
        NoisyResponses(responses, 1.0).interval(0.02), norm.ppf([0.02, 0.98], scale=np.sqrt(2.0)), atol=0.02
    )


def test_a_prior_is_as_far_from_its_own_patches_as_chance_has_it():
    prior = sparse_prior()
    found = np.array([each_discrepancy(prior, patches_of(prior, 20_000, seed), SIGMAS, [0.01]) for seed in range(8)])
    nmse, chance = found[..., 0, :].mean(axis=(0, 1)).T  # means over seeds and filters, one for each sigma
    np.testing.assert_allclose(nmse, chance, rtol=0.25)  # 64 terms that are correlated over the bins


def test_another_prior_is_farther_than_chance_has_it():
    prior, other = sparse_prior(), sparse_prior(21)
    found = np.sum(each_discrepancy(other, patches_of(prior, 20_000), SIGMAS, [0.01]), axis=0)[:, 0]
    assert (found[:, 0] > 3.0 * found[:, 1]).all()


def test_logarithms_agree_for_own_patches_and_are_nan_where_nothing_is_known():
    prior = sparse_prior()
    for row in each_marginal(prior, patches_of(prior, 100_000), SIGMAS):
        for marginal in row:
            assert marginal.body < 0.1  # a tenth is the largest error that is taken for known
            assert np.isnan(marginal.tail) or marginal.tail < 0.15
    (first, *_), *_ = each_marginal(prior, patches_of(prior, 5), [0.0], [0])
    assert np.isnan(first.body)
    assert np.isnan(first.tail)
    assert first.depth == 0.0


def test_only_some_filters_in_their_order():
    prior = sparse_prior()
    patches = patches_of(prior, 100)
    everything = each_marginal(prior, patches, [0.1])
    some = each_marginal(prior, patches, [0.1], [5, 2])
    np.testing.assert_array_equal(some[0][0].expert, everything[5][0].expert)
    np.testing.assert_array_equal(some[1][0].expert, everything[2][0].expert)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_mean_of_an_expert_over_a_bin_adds_up_to_its_mass(sigma):
    prior = sparse_prior()
    edges = np.linspace(-4.0, 4.0, 2001)
    assert expert_density(prior, 3, sigma, edges).sum() * (edges[1] - edges[0]) == pytest.approx(1.0, abs=1e-6)
