"""Whether there is noise, and how much a camera has left of it: what the decision depends on, and what not."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from skimage import data

import heatprior as hp
from heatprior.data.trials import psnr
from heatprior.noise.decision import decide, describe
from heatprior.noise.estimation import estimate_noise

CLEAN = data.astronaut()[64:320, 128:384]


def smoothed(strength, seed=0):
    """A picture with noise as a camera leaves it, about so strong."""
    noise = gaussian_filter(np.random.default_rng(seed).standard_normal(CLEAN.shape), (0.9, 0.9, 0.0))
    return np.clip(np.rint(CLEAN + strength * noise / noise.std()), 0, 255).astype(np.uint8)


def test_a_clean_picture_comes_back_bit_by_bit_and_a_noisy_one_better():
    assert str(estimate_noise(CLEAN, channel_axis=-1)) == "no noise found"
    with pytest.warns(UserWarning, match="no noise found"):
        np.testing.assert_array_equal(hp.denoise(CLEAN, channel_axis=-1, quality="fast"), CLEAN)
    floats = CLEAN / np.float32(300.0)
    with pytest.warns(UserWarning, match="no noise found"):
        np.testing.assert_array_equal(hp.denoise(floats, channel_axis=-1, quality="fast", white=255 / 300), floats)
    noisy = smoothed(12.0)
    report = estimate_noise(noisy, channel_axis=-1)
    assert report.models == ("camera",) * 3
    assert str(report).startswith("camera noise, ")
    assert str(report).endswith(" of 255")
    assert report.probability > 0.9
    denoised = hp.denoise(noisy, channel_axis=-1, quality="fast")
    assert psnr(denoised / 255, CLEAN / 255) > psnr(noisy / 255, CLEAN / 255) + 1.0


def test_black_and_white_without_grey_has_no_noise_to_be_seen():
    fax = np.where(data.page() > 140, 255, 0).astype(np.uint8)
    assert estimate_noise(fax).is_none
    fax[0, 0] = 100  # one grey, and it is like any other picture
    assert not estimate_noise(fax[:64, :96]).is_none


def test_the_level_is_that_of_the_picture_in_any_units():
    noisy = smoothed(12.0)
    levels = [
        estimate_noise((noisy * float(factor)).astype(kind), channel_axis=-1, white=255.0 * factor)
        .channels[0]
        .level.sigma
        for factor, kind in ((1, np.uint8), (1 / 255, np.float64), (256, np.uint16))
    ]
    np.testing.assert_allclose(levels, levels[0], rtol=1e-4)


def test_features_are_those_of_the_mirrored_and_the_turned_picture():
    channels = np.moveaxis(smoothed(12.0)[:253, :253], -1, 0).astype(np.float32) / 255  # patches on every second pixel
    found = describe(channels)
    for other in (channels[:, ::-1], channels[:, :, ::-1], channels.swapaxes(1, 2)):
        turned = describe(np.ascontiguousarray(other))
        np.testing.assert_allclose(turned.features, found.features, atol=0.35)  # halves are of other pixels
        assert turned.log_level == pytest.approx(found.log_level, abs=0.1)
    other = describe(np.moveaxis(smoothed(24.0), -1, 0).astype(np.float32) / 255)
    assert other.log_level > found.log_level + 0.4  # the control: twice the noise


def test_a_grey_picture_saved_in_colours_is_denoised_as_the_grey_one():
    grey = smoothed(15.0)[..., 1]
    colours = np.repeat(grey[..., None], 3, axis=-1)
    report = estimate_noise(colours, channel_axis=-1)
    assert report.channels[0].level == estimate_noise(grey).channels[0].level
    alone = hp.denoise(grey, quality="fast").astype(float)
    together = hp.denoise(colours, channel_axis=-1, quality="fast").astype(float)
    assert np.abs(together - alone[..., None]).max() <= 1.0


def test_images_of_a_stack_are_decided_one_by_one():
    stack = np.stack([CLEAN, smoothed(12.0)])
    assert estimate_noise(stack, channel_axis=-1, white=255).models == ("none",) * 3 + ("camera",) * 3
    denoised = hp.denoise(stack, channel_axis=-1, white=255, quality="fast")
    np.testing.assert_array_equal(denoised[0], CLEAN)
    assert (denoised[1] != stack[1]).any()


def test_too_small_a_picture_is_not_decided():
    assert describe(np.random.default_rng(0).random((1, 12, 40), np.float32)) is None
    assert describe(np.full((3, 64, 64), 0.5, np.float32)) is None
    assert decide(None, in_colour=True) is None


def test_strength_is_for_noise_that_is_found():
    with pytest.raises(hp.InvalidInputError, match="strength is for noise that is estimated"):
        hp.denoise(smoothed(12.0), 10.0, channel_axis=-1, strength=2.0)
    with pytest.raises(hp.InvalidInputError, match=r"expected 0\.1 to 10"):
        hp.denoise(smoothed(12.0), channel_axis=-1, strength=0.0)


@pytest.mark.parametrize("period", [15.0, 40.0])
@pytest.mark.parametrize("angle", [0.0, 0.7])
@pytest.mark.parametrize("hardness", [1.0, 20.0])
def test_a_pattern_is_not_noise(period, angle, hardness):
    y, x = np.indices((256, 256))
    wave = np.clip(hardness * np.sin(2 * np.pi * (x * np.cos(angle) + y * np.sin(angle)) / period), -1, 1)
    grating = np.rint(128 + 100 * wave[..., None] * np.array([1.0, 0.7, 0.4])).astype(np.uint8)
    assert estimate_noise(grating, channel_axis=-1).is_none
    grey = grating[..., 0]
    if hardness == 1.0:  # grey stripes with hard, slanting edges may be taken for noise
        assert estimate_noise(grey).is_none
    noisy = np.clip(np.rint(grey + 10.0 * np.random.default_rng(0).standard_normal(grey.shape)), 0, 255)
    assert estimate_noise(noisy.astype(np.uint8)).models == ("constant",)  # the control


def test_white_noise_is_white_whatever_the_picture():
    """Noise that halves with every octave is white; what its picture is like does not matter."""
    waves = 100.0 + 40.0 * np.sin(np.indices((256, 256)).sum(axis=0) / 6.0)
    noisy = waves + 3.0 * np.random.default_rng(0).standard_normal(waves.shape)
    report = estimate_noise(noisy, white=255.0)
    assert report.models == ("constant",)
    np.testing.assert_allclose(report.channels[0].level.sigma * 255.0, 3.0, rtol=0.1)
    assert estimate_noise(waves, white=255.0).is_none


def test_photon_noise_is_found_where_the_picture_alone_would_not_pay():
    clean = data.camera()[200:456, 120:376] / 255.0
    photons = np.random.default_rng(0).poisson(300.0 * clean) / 300.0
    noisy = np.clip(np.rint(230.0 * photons), 0, 255).astype(np.uint8)
    assert not estimate_noise(noisy).is_none
    assert psnr(hp.denoise(noisy) / 230, clean) > psnr(noisy / 230, clean) + 2.0
    assert estimate_noise(np.rint(230.0 * clean).astype(np.uint8)).is_none  # the control: without noise
