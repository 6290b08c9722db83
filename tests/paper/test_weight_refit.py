"""Weights by likelihood: EM climbs, ends where no others are likelier, and finds the density that made the patches."""

import numpy as np
import pytest

from examples import patch_prior
from heatprior.errors import InvalidInputError
from heatprior.priors.experts import Experts
from heatprior.priors.patch import PatchPrior
from paper.learning.weight_refit import em_round, level_of, log_likelihood, refit_weights

PRIOR = patch_prior(3, 4, 9)
SIGMAS = (0.0, 0.05, 0.2)


@pytest.fixture(scope="module")
def patches():
    return PRIOR.sample(40_000, rng=np.random.default_rng(0)).T


def levels_of(prior, patches, j):
    responses = prior.filters.matrix[j] @ patches
    return [level_of(responses, sigma * float(prior.filters.norms[j]), prior.experts) for sigma in SIGMAS]


def test_the_binned_likelihood_is_that_of_noisy_patches(patches):
    """Noise that is drawn, at one level: the mean log psi of a filter, to the chance of 40,000 draws."""
    sigma, j = 0.05, 0
    noisy = patches + sigma * np.random.default_rng(1).standard_normal(patches.shape)
    drawn = PRIOR.experts.log_density((PRIOR.filters.matrix @ noisy).T, sigma * PRIOR.filters.norms)[:, j]
    level = level_of(PRIOR.filters.matrix[j] @ patches, sigma * float(PRIOR.filters.norms[j]), PRIOR.experts)
    error = 4.0 * drawn.std() / np.sqrt(len(drawn)) + 2e-3  # four standard errors, and the width of a bin
    assert log_likelihood(PRIOR.experts.weights[j], [level]) == pytest.approx(drawn.mean(), abs=error)


def test_no_round_lowers_the_likelihood(patches):
    levels, weights = levels_of(PRIOR, patches, 0), np.full(9, 1 / 9)
    before = log_likelihood(weights, levels)
    for _ in range(40):
        weights = em_round(weights, levels)
        after = log_likelihood(weights, levels)
        assert after >= before - 1e-12
        assert weights.sum() == pytest.approx(1.0)
        before = after


def test_no_other_weights_are_likelier(patches):
    levels, weights = levels_of(PRIOR, patches, 1), np.full(9, 1 / 9)
    for _ in range(3000):
        weights = em_round(weights, levels)
    best = log_likelihood(weights, levels)
    rng = np.random.default_rng(2)
    for _ in range(50):
        other = np.maximum(weights + 0.02 * rng.standard_normal(9), 1e-12)
        assert log_likelihood(other / other.sum(), levels) < best
    moved = np.roll(weights, 1)  # a negative control: the measure tells
    assert log_likelihood(moved, levels) < best - 0.01


def densities(prior):
    """Of every expert on a fine grid, (n, J), and the width of a cell."""
    grid = np.linspace(-3.0, 3.0, 2001)
    return np.exp(prior.experts.log_density(np.repeat(grid[:, None], 4, axis=1), 0.0)), grid[1] - grid[0]


def test_the_density_that_made_the_patches_is_found_again(patches):
    """The density, not the weights: neighbouring components overlap, so that many weights give nearly the same."""
    start = PatchPrior(PRIOR.filters, Experts(np.zeros((4, 9)), PRIOR.experts.reach))
    found = refit_weights(start, patches, (0.0,), rounds=500)
    (true, cell), (refitted, _), (flat, _) = densities(PRIOR), densities(found), densities(start)
    variation = 0.5 * cell * np.abs(refitted - true).sum(axis=0)
    assert variation.max() < 0.015  # 40,000 draws of some ten bumps: about sqrt(10 / 40,000)
    assert (0.5 * cell * np.abs(flat - true).sum(axis=0)).min() > 0.04
    np.testing.assert_array_equal(found.filters.matrix, PRIOR.filters.matrix)


def test_responses_far_beyond_the_reach_count_for_its_ends(patches):
    far = np.concatenate([patches, 1e3 * patches[:, :5]], axis=1)
    found = refit_weights(PRIOR, far, (0.0,), rounds=3)
    assert np.isfinite(found.experts.logits).all()
    assert np.isfinite(log_likelihood(found.experts.weights[0], levels_of(PRIOR, far, 0)))


@pytest.mark.parametrize(("shape", "sigmas"), [((8, 10), (0.1,)), ((9, 0), (0.1,)), ((9, 10), ()), ((9, 10), (-0.1,))])
def test_what_cannot_be_fitted_is_refused(shape, sigmas):
    with pytest.raises(InvalidInputError):
        refit_weights(PRIOR, np.zeros(shape), sigmas)
