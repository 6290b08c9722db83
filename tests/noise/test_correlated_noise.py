"""Correlated noise found by likelihood: EM climbs, a known covariance is found again, and white noise stays white."""

import numpy as np
import pytest

import heatprior as hp
from heatprior.errors import InvalidInputError
from heatprior.noise.correlated import (
    Patches,
    evidence_over_white,
    fit_noise,
    start_from_flat,
)
from heatprior.noise.profiles import NoiseProfile, StationaryNoise
from heatprior.noise.stationary import covariance_without_brightness, fit_power
from heatprior.noise_model import NoiseMap, NoiseSpectrum
from heatprior.priors.correlated_mixture import CorrelatedMixture
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.noise_expectation import expected_noise
from heatprior.restoration.qualities import in_symmetry, over_symmetries

SIDE = 16
FREQUENCIES = np.fft.fftfreq(SIDE)
LOW_PASS = np.exp(-np.add.outer(FREQUENCIES**2, (1.5 * FREQUENCIES) ** 2) / 0.2**2) + 0.03
LOW_PASS /= LOW_PASS.mean()
SIGMA = 0.05


@pytest.fixture(scope="module")
def few_shapes():
    """Ten shapes of the shipped mixture."""
    prior = hp.load("mixture")
    return GaussianMixturePrior(prior.covariances[::5], prior.log_weights[::5], prior.contrasts)


