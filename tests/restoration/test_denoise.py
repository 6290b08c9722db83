"""`hp.denoise` on all sorts of images: types, units, channels, stacks, maps and missing pixels."""

import numpy as np
import pytest
from pipelines import half_quadratic_splitting
from skimage.data import astronaut, camera

import heatprior as hp
from heatprior.border.gaps import fill_missing
from heatprior.border.pixels import COLOUR, mix_channels
from heatprior.noise_value import as_noise, mix_noise

GREY = camera()[100:160, 200:270]
RGB = astronaut()[20:80, 180:250]


def noisy(clean, sigma, seed=0):
    return clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape)


def as_type(values, dtype):
    if dtype in ("u1", "u2"):
        return np.clip(np.rint(values), 0, np.iinfo(dtype).max).astype(dtype)
    return values.astype(dtype)


def psnr(image, clean, white=255.0):
    return -10 * np.log10(np.mean(((image - clean.astype(float)) / white) ** 2))


@pytest.mark.parametrize(("dtype", "white"), [("u1", 255), ("u2", 65535), (">u2", 65535), ("f4", 1), ("f8", 1)])
@pytest.mark.parametrize("steps", [None, 1])
def test_type_shape_and_units_come_back(dtype, white, steps):
    image = as_type(noisy(GREY, 20) / 255 * white, dtype.strip(">")).astype(dtype)
    result = hp.denoise(image, 20 / 255 * white, steps=steps)
    assert result.dtype == np.dtype(dtype)
    assert result.shape == image.shape
    reference = hp.denoise(image.astype(float) / white, 20 / 255, steps=steps)
    np.testing.assert_allclose(result / white, reference, atol=1e-6 + (0.5001 / white if dtype[-2] == "u" else 0))
    assert psnr(result.astype(float) / white * 255, GREY) > psnr(noisy(GREY, 20), GREY) + 4.0


@pytest.mark.parametrize("options", [{"steps": 1}, {}])
@pytest.mark.parametrize(("shape", "axis"), [((60, 70), None), ((1, 60, 70), None), ((60, 70, 1), -1)])
def test_a_result_is_an_array_of_its_own(shape, axis, options):
    image = (noisy(GREY, 20) / 255).astype(np.float32)
    image[3, 4] = np.nan
    image = image.reshape(shape)
    before = image.copy()
    result = hp.denoise(image, 20 / 255, prior="patch7", channel_axis=axis, **options)
    assert result.shape == shape
    assert result.dtype == np.float32
    assert not np.shares_memory(result, image)
    np.testing.assert_array_equal(image, before)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(image))
    exact = hp.denoise(image.astype(np.float64), 20 / 255, prior="patch7", channel_axis=axis, **options)
    np.testing.assert_allclose(result, exact, atol=1e-6)


def test_floats_are_not_clipped_and_integers_are():
    dark = noisy(np.zeros((40, 40)), 0.1)
    assert hp.denoise(dark, 0.1).min() < 0
    result = hp.denoise(as_type(noisy(np.full((40, 40), 250.0), 40), "u1"), 40)
    assert 150 < result.min() <= result.max() <= 255


def test_white_scales_image_and_sigma_alike():
    image = noisy(GREY, 20) / 255
    expected = hp.denoise(image, 20 / 255)
    np.testing.assert_allclose(hp.denoise(image * 4095, 20 / 255 * 4095, white=4095) / 4095, expected, atol=1e-6)
    other = hp.denoise(image * 4095, 20 / 255 * 4095, white=10000) / 4095
    assert np.abs(other - expected).max() > 0.01  # the prior is not free of scale


def test_images_in_a_stack_are_independent():
    images = noisy(np.stack([GREY, GREY[::-1], 255.0 - GREY]), 20) / 255
    expected = np.stack([hp.denoise(image, 20 / 255) for image in images])
    np.testing.assert_array_equal(hp.denoise(images, 20 / 255), expected)
    np.testing.assert_array_equal(hp.denoise(images[None], 20 / 255), expected[None])


