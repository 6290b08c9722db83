"""Counted photons, told or found, come back without bias, and nearer to the truth than by a map of sigma."""

import numpy as np
import pytest
import skimage.data

import heatprior as hp
from heatprior.data.trials import psnr

SCENE = skimage.data.camera()[100:228, 150:278] / 255.0
FAST = {"quality": "fast"}


def counted(peak, gain=1.0, read_noise=0.0, black=0.0):
    rng = np.random.default_rng(0)
    read = read_noise * rng.standard_normal(SCENE.shape)
    return black + gain * rng.poisson(peak * SCENE) + read


@pytest.mark.parametrize("peak", [2, 5, 20])
def test_counts_are_nearer_than_by_a_map_of_the_true_sigma(peak):
    noisy = counted(peak)
    by_map = hp.denoise(noisy, np.sqrt(peak * SCENE + 0.01), white=peak)
    told = hp.denoise(noisy, noise=hp.PoissonGaussian(1.0))
    assert psnr(told / peak, SCENE) > psnr(by_map / peak, SCENE)


@pytest.mark.parametrize("peak", [1, 20])
def test_as_many_photons_leave_as_came(peak):
    noisy, noise = counted(peak), hp.PoissonGaussian(1.0)
    found = hp.denoise(noisy, noise=noise, **FAST)
    assert found.mean() == pytest.approx(noisy.mean(), rel=0.03)


def test_the_algebraic_inverse_would_lose_photons():
    noisy, noise = counted(1), hp.PoissonGaussian(1.0)
    denoised = hp.denoise(noise.stabilise(noisy), noise.sigma_of_stabilised(noisy), white=1.0, **FAST)
    assert (np.square(denoised / 2.0) - 3 / 8).mean() < 0.9 * noisy.mean()
    assert noise.unstabilise(denoised).mean() == pytest.approx(noisy.mean(), rel=0.03)


@pytest.mark.parametrize("peak", [2, 20])
def test_blind_is_about_as_good_as_told(peak):
    noisy = counted(peak)
    told, blind = hp.denoise(noisy, noise=hp.PoissonGaussian(1.0)), hp.denoise(noisy)
    assert psnr(blind / peak, SCENE) > psnr(told / peak, SCENE) - 0.3


def test_units_do_not_matter():
    noisy, noise = counted(5, read_noise=0.5), hp.PoissonGaussian(1.0, 0.5)
    other = hp.denoise(40.0 * noisy + 100.0, noise=hp.PoissonGaussian(40.0, 20.0, 100.0), **FAST)
    np.testing.assert_allclose((other - 100.0) / 40.0, hp.denoise(noisy, noise=noise, **FAST), atol=1e-3)


def test_integers_colours_transparency_gaps_and_stacks():
    noise = hp.PoissonGaussian(8.0)
    grey = np.clip(counted(25, gain=8.0), 0, 255)
    alone = hp.denoise(grey, noise=noise, white=255.0, **FAST)
    integers = hp.denoise(grey.astype(np.uint8), noise=noise, white=255.0, **FAST)
    assert integers.dtype == np.uint8
    assert np.abs(integers - np.clip(alone, 0, 255)).max() <= 0.51
    stack = hp.denoise(np.stack([grey, grey]), noise=noise, white=255.0, **FAST)
    np.testing.assert_array_equal(stack, [alone, alone])
    alpha = np.full(grey.shape, 255.0)
    alpha[:, :20] = 0.0
    rng = np.random.default_rng(1)
    truth = 200.0 * SCENE[..., None] * np.array([0.9, 1.0, 0.6])
    photons = np.clip(8.0 * rng.poisson(truth / 8.0), 0, 255)
    colours = np.concatenate([photons, alpha[..., None]], axis=-1).astype(np.uint8)
    clean = hp.denoise(colours, noise=noise, channel_axis=-1, **FAST)
    assert clean.shape == colours.shape
    np.testing.assert_array_equal(clean[..., 3], colours[..., 3])
    assert np.std(clean[..., :3] - truth) < 0.5 * np.std(colours[..., :3] - truth)
    holes = grey.copy()
    holes[40:44, 50:60] = np.nan
    found = hp.denoise(holes, noise=noise, white=255.0, **FAST)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(holes))


def test_errors_follow_the_counts():
    found = hp.denoise(counted(20), noise=hp.PoissonGaussian(1.0), return_error=True, **FAST)
    bright = SCENE > 0.6
    assert found.error[bright].mean() > 1.3 * found.error[SCENE < 0.1].mean()
    assert np.std((found.pixels - 20 * SCENE) / found.error) == pytest.approx(1.0, abs=0.5)


def test_sigma_and_counts_are_not_both_given():
    with pytest.raises(hp.InvalidInputError, match="leave out sigma"):
        hp.denoise(counted(5), 1.0, noise=hp.PoissonGaussian(1.0))


@pytest.mark.parametrize(
    "values", [(1.0, 0.0, 100.0), (1e300, 0.0, 0.0), (1e-9, 5.0, 0.0), ("1", 0.0, 0.0), (1.0, 0.0, 1e9)]
)
def test_a_gain_and_black_level_in_other_units_are_refused(values):
    with pytest.raises(hp.InvalidInputError, match="in the units of the image"):
        hp.denoise(counted(20), noise=hp.PoissonGaussian(*values), **FAST)


def test_a_read_noise_next_to_nothing_is_none():
    noisy = counted(20)
    none = hp.denoise(noisy, noise=hp.PoissonGaussian(1.0), **FAST)
    np.testing.assert_array_equal(hp.denoise(noisy, noise=hp.PoissonGaussian(1.0, 1e-20), **FAST), none)
    dark = hp.denoise(0.0 * noisy, noise=hp.PoissonGaussian(1.0), **FAST)
    np.testing.assert_allclose(dark, 0.0, atol=0.05)