def drawn(prior, count, seed=0):
    """Patches of the prior with noise of the low-pass spectrum, at two levels of brightness: half and full strength."""
    model = CorrelatedMixture(prior, NoiseSpectrum(LOW_PASS))
    rng = np.random.default_rng(seed)
    levels = [model.sample(count // 2, sigma, rng=rng) @ prior.basis.T for sigma in (SIGMA / 2, SIGMA)]
    return Patches(levels, np.array([0.2, 0.8]), prior.size, 1.0)


def relative_error(fit, patches, level):
    found = fit.variances[level] * covariance_without_brightness(fit.power, patches.size)
    sigma = (SIGMA / 2, SIGMA)[level]
    true = sigma**2 * covariance_without_brightness(LOW_PASS, patches.size)
    return np.linalg.norm(found - true) / np.linalg.norm(true)


def test_expected_noise_is_that_of_bayes_written_out(few_shapes):
    prior = few_shapes
    u = drawn(prior, 6).levels[1]
    noise = SIGMA**2 * covariance_without_brightness(LOW_PASS, prior.size)
    sums = expected_noise(prior, prior.log_weights, noise / SIGMA**2, [u], np.array([SIGMA**2]), least_part=0.0)
    expected, logarithm = np.zeros_like(noise), 0.0
    for y in u:
        parts, moments = [], []
        for k, shape in enumerate(prior.covariances):
            for g, contrast in enumerate(prior.contrasts):
                total = contrast * shape + noise
                gain = noise @ np.linalg.inv(total)
                parts.append(
                    prior.log_weights[k, g]
                    - 0.5 * (np.linalg.slogdet(2 * np.pi * total)[1] + y @ np.linalg.solve(total, y))
                )
                moments.append(np.outer(gain @ y, gain @ y) + noise - gain @ noise)
        peak = max(parts)
        weights = np.exp(np.array(parts) - peak)
        logarithm += peak + np.log(weights.sum())
        expected += np.tensordot(weights / weights.sum(), moments, 1)
    np.testing.assert_allclose(sums.moments[0], expected, atol=1e-9 * np.abs(expected).max() * len(u))
    np.testing.assert_allclose(sums.log_likelihood, logarithm, rtol=1e-9)


def test_no_step_on_the_torus_lowers_the_likelihood_and_the_covariance_is_found():
    true = covariance_without_brightness(LOW_PASS, 8)
    power, values = np.ones((SIDE, SIDE)), []
    for _ in range(12):
        c = covariance_without_brightness(power, 8)
        values.append(-np.linalg.slogdet(c)[1] - np.trace(np.linalg.solve(c, true)))
        power = fit_power(power, true, 8, 5)
    assert np.all(np.diff(values) > -1e-9)
    error = np.linalg.norm(covariance_without_brightness(power, 8) - true) / np.linalg.norm(true)
    assert error < 0.02
    assert np.linalg.norm(np.eye(len(true)) - true) / np.linalg.norm(true) > 0.5  # where it began


def test_em_never_lowers_the_posterior(few_shapes):
    patches = drawn(few_shapes, 300)
    fit = fit_noise(few_shapes, patches, np.ones((SIDE, SIDE)), np.full(2, SIGMA**2), rounds=8)
    assert np.all(np.diff(fit.log_posterior) > -1e-6 * abs(fit.log_posterior[0]))
    assert fit.log_posterior[-1] > fit.log_posterior[0] + 100
    # The control: a step that goes too far in the noise level lowers it.
    wrong = fit_noise(few_shapes, patches, fit.power, 4 * fit.variances, rounds=0)
    assert wrong.log_posterior[-1] < fit.log_posterior[-1]


def test_a_synthetic_covariance_is_found_the_better_the_more_patches(few_shapes):
    errors = []
    for count in (200, 1600):
        patches = drawn(few_shapes, count)
        fit = fit_noise(few_shapes, patches, *start_from_flat(patches), rounds=15)
        errors.append(np.mean([relative_error(fit, patches, level) for level in (0, 1)]))
    assert errors[1] < 0.15
    assert errors[1] < errors[0]
    white = fit_noise(few_shapes, patches, np.ones((SIDE, SIDE)), fit.variances, white=True)
    assert relative_error(white, patches, 1) > 0.5
    assert evidence_over_white(fit, white, patches) > 0


def test_a_profile_is_the_same_after_a_file_and_refuses_what_is_none(tmp_path):
    variances, errors = np.array([1e-4, 4e-4]), np.full(2, 1e-5)
    noise = StationaryNoise(NoiseSpectrum(LOW_PASS), np.array([0.1, 0.9]), variances, errors, 0.02, 0.6)
    NoiseProfile((noise,), 3).save(tmp_path / "camera.json")
    (found,) = NoiseProfile.load(tmp_path / "camera.json").channels
    for name in ("brightness", "variances", "errors", "power_error", "flattened"):
        np.testing.assert_allclose(getattr(found, name), getattr(noise, name))
    np.testing.assert_allclose(found.spectrum.power, noise.spectrum.power)
    np.testing.assert_allclose(noise.on(np.full((4, 5), 0.5)).lowest, np.sqrt(2.5e-4), rtol=1e-6)
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(InvalidInputError, match="is no noise profile"):
        NoiseProfile.load(tmp_path / "other.json")


def test_a_flattened_spectrum_tells_the_one_that_was_found():
    """But for frequency zero, which patches do not tell; one that was not flattened stays as it is."""
    found = NoiseSpectrum(LOW_PASS)
    flat = StationaryNoise(
        NoiseSpectrum(found.power**0.3), np.array([0.5]), np.array([1e-4]), np.array([1e-5]), 0.0, 0.3
    )
    again = flat.as_found()
    np.testing.assert_allclose(again.spectrum.power / again.spectrum.power[0, 1], found.power / found.power[0, 1])
    assert again.flattened == 1.0
    assert np.abs(flat.spectrum.power - found.power).max() > 0.1
    hole = found.power.copy()
    hole[0, 0] = 0.0
    filled = StationaryNoise(NoiseSpectrum(hole), flat.brightness, flat.variances, flat.errors).as_found()
    assert filled.spectrum.power[0, 0] == pytest.approx(filled.spectrum.power[[0, 1], [1, 0]].mean())


def test_all_symmetries_of_an_image_turn_the_noise_with_it():
    noisy = np.random.default_rng(0).normal(0.5, 0.1, (24, 20)).astype(np.float32)
    tilted = np.exp(-((np.add.outer(2 * FREQUENCIES, FREQUENCIES) / 0.3) ** 2)) + 0.05  # of no symmetry but S(−f)
    levels = np.linspace(0.05, 0.1, 24, dtype=np.float32)[:, None] * np.ones(20, np.float32)
    noise = NoiseMap(levels.__getitem__, 0.05, 0.1, NoiseSpectrum(tilted))
    seen = []
    over_symmetries(lambda image, noise, **_: seen.append(noise) or image, 8)(noisy, noise)
    for number, turned in enumerate(seen):
        np.testing.assert_allclose(turned.rows(slice(None)), in_symmetry(levels, number))
        field = turned.spectrum.autocovariance  # the lags turn as pixels do
        expected = np.fft.ifftshift(in_symmetry(np.fft.fftshift(noise.spectrum.autocovariance)[1:, 1:], number))
        np.testing.assert_allclose(np.fft.ifftshift(np.fft.fftshift(field)[1:, 1:]), expected, atol=1e-12)
    assert np.abs(seen[1].spectrum.power - noise.spectrum.power).max() > 0.1  # the control