@pytest.mark.parametrize("channels", [1, 2, 4, 5])
@pytest.mark.parametrize("axis", [0, -1, 1])
def test_channels_that_are_no_colours_are_taken_one_by_one(channels, axis):
    images = noisy(np.stack([GREY] * channels), 20) / 255
    result = hp.denoise(np.moveaxis(images, 0, axis), 20 / 255, channel_axis=axis)
    np.testing.assert_array_equal(np.moveaxis(result, axis, 0), hp.denoise(images, 20 / 255))


@pytest.mark.parametrize("axis", [0, 1])
def test_the_axis_of_colours_does_not_matter(axis):
    image = noisy(RGB, 20) / 255
    expected = hp.denoise(image, 20 / 255, channel_axis=-1)
    result = hp.denoise(np.moveaxis(image, -1, axis), 20 / 255, channel_axis=axis)
    np.testing.assert_array_equal(np.moveaxis(result, axis, -1), expected)
    stack = hp.denoise(np.stack([image, image]), 20 / 255, channel_axis=-1)
    np.testing.assert_array_equal(stack, np.stack([expected, expected]))


def test_colours_are_denoised_better_together():
    image = noisy(RGB, 25)
    together = hp.denoise(as_type(image, "u1"), 25, channel_axis=-1)
    apart = np.moveaxis(hp.denoise(np.moveaxis(as_type(image, "u1"), -1, 0), 25), 0, -1)
    assert psnr(together, RGB) > psnr(apart, RGB) + 0.5


def test_a_grey_image_in_colour_is_denoised_as_grey_at_a_third_of_the_variance():
    """R = G = B with independent noise: the mean of the three is a grey image with noise sigma / √3."""
    image = noisy(np.repeat(GREY[..., None], 3, -1), 30) / 255
    expected = hp.denoise(image.mean(-1), 30 / 255 / np.sqrt(3))
    np.testing.assert_allclose(hp.denoise(image, 30 / 255, channel_axis=-1).mean(-1), expected, atol=1e-5)


def test_the_mix_of_colours_keeps_noise_white():
    gram = COLOUR @ COLOUR.T
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-15)
    np.testing.assert_allclose(COLOUR[0], 1 / 3)
    draws = np.random.default_rng(0).standard_normal((3, 100_000)) * np.array([0.1, 0.2, 0.3])[:, None]
    for row in COLOUR:
        spread = mix_channels([np.float32(draw) for draw in draws], row).std()
        assert mix_noise([as_noise(sigma) for sigma in (0.1, 0.2, 0.3)], row).lowest == pytest.approx(spread, rel=0.01)
        assert (
            mix_noise([as_noise(sigma) for sigma in (0.3, 0.2, 0.1)], row).lowest == pytest.approx(spread, rel=0.01)
            or row[0] != row[2]
        )


@pytest.mark.parametrize("channels", [2, 3])
def test_one_sigma_per_channel(channels):
    sigmas = np.array([10.0, 40.0, 15.0])[:channels]
    clean = RGB[..., :channels]
    image = as_type(noisy(clean, sigmas), "u1")
    result = hp.denoise(image, sigmas, channel_axis=-1)
    wrong = hp.denoise(image, np.roll(sigmas, 1), channel_axis=-1)
    assert psnr(result, clean) > psnr(wrong, clean) + 0.5
    same = hp.denoise(image, np.full(channels, 25.0), channel_axis=-1)
    np.testing.assert_array_equal(same, hp.denoise(image, 25.0, channel_axis=-1))


