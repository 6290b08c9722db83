"""Noise estimated with a mixture of Gaussians: exact densities, unbiased, honest, and less misled by texture."""

import numpy as np
import pytest
from noise_levels import level_of_patches, noise_map
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from skimage import data
from synthetic import landscape

import heatprior as hp
from examples import gaussian_mixture
from heatprior.noise.likelihood import weak_directions
from heatprior.priors import gaussian_mixture as module
from heatprior.priors.gaussian_mixture import contrast_weights, mixture_densities

PRIOR = hp.load("mixture")
SMALL = gaussian_mixture(4, 5, (0.25, 1.0, 4.0), seed=3)
PATCHES, REPEATS = 500, 40
SHAPE = (128, 192)
RNG = np.random.default_rng(0)
CLEAN = (0.1 + 0.8 * landscape(SHAPE, RNG)).astype(np.float32)
NOISE = RNG.standard_normal(SHAPE)
HALVES = np.where(np.arange(SHAPE[1]) < SHAPE[1] // 2, 0.05, 0.15) * np.ones((SHAPE[0], 1))
GAIN, OFFSET = 0.02, 0.001


def noisy(sigma):
    return (CLEAN + sigma * NOISE).astype(np.float32)


def mosaic(patches, size):
    """An image that is a row of patches."""
    return patches.reshape(-1, size, size).swapaxes(0, 1).reshape(size, -1)


def test_densities_of_the_contrasts_make_up_that_of_the_prior(monkeypatch):
    monkeypatch.setattr(module, "CHUNK_NUMBERS", 1)  # many chunks
    patches = SMALL.sample(50, 0.1, rng=np.random.default_rng(0))
    sigmas = np.array([0.1, 0.3])
    found = mixture_densities(SMALL, mosaic(patches, 4), sigmas, SMALL.noise_likelihood.directions.unit, 4)
    assert found.shape == (2, 3, 1, 50)
    together = logsumexp(found[:, :, 0], b=contrast_weights(SMALL)[:, None], axis=1)
    for sigma, values in zip(sigmas, together, strict=True):
        np.testing.assert_allclose(values, SMALL.log_prob(patches, sigma), atol=1e-3)  # float32
    assert np.abs(found[:, 0] - found[:, 2]).max() > 1


def test_the_density_in_some_directions_is_the_marginal():
    single = gaussian_mixture(4, 1)
    unit = single.noise_likelihood.directions.unit[weak_directions(single.noise_likelihood.directions, 0.0)]
    patches = single.sample(20, 0.2, rng=np.random.default_rng(0))
    found = mixture_densities(single, mosaic(patches, 4), np.array([0.2]), unit, 4)[0, 0, 0]
    turn = unit @ single.basis.T
    covariance = turn @ single.covariances[0] @ turn.T + 0.2**2 * np.eye(len(unit))
    exact = multivariate_normal(cov=covariance).logpdf(patches @ unit.T)
    np.testing.assert_allclose(found, exact, atol=1e-3)
    assert np.abs(found - single.log_prob(patches, 0.2)).mean() > 1


def test_directions_are_orthonormal_and_spread_as_clean_patches_do():
    unit, spread, *_ = SMALL.noise_likelihood.directions
    np.testing.assert_allclose(unit @ unit.T, np.eye(15), atol=1e-12)
    responses = SMALL.sample(100_000, rng=np.random.default_rng(0)) @ unit.T
    np.testing.assert_allclose(responses.std(axis=0), spread, rtol=0.03)


def errors_over_stated(sigma, factor=1.0):
    """(estimate − sigma) / stderr for patches of the prior itself, times a factor that makes them wrong."""
    rng = np.random.default_rng(round(1000 * sigma))
    draws = (factor * PRIOR.sample(PATCHES, sigma, rng=rng) for _ in range(REPEATS))
    estimates = np.array([level_of_patches(patches, PRIOR.noise_likelihood) for patches in draws])
    return (estimates[:, 0] - sigma) / estimates[:, 1]


@pytest.mark.parametrize("sigma", [0.02, 0.4])
def test_on_patches_of_the_mixture_the_estimate_is_unbiased_and_its_interval_honest(sigma):
    errors = errors_over_stated(sigma)
    assert abs(errors.mean()) < 3.5 / np.sqrt(REPEATS)  # four of 10 000 sets of seeds miss this by chance
    covered = (np.abs(errors) < 1.645).mean()
    assert 0.77 <= covered <= 0.98


def test_patches_of_more_noise_than_stated_are_noticed():
    assert errors_over_stated(0.1, factor=1.1).mean() > 3


@pytest.mark.parametrize("sigma", [0.005, 0.02, 0.1, 0.5])
def test_noise_on_a_landscape_is_found(sigma):
    found = hp.estimate_sigma(noisy(sigma), prior=PRIOR)
    assert found.sigma == pytest.approx(sigma, rel=0.08)  # smoother than the faintest contrast of the prior
    assert 0 < found.stderr < 0.05 * sigma


def test_texture_passes_for_noise_less_than_with_one_basis():
    clean = data.camera()[128:384, 128:384] / np.float32(255)  # grass, among others
    image = clean + np.float32(0.02) * np.random.default_rng(0).standard_normal(clean.shape).astype(np.float32)
    by_mixture, by_filters = (float(hp.estimate_sigma(image, prior=name)) - 0.02 for name in ("mixture", "patch7"))
    assert abs(by_mixture) < 0.7 * abs(by_filters)


def test_missing_and_clipped_pixels_do_not_count():
    image = noisy(0.05)
    image[40:80, 50:120] = np.nan
    image[:, 150:] = np.minimum(image[:, 150:] + 0.5, 1.0)
    assert float(hp.estimate_sigma(image, prior=PRIOR)) == pytest.approx(0.05, rel=0.05)


def test_an_image_without_noise_has_none():
    image = np.tile(np.linspace(0, 1, 96, dtype=np.float32), (80, 1))
    assert hp.estimate_sigma(image, prior=PRIOR).sigma == 0.0


def test_a_map_that_changes_abruptly_is_followed_and_its_error_is_honest():
    found = noise_map(noisy(HALVES), prior=PRIOR)
    away = np.abs(np.arange(SHAPE[1]) - SHAPE[1] / 2 + 0.5) > 16
    errors = (found.sigma - HALVES)[:, away]
    assert np.abs(errors / HALVES[:, away]).mean() < 0.08
    spread = np.sqrt(np.square(errors / found.stderr[:, away]).mean())
    assert 0.6 < spread < 1.6  # one, if errors are as stated


@pytest.mark.parametrize(
    ("sigma", "model"), [(0.1, "constant"), (np.sqrt(GAIN * CLEAN + OFFSET), "affine"), (HALVES, "map")]
)
def test_the_model_with_the_most_evidence_is_the_right_one(sigma, model):
    report = hp.estimate_noise(noisy(sigma), prior=PRIOR)
    assert report.models == (model,)
    np.testing.assert_allclose(np.median(report.sigma / sigma), 1.0, atol=0.05)


def test_a_mixture_of_one_contrast_estimates_too():
    one = gaussian_mixture(4, 3, seed=1)
    patches = one.sample(2000, 0.2, rng=np.random.default_rng(0))
    found = level_of_patches(patches, one.noise_likelihood)
    assert abs(found.sigma - 0.2) < 3.5 * found.stderr
    assert found.stderr < 0.01


def test_images_smaller_than_a_patch_are_refused():
    for estimate in (hp.estimate_sigma, hp.estimate_noise):
        with pytest.raises(hp.InvalidInputError, match=r"7×30 pixels but the prior acts on patches of 8×8"):
            estimate(np.zeros((7, 30)), prior=PRIOR)
