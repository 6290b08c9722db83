"""Errors of denoised images: for every prior and any type, and that they cover what they say."""

import numpy as np
import pytest
from synthetic import landscape

import heatprior as hp

SIGMA = 0.1


def trial(seed=0, shape=(72, 80)):
    rng = np.random.default_rng(seed)
    clean = landscape(shape, rng).astype(np.float32)
    return clean, (clean + SIGMA * rng.standard_normal(shape)).astype(np.float32)


@pytest.mark.parametrize("options", [{}, {"quality": "fast"}, {"prior": "patch7", "method": "eb"}])
def test_the_image_is_the_denoised_one_and_errors_are_below_the_noise(options):
    clean, noisy = trial()
    found = hp.denoise_with_error(noisy, SIGMA, **options)
    np.testing.assert_array_equal(found.pixels, hp.denoise(noisy, SIGMA, **options))
    assert found.error.shape == noisy.shape
    assert found.error.min() > 0.0
    assert found.error.mean() < 0.7 * SIGMA
    true = -10 * np.log10(np.mean((found.pixels - clean) ** 2))
    assert abs(found.predicted.psnr - true) < 4 * found.predicted.stderr


def test_intervals_cover_about_what_they_say_and_half_of_them_do_not():
    inside = []
    for factor in (1.0, 0.5):
        hits = []
        for seed in range(3):
            clean, noisy = trial(seed)
            found = hp.denoise_with_error(noisy, SIGMA)
            hits.append(np.abs(found.pixels - clean) < 1.645 * factor * found.error)
        inside.append(np.mean(hits))
    assert 0.8 < inside[0] < 0.98
    assert inside[1] < 0.8


def test_integers_colours_and_maps():
    clean, noisy = trial()
    grey = np.clip(np.rint(255 * noisy), 0, 255).astype(np.uint8)
    found = hp.denoise_with_error(grey, 255 * SIGMA)
    np.testing.assert_array_equal(found.pixels, hp.denoise(grey, 255 * SIGMA))
    assert 1.0 < found.error.mean() < 20.0
    levels = np.where(np.arange(80) < 40, 0.05, 0.15).astype(np.float32) + np.zeros((72, 1), np.float32)
    spread = hp.denoise_with_error(clean + levels * np.random.default_rng(1).standard_normal(clean.shape), levels)
    assert spread.error[:, :30].mean() < 0.8 * spread.error[:, 50:].mean()
    colour = np.stack([noisy] * 3, axis=-1)
    assert hp.denoise_with_error(colour, SIGMA, channel_axis=-1, quality="fast").error.shape == colour.shape


def test_missing_pixels_have_no_error():
    noisy = trial()[1]
    noisy[10:14, 20] = np.nan
    found = hp.denoise_with_error(noisy, SIGMA, quality="fast")
    assert np.isnan(found.error[10:14, 20]).all()
    assert np.isfinite(found.error).sum() == noisy.size - 4


@pytest.mark.parametrize("prior", ["patch7", "mixture", "wavelet"])
def test_draws_lie_around_the_denoised_image_as_far_as_errors_say(prior):
    _, noisy = trial(shape=(48, 56))
    draws = hp.posterior_samples(noisy, SIGMA, 12, prior=prior, rng=np.random.default_rng(0))
    assert draws.shape == (12, 48, 56)
    assert 0.02 * SIGMA < draws.std(axis=0).mean() < SIGMA
    assert hp.posterior_samples(noisy, SIGMA, 0, prior=prior, rng=np.random.default_rng(0)).shape == (0, 48, 56)