@pytest.mark.parametrize("steps", [None, 1])
def test_maps_of_every_shape_equal_their_constant(steps):
    grey, colour = noisy(GREY, 20) / 255, noisy(RGB, 20) / 255
    expected = hp.denoise(grey, 20 / 255, steps=steps)
    result = hp.denoise(grey, np.full(GREY.shape, 20 / 255), steps=steps)
    np.testing.assert_allclose(result, expected, atol=1e-5)
    expected = hp.denoise(colour, 20 / 255, steps=steps, channel_axis=-1)
    for shape in (RGB.shape, RGB.shape[:2]):
        result = hp.denoise(colour, np.full(shape, 20 / 255), steps=steps, channel_axis=-1)
        np.testing.assert_allclose(result, expected, atol=1e-5)
    stack = hp.denoise(np.stack([grey, grey]), np.full((2, *GREY.shape), 20 / 255), steps=steps)
    np.testing.assert_allclose(stack[1], hp.denoise(grey, 20 / 255, steps=steps), atol=1e-5)


def test_a_map_of_a_stack_belongs_to_each_image():
    grey = noisy(GREY, 20) / 255
    sigmas = np.stack([np.full(GREY.shape, 20 / 255), np.full(GREY.shape, 40 / 255)])
    sigmas[:, :, 30:] *= 1.5
    result = hp.denoise(np.stack([grey, grey]), sigmas)
    for image, sigma in zip(result, sigmas, strict=True):
        np.testing.assert_array_equal(image, hp.denoise(grey, sigma))


def test_a_map_is_in_the_units_of_the_image():
    image = as_type(noisy(GREY, 20), "u1")
    sigma = np.broadcast_to(np.linspace(10, 30, GREY.shape[1]), GREY.shape)
    result = hp.denoise(image, sigma)
    differences = np.abs(result - 255 * hp.denoise(image / 255, sigma / 255))
    assert np.mean(differences > 0.5001) < 0.01  # between two shapes that are equally likely, rounding may decide
    assert differences.max() < 10


@pytest.mark.parametrize("steps", [None, 1])
def test_missing_pixels_stay_missing_and_spoil_nothing_else(steps):
    clean = np.tile(GREY, 2) / 255
    image = noisy(np.tile(GREY, 2), 20) / 255
    holed = image.copy()
    holed[20:24, 30:36] = np.nan
    holed[50, 3] = np.nan
    options = {"prior": "patch7", "steps": steps}
    result, whole = (hp.denoise(x, 20 / 255, **options) for x in (holed, image))
    np.testing.assert_array_equal(np.isnan(result), np.isnan(holed))
    far = 36 + 6 * len(hp.load("patch7").card["hqs"]["levels"][0])  # each step reaches six pixels further
    assert far < image.shape[1] - 10
    # exactly at one scale; coarser ones reach further, and hardly move it
    np.testing.assert_allclose(result[:, far:], whole[:, far:], atol=1e-12 if steps == 1 else 1e-6)
    assert (result[:, 36 : far - 20] != whole[:, 36 : far - 20]).any()  # the control
    near = np.zeros(image.shape, bool)
    near[14:30, 24:42] = True
    near &= ~np.isnan(holed)
    assert psnr(result[near], clean[near], 1.0) > psnr(whole[near], clean[near], 1.0) - 1.0


def test_at_two_scales_what_missing_pixels_are_filled_with_spreads_but_invisibly():
    """The cosine transform is one of the whole image: a tenth of a grey level of 8 bits, far away."""
    image = noisy(np.tile(GREY, 2), 20) / 255
    holed = image.copy()
    holed[20:24, 30:36] = np.nan
    result, whole = (hp.denoise(x, 20 / 255) for x in (holed, image))
    assert 0.0 < np.abs(result - whole)[:, 80:].max() < 0.1 / 255
    assert np.nanmax(np.abs(result - whole)) > 1 / 255


def test_the_prior_fills_a_hole_better_than_a_mean():
    """The noisy image has no weight in the hole, so that splitting goes on smoothing what it was filled with."""
    row, column = np.mgrid[:40, :40]
    clean = (0.2 + 0.6 * (row + column > 40)).astype(np.float32)
    image = noisy(clean, 0.02).astype(np.float32)
    image[18:22, 18:22] = np.nan
    filled = image.copy()
    fill_missing(filled)
    hole = np.isnan(image)
    restored = half_quadratic_splitting(image, 0.1, prior=hp.load("patch7"))
    kept = half_quadratic_splitting(filled, 0.1, prior=hp.load("patch7"))
    assert np.abs(restored - kept)[hole].max() > 1e-3  # a weight at the hole would keep what it was filled with
    assert psnr(restored[hole], clean[hole], 1.0) > psnr(filled[hole], clean[hole], 1.0)


