"""Denoising with priors of whole images: edges, maps and sizes."""

import numpy as np
import pytest
from pipelines import empirical_bayes

import heatprior as hp
from heatprior.data.trials import psnr
from heatprior.priors.protocol import DiffusedPrior, ImagePrior

SHIPPED = ("conv", "wavelet-density")
every_prior = pytest.mark.parametrize("name", SHIPPED)


def picture(height, width):
    """Blocks and a ramp."""
    rows, columns = np.mgrid[:height, :width]
    return 0.3 + 0.3 * ((rows // 11 + columns // 13) % 2) + 0.2 * columns / width


@every_prior
def test_the_shipped_ones_are_priors_of_whole_images(name):
    prior = hp.load(name)
    assert isinstance(prior, DiffusedPrior)
    assert isinstance(prior, ImagePrior)
    assert not isinstance(hp.load("patch7"), ImagePrior)
    assert prior.parameters == prior.bands.count * 126


@every_prior
@pytest.mark.parametrize("steps", [1, None])
def test_noise_is_removed(name, steps):
    clean = picture(70, 93)
    noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    denoised = hp.denoise(noisy, 0.1, prior=name, steps=steps)
    assert psnr(denoised, clean) > psnr(noisy, clean) + 4.0
    assert denoised.dtype == noisy.dtype


@every_prior
@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (3, 5), (64, 64), (65, 31)])
def test_any_size_will_do(name, shape):
    image = picture(*shape)
    assert np.isfinite(hp.denoise(image, 0.1, prior=name)).all()


def test_an_image_is_mirrored_beyond_its_edges():
    """Brighter on one side than on the other: without a mirror the far edge would shine through."""
    ramp = np.repeat(np.linspace(0.0, 1.0, 96)[None], 64, axis=0)
    denoised = empirical_bayes(ramp, 0.1, prior=hp.load("wavelet-density"))
    cyclic = hp.load("wavelet-density").denoise(ramp, 0.1)
    edges = np.s_[:, [0, 1, -2, -1]]
    assert np.abs(denoised - ramp)[edges].max() < 0.05 < np.abs(cyclic - ramp)[edges].max()


def test_a_map_is_between_its_levels_and_a_constant_one_a_number():
    prior, image = hp.load("wavelet-density"), picture(64, 64)
    noisy = image + 0.1 * np.random.default_rng(1).standard_normal(image.shape)
    sigma = np.full(image.shape, 0.1)
    np.testing.assert_array_equal(hp.denoise(noisy, sigma, prior=prior), hp.denoise(noisy, 0.1, prior=prior))
    sigma[:, 32:] = 0.2
    halves = empirical_bayes(noisy, sigma, prior=prior)
    np.testing.assert_allclose(halves[:, :32], empirical_bayes(noisy, 0.1, prior=prior)[:, :32], rtol=0, atol=1e-5)
    np.testing.assert_allclose(halves[:, 32:], empirical_bayes(noisy, 0.2, prior=prior)[:, 32:], rtol=0, atol=1e-5)


def test_missing_pixels_are_filled_and_missing_again():
    image = picture(64, 80)
    image[20:24, 30:35] = np.nan
    denoised = hp.denoise(image, 0.05, prior="wavelet-density")
    np.testing.assert_array_equal(np.isnan(denoised), np.isnan(image))


def test_noise_is_estimated_by_priors_on_patches():
    with pytest.raises(hp.InvalidInputError, match=r"not with this one \(wavelet\)"):
        hp.estimate_sigma(picture(64, 64), prior="wavelet-density")
    with pytest.raises(hp.InvalidInputError, match=r"not with this one \(wavelet\)"):
        hp.estimate_noise(picture(64, 64), "map", prior="wavelet-density")
