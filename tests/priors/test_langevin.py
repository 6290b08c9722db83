"""Annealed Langevin dynamics: the law that it ends with, and that it asks for nothing but a score."""

import numpy as np
from scipy.special import ndtr
from scipy.stats import kstest
from whole_images import convolutional_prior, wavelet_prior

from heatprior.priors.convolutional import RATE, STEPS, falling_levels, sample_langevin
from heatprior.priors.experts import Experts
from heatprior.priors.wavelet import WaveletBasis, WaveletPrior
from paper.wavelets import daubechies

# Two distant peaks in every band, one three times as high as the other: a law that plain dynamics would not find.
PEAKS = Experts(np.tile(np.log([0.25, 1e-4, 1e-4, 1e-4, 0.7497]), (3, 1)), reach=1.0)
PRIOR = WaveletPrior(WaveletBasis(daubechies(1), 1), np.array([1.0, 1.5, 2.0]), PEAKS)
LAST = 0.05
CHAINS = 1500


def coefficients(levels, *, steps=STEPS, rate=RATE, seed=0):
    """Of many chains, side by side: the three of each 2×2 image, (chains, 3)."""
    rng = np.random.default_rng(seed)
    start = levels[0] * rng.standard_normal((CHAINS, 2, 2))
    images = sample_langevin(PRIOR.score, start, levels, rng=rng, steps=steps, rate=rate)
    return np.stack([c.reshape(CHAINS) for c in PRIOR.analyse(images)], axis=1)


def p_values(found):
    """Kolmogorov–Smirnov against the exact marginal of each band at the last level."""
    values = []
    for xi, weights, c in zip(PRIOR.norms, PEAKS.weights, found.T, strict=True):
        width = np.hypot(PEAKS.base_sigma, xi * LAST)

        def cdf(x, width=width, weights=weights):
            return ndtr((x[:, None] - PEAKS.means) / width) @ weights

        values.append(kstest(xi * c, cdf).pvalue)
    return values


def test_marginals_follow_the_known_law():
    """By chance one seed in about 300 fails: three bands at p > 1e-3."""
    assert min(p_values(coefficients(falling_levels(5.0, LAST)))) > 1e-3


def test_the_test_sees_dynamics_that_are_too_fast():
    assert min(p_values(coefficients([LAST], steps=100))) < 1e-3  # never melted together: the start decides the peak
    assert min(p_values(coefficients([5.0, LAST]))) < 1e-3  # fallen behind


def test_draws_of_the_convolutional_prior_have_no_brightness_and_the_seed_fixes_them():
    prior = convolutional_prior(2, 2)
    first, again = (prior.sample(2, 0.2, rng=np.random.default_rng(1), shape=(6, 9)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first.mean(axis=(1, 2)), 0.0, rtol=0, atol=1e-12)
    assert prior.sample(1, rng=np.random.default_rng(1), shape=(4, 4)).std() > 0.1


def test_draws_of_the_convolutional_prior_obey_steins_identity():
    """E[⟨score(Y), Y⟩] = −(n − 1): within five standard errors and the part of RATE / 4 that finite steps leave."""
    prior, count, sigma = convolutional_prior(1, 2), 400, 0.5
    rng = np.random.default_rng(2)
    start = 10.0 * rng.standard_normal((count, 2, 4))
    y = sample_langevin(prior.score, start, falling_levels(10.0, sigma), rng=rng)
    products = (prior.score(y, sigma) * y).sum(axis=(1, 2))
    error = products.std() / np.sqrt(count)
    assert abs(products.mean() + 7.0) < 5.0 * error + RATE / 4 * 7.0


def test_levels_fall_by_small_ratios():
    levels = falling_levels(8.0, 0.1, 1.2)
    np.testing.assert_allclose(levels[[0, -1]], [8.0, 0.1])
    assert (levels[:-1] / levels[1:] <= 1.2 + 1e-12).all()


def test_exact_draws_and_langevin_agree_on_a_larger_grid():
    """The spread of every band, within 5 %: at least 1024 coefficients, of which it is known to 2 %."""
    prior = wavelet_prior(1, 2, components=3)
    rng = np.random.default_rng(3)
    levels = falling_levels(10.0, 0.3)
    images = sample_langevin(prior.score, 10.0 * rng.standard_normal((64, 16, 16)), levels, rng=rng)
    exact = prior.sample(64, 0.3, rng=rng, shape=(16, 16))
    for a, b in zip(prior.analyse(images), prior.analyse(exact), strict=True):
        assert abs(np.log(a.std() / b.std())) < 0.05


def test_progress_rises_to_the_whole_and_changes_no_draw():
    told: list[float] = []
    prior = convolutional_prior(1, 2)
    plain, watched = (
        prior.sample(2, [0.5, 0.0], rng=np.random.default_rng(3), shape=(6, 8), progress=progress)
        for progress in (None, told.append)
    )
    np.testing.assert_array_equal(plain, watched)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert max(np.diff([0.0, *told])) < 0.02  # a bar that moves