def test_filling_continues_the_surroundings_and_changes_nothing_else():
    row, column = np.mgrid[:40, :50].astype(np.float32)
    ramp = 0.01 * row + 0.02 * column
    holes = (np.hypot(row - 17, column - 21) < 6) | (np.hypot(row - 30, column) < 3)
    image = np.where(holes, np.float32(np.nan), ramp)
    fill_missing(image)
    np.testing.assert_array_equal(image[~holes], ramp[~holes])
    inner = holes & (column > 10)
    np.testing.assert_allclose(image[inner], ramp[inner], atol=0.02)  # a ramp solves Laplace's equation
    assert ramp.min() <= image.min() <= image.max() <= ramp.max()  # and its solutions keep within their borders


def test_filling_does_not_reach_far():
    image = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    image[20:24, 30] = np.nan
    other = image.copy()
    other[:, 50:] = 9.0
    fill_missing(image)
    fill_missing(other)
    np.testing.assert_array_equal(image[:, :50], other[:, :50])


def test_missing_colours_are_missing_where_they_were():
    image = noisy(RGB, 20) / 255
    image[10:13, 10:13, 1] = np.nan
    result = hp.denoise(image, 20 / 255, channel_axis=-1)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(image))
    here = np.s_[8:15, 8:15, 0]  # red was there
    whole = hp.denoise(noisy(RGB, 20) / 255, 20 / 255, channel_axis=-1)
    assert psnr(result[here], RGB[here] / 255, 1.0) > psnr(whole[here], RGB[here] / 255, 1.0) - 2.0


def test_a_prior_may_be_a_name_a_path_or_an_object(tmp_path):
    image = noisy(GREY, 20) / 255
    prior = hp.load("patch7")
    prior.save(tmp_path / "mine.safetensors")
    expected = hp.denoise(image, 20 / 255, prior="patch7")
    for given in (prior, tmp_path / "mine.safetensors", str(tmp_path / "mine.safetensors")):
        np.testing.assert_allclose(hp.denoise(image, 20 / 255, prior=given), expected, atol=1e-6)
    assert np.abs(hp.denoise(image, 20 / 255) - expected).max() > 1e-3


def test_the_schedules_of_the_card_are_used():
    image = noisy(GREY, 20) / 255
    prior = hp.load("patch7")
    entry = {"sigmas": [0.05, 0.5], "levels": [[1.0], [1.0]], "weights": [[0.0], [0.0]]}
    plain = hp.PatchPrior(prior.filters, prior.experts, {"hqs": entry})
    padded = np.pad(image, 6, mode="reflect")
    expected = hp.denoise(padded, 20 / 255, steps=1, prior=prior)[6:-6, 6:-6]
    np.testing.assert_allclose(half_quadratic_splitting(image, 20 / 255, prior=plain), expected, atol=1e-6)


def test_progress_rises_from_image_to_image_to_one():
    told = []
    hp.denoise(np.stack([noisy(GREY, 20) / 255] * 2), 20 / 255, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(told) >= 4  # two images of two steps or more


def test_masked_pixels_are_missing():
    image = noisy(GREY, 20) / 255
    holes = np.random.default_rng(1).random(image.shape) < 0.02
    expected = hp.denoise(np.where(holes, np.nan, image), 20 / 255, steps=1)
    np.testing.assert_array_equal(hp.denoise(np.ma.array(image, mask=holes), 20 / 255, steps=1), expected)
    whole = np.ma.array(GREY, mask=False)
    np.testing.assert_array_equal(hp.denoise(whole, 20, steps=1), hp.denoise(GREY, 20, steps=1))
