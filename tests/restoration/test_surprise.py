"""Surprise: p-values that are uniform where the image is what the prior knows, and what is said where it is not."""

import numpy as np
import pytest
from scipy.stats import kstest
from synthetic import landscape, oriented_mixture

import heatprior as hp
from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.restoration.surprise import CARD_ENTRY, PARTS, log_densities, read_quantiles

SIGMA = 0.1


def table(prior, rng):
    """What patches of the prior itself give, as photographs would be."""
    values = prior.log_prob(prior.sample(20_000, SIGMA, rng=rng), SIGMA)
    return read_quantiles({CARD_ENTRY: {"sigmas": [SIGMA], "quantiles": [np.quantile(values, PARTS).tolist()]}})


def p_values(prior, noise, rng):
    y = prior.sample(400, noise, rng=rng)
    return np.interp(prior.log_prob(y, SIGMA), table(prior, rng).at(SIGMA), PARTS, left=0.0, right=1.0)


def test_p_is_uniform_for_patches_of_the_prior_and_not_at_another_noise_level():
    prior, rng = oriented_mixture(), np.random.default_rng(0)
    assert kstest(p_values(prior, SIGMA, rng), "uniform").pvalue > 0.01
    assert kstest(p_values(prior, 2.0 * SIGMA, rng), "uniform").pvalue < 1e-6


def test_missing_pixels_have_no_density_and_every_other_patch_has():
    prior, image = oriented_mixture(), np.random.default_rng(0).random((20, 24))
    image[4, 5] = np.nan
    found = log_densities(image, SIGMA, prior)
    size = prior.patch_shape[0]
    assert np.isnan(found).sum() == min(size, 5) * min(size, 6)


def with_noise(clean, seed=0):
    return clean + SIGMA * np.random.default_rng(seed).standard_normal(clean.shape)


def test_it_says_what_an_image_looks_like():
    rng = np.random.default_rng(0)
    clean = landscape((96, 104), rng)
    noisy = with_noise(clean)
    found = hp.surprise(noisy, SIGMA, white=1.0)
    assert found.p.shape == noisy.shape
    assert 0.8 < found.noise < 1.25
    assert "times what sigma says" in hp.surprise(noisy, 2.2 * SIGMA, white=1.0).reason
    assert "full scale" in hp.surprise(10.0 * noisy, 10.0 * SIGMA, white=1.0).reason
    assert "saturated" in hp.surprise(np.clip(3.0 * noisy - 1.0, 0.0, 1.0), 3.0 * SIGMA, white=1.0).reason


def test_what_cannot_be_looked_at_is_refused():
    noisy = np.zeros((3, 20, 20))
    with pytest.raises(InvalidInputError, match="one grey image"):
        hp.surprise(noisy, SIGMA)
    with pytest.raises(InvalidInputError, match="positive"):
        hp.surprise(noisy[0], 0.0)
    for look in (hp.surprise, lambda image, sigma: hp.posterior_samples(image, sigma, rng=np.random.default_rng(0))):
        with pytest.raises(InvalidInputError, match=r"of shape \(20, 20\); expected one positive number"):
            look(noisy[0], np.full((20, 20), SIGMA))
    with pytest.raises(InvalidInputError, match="photographs"):
        hp.surprise(noisy[0], SIGMA, prior="patch7")
    for entry in ({"sigmas": [0.1]}, {"sigmas": [0.1], "quantiles": [[1.0, 0.0]]}):
        with pytest.raises(PriorFileError, match=CARD_ENTRY):
            read_quantiles({CARD_ENTRY: entry})
