"""`hp.denoise` with a prior adapted to the image, and at several scales."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from skimage.data import astronaut, camera
from synthetic import oriented_mixture

import heatprior as hp
from heatprior.errors import PriorFileError
from heatprior.noise_model import as_noise
from heatprior.priors.handmade import dct_prior
from heatprior.restoration.recipes import EVERY_SCALE, Recipe, usual_scales
from heatprior.restoration.scales import Crossover, merged, noise_of_reduced, reduced
from heatprior.restoration.splitting import METHODS, half_quadratic_splitting

GREY = camera()[100:164, 200:277]
RGB = astronaut()[20:60, 180:225]
SIGMA = 25
PRIOR = oriented_mixture()
RECIPES = [{"adapt": True}, {"scales": 2}, {"adapt": True, "scales": 2}]
every_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=["adapted", "two scales", "both"])
every_method = pytest.mark.parametrize("method", METHODS)


def noisy(clean, seed=0, sigma=SIGMA):
    return clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape)


def as_bytes(values):
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def psnr(image, clean):
    return -10 * np.log10(np.mean(((image - clean.astype(float)) / 255) ** 2))


def test_adapted_means_with_the_prior_that_adapt_gives():
    image = noisy(GREY) / 255
    expected = hp.denoise(image, SIGMA / 255, prior=hp.adapt(PRIOR, image, SIGMA / 255), scales=1)
    result = hp.denoise(image, SIGMA / 255, prior=PRIOR, adapt=True, scales=1)
    np.testing.assert_array_equal(result, expected)
    assert np.abs(hp.denoise(image, SIGMA / 255, prior=PRIOR, scales=1) - expected).max() > 0.01


def test_two_scales_are_the_image_and_its_half_merged():
    image = (noisy(GREY) / 255).astype(np.float32)
    sigma = SIGMA / 255
    fine = half_quadratic_splitting(image, sigma, prior=PRIOR)
    coarse = half_quadratic_splitting(reduced(image), noise_of_reduced(as_noise(sigma), image.shape), prior=PRIOR)
    result = hp.denoise(image, sigma, prior=PRIOR, scales=2)
    np.testing.assert_allclose(result, merged(fine, coarse), atol=1e-6)
    assert np.abs(result - fine).max() > 0.005
    np.testing.assert_array_equal(hp.denoise(image, sigma, prior=PRIOR, scales=1), fine)


def test_a_card_may_have_the_half_take_part_between_the_steps():
    image, sigma = (noisy(GREY) / 255).astype(np.float32), SIGMA / 255
    entry = {"sigmas": [0.1, 0.3], "edges": [0.4, 0.4], "widths": [0.1, 0.1], "heights": [0.7, 0.7]}
    prior = replace(PRIOR, card={**PRIOR.card, "crossover_between": entry})
    coarse = half_quadratic_splitting(reduced(image), noise_of_reduced(as_noise(sigma), image.shape), prior=prior)
    between = partial(merged, coarse=coarse, crossover=Crossover(0.4, 0.1, 0.7))
    expected = merged(half_quadratic_splitting(image, sigma, prior=prior, between=between), coarse)
    result = hp.denoise(image, sigma, prior=prior, scales=2)
    np.testing.assert_allclose(result, expected, atol=1e-6)
    assert np.abs(result - hp.denoise(image, sigma, prior=PRIOR, scales=2)).max() > 1e-3
    np.testing.assert_array_equal(
        hp.denoise(image, sigma, prior=prior, scales=1), hp.denoise(image, sigma, prior=PRIOR, scales=1)
    )


def test_between_the_steps_means_after_every_step_but_the_last():
    image, shapes = (noisy(GREY) / 255).astype(np.float32), []

    def between(x):
        shapes.append(x.shape)
        return x

    same = half_quadratic_splitting(image, 0.1, prior=PRIOR, between=between)
    assert shapes == [image.shape] * (PRIOR.schedules.steps - 1)
    inside = (slice(2 * PRIOR.size, -2 * PRIOR.size),) * 2  # at the edges it is mirrored anew
    np.testing.assert_allclose(same[inside], half_quadratic_splitting(image, 0.1, prior=PRIOR)[inside], atol=1e-6)


@pytest.mark.parametrize(
    "entry",
    [
        {"sigmas": [0.1]},
        {"sigmas": [0.1], "edges": [0.5], "widths": [0.0], "heights": [1]},
        {"sigmas": [0.0], "edges": [0.5], "widths": [0.1], "heights": [1]},
        {"sigmas": [0.2, 0.1], "edges": [0.5, 0.5], "widths": [0.1, 0.1], "heights": [1, 1]},
        {"sigmas": [10**400], "edges": [0.5], "widths": [0.1], "heights": [1]},
    ],
)
def test_a_bad_crossover_is_refused(entry):
    prior = replace(PRIOR, card={**PRIOR.card, "crossover_between": entry})
    with pytest.raises(PriorFileError, match="crossover_between"):
        hp.denoise(noisy(GREY) / 255, 0.1, prior=prior, scales=2)


@pytest.mark.parametrize("prior", [PRIOR, dct_prior(5)], ids=["mixture", "patch prior"])
def test_against_strong_noise_two_scales_help_small_patches(prior):
    image = noisy(GREY, sigma=80) / 255
    one, two = (255 * hp.denoise(image, 80 / 255, prior=prior, scales=scales) for scales in (1, 2))
    assert psnr(two, GREY) > psnr(one, GREY)


@every_recipe
@every_method
def test_noise_is_removed(recipe, method):
    result = hp.denoise(as_bytes(noisy(GREY)), SIGMA, prior=PRIOR, method=method, **recipe)
    assert psnr(result, GREY) > psnr(noisy(GREY), GREY) + 4.0


@every_recipe
def test_type_and_units_come_back(recipe):
    image = as_bytes(noisy(GREY))
    reference = hp.denoise(image / 255, SIGMA / 255, prior=PRIOR, **recipe)
    for given, white in [(image, 255), (image * np.uint16(257), 65535), ((image / 255).astype(np.float32), 1)]:
        result = hp.denoise(given, SIGMA / 255 * white, prior=PRIOR, **recipe)
        assert (result.dtype, result.shape) == (given.dtype, given.shape)
        rounding = 0.5 / white if given.dtype.kind == "u" else 0.0
        # adaptation is an iteration: roundings of the image grow a little
        np.testing.assert_allclose(result / white, reference, atol=1e-3 + rounding)


@every_recipe
def test_images_in_a_stack_and_channels_are_independent(recipe):
    images = noisy(np.stack([GREY, 255.0 - GREY[::-1]])) / 255
    expected = np.stack([hp.denoise(image, SIGMA / 255, prior=PRIOR, **recipe) for image in images])
    np.testing.assert_array_equal(hp.denoise(images, SIGMA / 255, prior=PRIOR, **recipe), expected)
    result = hp.denoise(np.moveaxis(images, 0, -1), SIGMA / 255, prior=PRIOR, channel_axis=-1, **recipe)
    np.testing.assert_array_equal(result, np.moveaxis(expected, 0, -1))


@every_recipe
def test_colours(recipe):
    image = as_bytes(noisy(RGB))
    result = hp.denoise(image, SIGMA, prior=PRIOR, channel_axis=-1, **recipe)
    assert (result.dtype, result.shape) == (image.dtype, image.shape)
    assert psnr(result, RGB) > psnr(image, RGB) + 4.0


@every_recipe
def test_missing_pixels_are_missing_again_and_have_no_influence(recipe):
    image = (noisy(GREY) / 255).astype(np.float32)
    holes = np.zeros(image.shape, bool)
    holes[20:24, 30:36] = holes[50, 7] = True
    result = hp.denoise(np.where(holes, np.nan, image), SIGMA / 255, prior=PRIOR, **recipe)
    np.testing.assert_array_equal(np.isnan(result), holes)
    whole = hp.denoise(image, SIGMA / 255, prior=PRIOR, **recipe)
    assert np.sqrt(np.mean((result - whole)[~holes] ** 2)) < 0.3 * np.sqrt(np.mean((image - whole) ** 2))
    assert psnr(255 * result[~holes], GREY[~holes]) > psnr(noisy(GREY), GREY) + 4.0


@every_recipe
def test_a_constant_map_is_a_number_and_a_map_is_heeded(recipe):
    image = noisy(GREY) / 255
    expected = hp.denoise(image, SIGMA / 255, prior=PRIOR, **recipe)
    result = hp.denoise(image, np.full(image.shape, SIGMA / 255), prior=PRIOR, **recipe)
    np.testing.assert_allclose(result, expected, atol=1e-4)
    sigma = np.where(np.arange(77) < 38, 10, 50) * np.ones((64, 1))
    varied = GREY + sigma * np.random.default_rng(0).standard_normal(GREY.shape)
    right, wrong = (255 * hp.denoise(varied / 255, s / 255, prior=PRIOR, **recipe) for s in (sigma, sigma[:, ::-1]))
    assert psnr(right, GREY) > psnr(wrong, GREY) + 2.0


@pytest.mark.parametrize("shape", [(31, 50), (50, 30), (4, 4)])
def test_an_image_too_small_for_two_scales_is_done_at_one(shape):
    """Its half must hold four patches of 4×4 pixels beside each other, and half of 31 is 16."""
    image = noisy(GREY[: shape[0], : shape[1]]) / 255
    two, one = (hp.denoise(image, SIGMA / 255, prior=PRIOR, scales=scales) for scales in (2, 1))
    assert np.array_equal(two, one) == (min(shape) < 31)


@every_recipe
def test_odd_sizes_and_progress(recipe):
    told = []
    result = hp.denoise(noisy(GREY[:41, :33]) / 255, 0.1, prior=PRIOR, progress=told.append, **recipe)
    assert result.shape == (41, 33)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)


def test_every_scale_is_one_scale_merged_with_every_scale_of_the_half():
    """Four patches of 4×4 pixels and more stand beside each other at three sizes: 64, 32 and 16 pixels high."""
    image, sigma = (noisy(GREY) / 255).astype(np.float32), SIGMA / 255
    less = noise_of_reduced(as_noise(sigma), image.shape)
    fine = hp.denoise(image, sigma, prior=PRIOR, scales=1)
    coarse = hp.denoise(reduced(image), less.lowest, prior=PRIOR)
    every = hp.denoise(image, sigma, prior=PRIOR)
    np.testing.assert_allclose(every, merged(fine, coarse), atol=1e-6)
    np.testing.assert_array_equal(hp.denoise(image, sigma, prior=PRIOR, scales=3), every)
    assert np.abs(hp.denoise(image, sigma, prior=PRIOR, scales=2) - every).max() > 1e-5


def test_only_splitting_with_a_prior_of_patches_goes_through_the_scales_by_itself():
    assert [usual_scales(PRIOR, method) for method in ("hqs", "eb")] == [EVERY_SCALE, 1]
    assert usual_scales(hp.load("wavelet"), "hqs") == 1  # which sees every scale already


def test_the_card_says_where_one_scale_takes_over_from_the_next():
    entry = {"sigmas": [0.05, 0.2], "edges": [0.3, 0.7], "widths": [0.1, 0.2]}
    prior = oriented_mixture(crossover=entry)
    image, sigma = (noisy(GREY) / 255).astype(np.float32), 0.1  # in the middle between the logarithms
    fine = hp.denoise(image, sigma, prior=PRIOR, scales=1)
    coarse = hp.denoise(reduced(image), noise_of_reduced(as_noise(sigma), image.shape).lowest, prior=PRIOR, scales=1)
    result = hp.denoise(image, sigma, prior=prior, scales=2)
    np.testing.assert_allclose(result, merged(fine, coarse, Crossover(0.5, 0.15)), atol=1e-6)
    assert np.abs(merged(fine, coarse) - result).max() > 1e-4
    for broken in ({"sigmas": [0.1]}, {**entry, "edges": [0.3]}, {**entry, "widths": [0.0, 0.0]}, [1]):
        with pytest.raises(hp.PriorFileError, match="crossover"):
            hp.denoise(image, sigma, prior=oriented_mixture(crossover=broken), scales=2)


def test_a_recipe_takes_grey_levels_from_zero_to_one():
    image = (noisy(GREY) / 255).astype(np.float32)
    result = Recipe(METHODS["hqs"], adapt=True, scales=2).follow(image, SIGMA / 255, PRIOR)
    np.testing.assert_array_equal(result, hp.denoise(image, SIGMA / 255, prior=PRIOR, adapt=True, scales=2))


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"prior": "patch7", "adapt": True}, "a PatchPrior cannot be adapted; give a mixture"),
        ({"scales": 1.5}, "scales is 1.5; expected a whole number of at least 1"),
        ({"scales": 0}, "scales is 0; expected a whole number of at least 1"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(options, remedy):
    with pytest.raises(hp.InvalidInputError) as refusal:
        hp.denoise(GREY, SIGMA, **{"prior": PRIOR, **options})
    assert remedy in str(refusal.value)
    assert "\n" not in str(refusal.value)


@every_recipe
def test_an_image_without_a_whole_patch_is_refused_in_one_line(recipe):
    with pytest.raises(hp.InvalidInputError, match="give a larger") as refusal:
        hp.denoise(GREY[:3, :40], SIGMA, prior=PRIOR, **recipe)
    assert "\n" not in str(refusal.value)
