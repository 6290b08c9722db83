"""Flips and transposes of an image: what they change of its result, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from skimage.data import camera

import heatprior as hp
from heatprior.arrays import FloatArray
from paper.weights.handmade import dct_prior

SIGMA = 0.1
ORIENTATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {  # each its own inverse; together they make all eight
    "upside down": np.flipud,
    "mirrored": np.fliplr,
    "transposed": np.transpose,
}


def picture(shape: tuple[int, int]) -> FloatArray:
    return camera()[100 : 100 + shape[0], 100 : 100 + shape[1]] / 255


def noisy(shape: tuple[int, int]) -> FloatArray:
    return picture(shape) + SIGMA * np.random.default_rng(0).standard_normal(shape)


def mean_change(shape: tuple[int, int], orientation: str, **options: object) -> float:
    """Between the result, and that of the image turned, turned back; of full scale, on average."""
    turn, image = ORIENTATIONS[orientation], noisy(shape)
    first, second = (
        hp.denoise(np.ascontiguousarray(each), SIGMA, white=1.0, **options) for each in (image, turn(image))
    )
    return float(np.abs(turn(second) - first).mean())


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("steps", [1, None])
def test_a_symmetric_prior_treats_every_orientation_alike(orientation: str, steps: int | None):
    """Cosines are symmetric: what is left is rounding, at one scale and at several."""
    assert mean_change((64, 80), orientation, prior=dct_prior(5), steps=steps) < 1e-6


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("strides", [(2, 2), (3, 3, 3)])
def test_patches_that_lie_apart_lie_alike_in_every_orientation(orientation: str, strides: tuple[int, ...]):
    prior = dct_prior(7)
    levels, weights = ([[level] * len(strides)] for level in (0.5, 0.1))
    schedule = {"sigmas": [SIGMA], "levels": levels, "weights": weights, "strides": list(strides)}
    strided = replace(prior, card={**prior.card, "hqs": schedule})
    assert mean_change((64, 80), orientation, prior=strided) < 1e-6


@pytest.mark.parametrize("orientation", ["upside down", "mirrored"])
def test_odd_sides_shift_the_half_size_image_by_a_pixel_which_changes_little(orientation: str):
    change = mean_change((63, 81), orientation, prior=dct_prior(5))
    assert 1e-6 < change < 1e-3  # the first is the control: rounding alone would be less


@pytest.mark.parametrize("quality", ["fast", "default"])
@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_what_shipped_priors_learnt_of_orientation_is_a_fraction_of_their_error(orientation: str, quality: str):
    error = hp.denoise(noisy((96, 96)), SIGMA, white=1.0, quality=quality) - picture((96, 96))
    change = mean_change((96, 96), orientation, quality=quality)
    assert 1e-6 < change < 0.25 * np.sqrt(np.mean(error**2))


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_the_mean_over_all_orientations_has_none(orientation: str):
    assert mean_change((33, 42), orientation, prior="fast7", quality="best") < 1e-6
