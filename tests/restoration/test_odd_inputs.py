"""Images that are unusual but right, and units that are wrong: no crash, no silence."""

import warnings

import numpy as np
import pytest
from skimage.data import astronaut, camera

import heatprior as hp

GREY = camera()[100:140, 200:250].astype(np.float32) / 255
RNG = np.random.default_rng(0)
NOISY = (GREY + 0.1 * RNG.standard_normal(GREY.shape)).astype(np.float32)
FAST = {"prior": "patch7", "method": "eb"}


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_pixels_are_missing(value):
    image = NOISY.copy()
    image[10, 20] = value
    missing = NOISY.copy()
    missing[10, 20] = np.nan
    np.testing.assert_array_equal(hp.denoise(image, 0.1, **FAST), hp.denoise(missing, 0.1, **FAST))
    assert np.isnan(hp.denoise(image, 0.1, **FAST)[10, 20])


@pytest.mark.parametrize("function", [hp.denoise, hp.estimate_noise, hp.estimate_sigma, hp.noise_map])
@pytest.mark.parametrize("value", [-3.4e38, 1e37, 3e30])
def test_values_far_beyond_full_scale_are_refused_everywhere(function, value):
    image = NOISY.copy()
    image[10, 20] = value
    with pytest.raises(hp.InvalidInputError, match="set values that stand for missing pixels to NaN"):
        function(image, white=1.0)
    with pytest.raises(hp.InvalidInputError, match=r"not scaled to|set values that stand for missing pixels to NaN"):
        function(image)
    with pytest.raises(hp.InvalidInputError, match="values up to"):
        function(NOISY, white=1e-37)


@pytest.mark.parametrize("dtype", ["int16", "int32", "uint32", "float16"])
def test_other_types_are_denoised_in_their_own_units(dtype):
    white = 200.0 if dtype != "float16" else 1.0
    image = (NOISY.clip(0) * white).astype(dtype)
    result = hp.denoise(image, 0.1 * white, white=white, **FAST)
    assert result.dtype == image.dtype
    expected = hp.denoise(NOISY.clip(0), 0.1, **FAST) * white
    assert np.abs(result - expected).max() < 0.02 * white  # whole numbers, or half floats, in and out


def test_negative_values_of_signed_images_stay_negative():
    image = (NOISY * 200).astype(np.int16) - 150
    result = hp.denoise(image, 20.0, white=200.0, **FAST)
    assert result.min() < -50
    assert abs(float(result.mean()) - float(image.mean())) < 1


def test_integers_near_the_top_of_32_bits_do_not_wrap_around():
    image = np.full((20, 20), np.iinfo(np.int32).max, np.int32)
    assert hp.denoise(image, 1e6, **FAST).min() > 0.99 * np.iinfo(np.int32).max


def test_colours_without_a_channel_axis_are_pointed_out():
    rgb = astronaut()[:40, :50]
    for image in (rgb, np.dstack([rgb, rgb[..., 0]])):
        with pytest.raises(hp.InvalidInputError, match="as colours have; give channel_axis=-1"):
            hp.denoise(image, 10.0)
    hp.denoise(np.stack([camera()[:30, :30]] * 3), 10.0, **FAST)  # a stack of three is none


def test_transparency_is_no_colour():
    rgb = astronaut()[:40, :50]
    alpha = np.where(np.arange(50) < 30, 255, np.arange(50)).astype(np.uint8) * np.ones((40, 1), np.uint8)
    result = hp.denoise(np.dstack([rgb, alpha]), 15.0, channel_axis=-1, **FAST)
    np.testing.assert_array_equal(result[..., 3], alpha)
    np.testing.assert_array_equal(result[..., :3], hp.denoise(rgb, 15.0, channel_axis=-1, **FAST))
    four = np.dstack([rgb, rgb[..., 0]])  # a fourth channel with noise is denoised like the others
    assert (hp.denoise(four, 15.0, channel_axis=-1, **FAST)[..., 3] != four[..., 3]).any()


def test_sigma_in_other_units_is_pointed_out():
    bytes_ = (GREY * 255).astype(np.uint8)
    with pytest.warns(UserWarning, match="whole numbers up to 255, which hide so little noise"):
        hp.denoise(bytes_, 0.1, **FAST)
    with pytest.warns(UserWarning, match="sigma is 5, more than full scale"):
        hp.denoise(NOISY, 5.0, **FAST)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hp.denoise(bytes_, 10.0, **FAST)
        hp.denoise(NOISY, 0.1, **FAST)


def test_progress_moves_while_noise_is_estimated():
    told = []
    hp.denoise(NOISY, progress=told.append, **FAST)
    assert told == sorted(told)
    assert 0 < told[0] < 0.1
    assert told[-1] == pytest.approx(1.0)
