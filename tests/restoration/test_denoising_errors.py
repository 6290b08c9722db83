"""Errors of denoised images: for every prior and any type, and that they cover what they say."""

from dataclasses import fields
from inspect import signature

import numpy as np
import pytest
from synthetic import landscape

import heatprior as hp
from heatprior.noise.profiles import NoiseProfile, StationaryNoise
from heatprior.noise_value import NoiseSpectrum
from heatprior.restoration import denoising
from heatprior.restoration.denoising import Keywords, Settings, plan
from heatprior.restoration.error_bars import draw_noise, noise_levels

SIGMA = 0.1


def trial(seed=0, shape=(72, 80)):
    rng = np.random.default_rng(seed)
    clean = landscape(shape, rng).astype(np.float32)
    return clean, (clean + SIGMA * rng.standard_normal(shape)).astype(np.float32)


@pytest.mark.parametrize("options", [{}, {"quality": "fast"}, {"prior": "patch7", "steps": 1}])
def test_the_image_is_the_denoised_one_and_errors_are_below_the_noise(options):
    clean, noisy = trial()
    found = hp.denoise(noisy, SIGMA, **options, return_error=True)
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
            found = hp.denoise(noisy, SIGMA, return_error=True)
            hits.append(np.abs(found.pixels - clean) < 1.645 * factor * found.error)
        inside.append(np.mean(hits))
    assert 0.8 < inside[0] < 0.98
    assert inside[1] < 0.8


def test_integers_colours_and_maps():
    clean, noisy = trial()
    grey = np.clip(np.rint(255 * noisy), 0, 255).astype(np.uint8)
    found = hp.denoise(grey, 255 * SIGMA, return_error=True)
    np.testing.assert_array_equal(found.pixels, hp.denoise(grey, 255 * SIGMA))
    assert 1.0 < found.error.mean() < 20.0
    levels = np.where(np.arange(80) < 40, 0.05, 0.15).astype(np.float32) + np.zeros((72, 1), np.float32)
    spread = hp.denoise(
        clean + levels * np.random.default_rng(1).standard_normal(clean.shape), levels, return_error=True
    )
    assert spread.error[:, :30].mean() < 0.8 * spread.error[:, 50:].mean()
    colour = np.stack([noisy] * 3, axis=-1)
    assert hp.denoise(colour, SIGMA, channel_axis=-1, quality="fast", return_error=True).error.shape == colour.shape


def test_missing_pixels_have_no_error():
    noisy = trial()[1]
    noisy[10:14, 20] = np.nan
    found = hp.denoise(noisy, SIGMA, quality="fast", return_error=True)
    assert np.isnan(found.error[10:14, 20]).all()
    assert np.isfinite(found.error).sum() == noisy.size - 4


@pytest.mark.parametrize("prior", ["patch7", "mixture", "wavelet-density"])
def test_draws_lie_around_the_denoised_image_as_far_as_errors_say(prior):
    _, noisy = trial(shape=(48, 56))
    draws = hp.posterior_samples(noisy, SIGMA, 12, prior=prior, rng=np.random.default_rng(0))
    assert draws.shape == (12, 48, 56)
    assert 0.02 * SIGMA < draws.std(axis=0).mean() < SIGMA
    assert hp.posterior_samples(noisy, SIGMA, 0, prior=prior, rng=np.random.default_rng(0)).shape == (0, 48, 56)


def drawn_noise(**options):
    """Many draws of the probe's noise on a flat image, and the plan."""
    made, _ = plan(np.full((48, 40, 3), 0.5, np.float32), None, Settings(channel_axis=-1, **options))
    rng = np.random.default_rng(0)
    return np.array([draw_noise(made, rng) for _ in range(40)]), noise_levels(made)


def test_the_probe_of_correlated_noise_has_its_covariance_and_white_noise_has_not():
    """Neighbours in the first channel; its variance; white noise of the same strength is the negative control."""
    frequencies = np.hypot(*np.meshgrid(*[np.fft.fftfreq(32)] * 2))
    spectra = [NoiseSpectrum(np.exp(-((frequencies / 0.2) ** 2))), NoiseSpectrum(np.ones((32, 32)))]
    neighbours = []
    for spectrum in spectra:
        level = np.array([0.01])
        channel = StationaryNoise(spectrum, np.array([0.5]), level)
        drawn, levels = drawn_noise(noise=NoiseProfile((channel,) * 3))
        first = drawn[..., 0]
        assert np.mean(first**2) == pytest.approx(np.mean(levels[0] ** 2), rel=0.05)
        neighbours.append(np.mean(first[:, :, 1:] * first[:, :, :-1]) / np.mean(first**2))
    assert neighbours[0] == pytest.approx(spectra[0].autocovariance[0, 1], abs=0.03)
    assert abs(neighbours[1]) < 0.03


def test_errors_under_correlated_noise_cover_and_those_for_white_noise_do_not():
    """Neighbours share their noise, so less of it can be told from the image than from white noise of that strength."""
    frequencies = np.hypot(*np.meshgrid(*[np.fft.fftfreq(32)] * 2))
    spectrum, rng = NoiseSpectrum(np.exp(-((frequencies / 0.15) ** 2))), np.random.default_rng(3)
    clean = landscape((72, 80), rng).astype(np.float32)
    noisy = (clean + SIGMA * spectrum.field(clean.shape, rng)).astype(np.float32)
    profile = NoiseProfile((StationaryNoise(spectrum, np.array([0.5]), np.array([SIGMA**2])),))
    correlated = hp.denoise(noisy, noise=profile, return_error=True, white=1.0)
    white = hp.denoise(noisy, SIGMA, prior="mixture", return_error=True, white=1.0)
    covered = [np.mean(np.abs(found.pixels - clean) < 1.645 * found.error) for found in (correlated, white)]
    assert covered[0] > 0.72
    assert covered[1] < covered[0] - 0.1


def test_the_public_door_and_its_types_name_the_same_options():
    named = {field.name for field in fields(Settings)}
    assert set(Keywords.__annotations__) - {"progress"} == named
    own = set(signature(denoising.denoise).parameters) - {"image", "sigma", "return_error", "progress"}
    assert own == named
