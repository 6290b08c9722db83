"""Images that are unusual but right, and units that are wrong: no crash, no silence."""

import re
import warnings

import numpy as np
import pytest
from skimage.data import astronaut, camera

import heatprior as hp
from paper.weights.handmade import dct_prior

GREY = camera()[100:140, 200:250].astype(np.float32) / 255
RNG = np.random.default_rng(0)
NOISY = (GREY + 0.1 * RNG.standard_normal(GREY.shape)).astype(np.float32)
FAST = {"prior": "patch7", "steps": 1}


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_pixels_are_missing(value):
    image = NOISY.copy()
    image[10, 20] = value
    missing = NOISY.copy()
    missing[10, 20] = np.nan
    np.testing.assert_array_equal(hp.denoise(image, 0.1, **FAST), hp.denoise(missing, 0.1, **FAST))
    assert np.isnan(hp.denoise(image, 0.1, **FAST)[10, 20])


@pytest.mark.parametrize("function", [hp.denoise, hp.estimate_noise, hp.estimate_sigma])
@pytest.mark.parametrize("value", [-3.4e38, 1e37, 3e30])
def test_values_far_beyond_full_scale_are_refused_everywhere(function, value):
    image = NOISY.copy()
    image[10, 20] = value
    with pytest.raises(hp.InvalidInputError, match="set values that stand for missing pixels to NaN"):
        function(image, white=1.0)
    with pytest.raises(hp.InvalidInputError, match="set values that stand for missing pixels to NaN"):
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


@pytest.mark.parametrize("width", [3, 4])
def test_a_stack_that_looks_like_colours_is_none_if_that_is_said(width):
    stack = np.stack([camera()[k : k + 20, :width] for k in range(5)])
    small = {"prior": dct_prior(3), "steps": 1}
    with pytest.raises(hp.InvalidInputError, match=r"or \(\) if it has none"):
        hp.denoise(stack, 10.0, **small)
    result = hp.denoise(stack, 10.0, channel_axis=(), **small)
    np.testing.assert_array_equal(result[2], hp.denoise(stack[2], 10.0, white=255, **small))
    with pytest.raises(hp.InvalidInputError, match="channel_axis is"):
        hp.denoise(stack, 10.0, channel_axis=(1,), **small)
    assert hp.denoise(stack, 10.0, channel_axis=np.int64(-1), **small).shape == stack.shape


@pytest.mark.parametrize("factor", [2.0**-996, 2.0**-120, 2.0**120, 2.0**996])  # 1e-300 to 1e300, without rounding
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("colour", [False, True])
def test_floats_of_any_size_give_the_same_result_times_that(factor, gaps, colour):
    image = (astronaut() if colour else camera())[100:140, 100:150] * 4.0  # so that full scale is not that of the type
    if gaps:
        image[5:7, 9:11, ...] = np.nan
        image[20, 20, ...] = np.nan if not colour else [np.nan, 500.0, 500.0]
    keywords = {"channel_axis": -1 if colour else None, **FAST}
    small, large = hp.denoise(image, 99.0, **keywords), hp.denoise(factor * image, 99.0 * factor, **keywords)
    np.testing.assert_allclose(large / factor, small, rtol=1e-5)
    assert np.isnan(large).sum() == np.isnan(image).sum()
    found = hp.estimate_sigma(factor * image, channel_axis=keywords["channel_axis"]).sigma
    same = hp.estimate_sigma(image, channel_axis=keywords["channel_axis"]).sigma
    np.testing.assert_allclose(found / factor, same, rtol=1e-5)


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


@pytest.mark.parametrize("period", [1, 2])
def test_a_pattern_unlike_photographs_stays_within_the_reach_of_noise(period):
    """No prior of photographs knows chessboards of single pixels; what it would change is no noise."""
    board = (np.add.outer(np.arange(64), np.arange(64)) // period % 2).astype(np.float32)
    noisy = board + np.float32(0.02) * np.random.default_rng(1).standard_normal(board.shape).astype(np.float32)
    clean = hp.denoise(noisy, 0.02, white=1.0, keep_outliers=True)
    assert np.abs(clean - noisy).max() < 6 * 0.02  # 5, and what the coarser scale adds
    assert np.sqrt(np.mean(np.square(clean - board))) < 6 * 0.02


@pytest.mark.parametrize("keywords", [{}, {"white": 1.0}, {"sigma": 0.1}])
@pytest.mark.parametrize("offset", [1e6, -1e8])
def test_values_that_differ_by_nothing_beside_where_they_lie_are_refused(offset, keywords):
    """In float32 nothing is left of them: the result was three times as wrong as the image."""
    with pytest.raises(hp.InvalidInputError, match=re.escape(f"values around {offset:g}")):
        hp.denoise(NOISY.astype(np.float64) + offset, **keywords, **FAST)
    moderate = hp.denoise(NOISY.astype(np.float64) + 1e3, 0.1, white=1.0, **FAST) - 1e3
    np.testing.assert_allclose(moderate, hp.denoise(NOISY, 0.1, white=1.0, **FAST), atol=2e-3)


@pytest.mark.parametrize("keywords", [{}, {"sigma": 1e-311}])
def test_numbers_below_the_normal_ones_are_refused(keywords):
    with pytest.raises(hp.InvalidInputError, match="multiply it"):
        hp.denoise(NOISY.astype(np.float64) * 1e-310, **keywords)


@pytest.mark.parametrize("white", [10**400, 1e-310, 0.0], ids=["whole", "tiny", "zero"])
def test_a_full_scale_beyond_floats_is_refused(white):
    with pytest.raises(hp.InvalidInputError, match="expected the positive value"):
        hp.denoise(NOISY, 0.1, white=white)


@pytest.mark.parametrize("shape", [(40, 40), (2, 40, 40)])
def test_an_image_without_a_single_pixel_is_refused_in_one_line(shape):
    with pytest.raises(hp.InvalidInputError, match="holds nothing but NaN"):
        hp.denoise(np.full(shape, np.nan))
    with pytest.raises(hp.InvalidInputError, match="holds nothing but NaN"):
        hp.denoise(np.full(shape, np.nan), noise=hp.PoissonGaussian(1.0), quality="fast")
