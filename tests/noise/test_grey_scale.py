"""The scale of grey levels: found by likelihood where the type does not tell it, and left alone where it does."""

import numpy as np
import pytest
from synthetic import landscape

import heatprior as hp
from heatprior.noise.grey_scale import full_scale, likely_white

RNG = np.random.default_rng(0)
CLEAN = landscape((72, 80), RNG)
SIGMA = 0.1
NOISY = CLEAN + SIGMA * RNG.standard_normal(CLEAN.shape)


def error(image, scale):
    """In decibels, over the noise-free image times `scale`."""
    return 10 * np.log10(np.mean((image / scale - CLEAN) ** 2))


def test_the_scale_of_patches_of_the_prior_is_found():
    prior = hp.load("mixture")
    patches = 7.0 * prior.sample(400, SIGMA, rng=np.random.default_rng(1))
    sigma = np.full(400, 7.0 * SIGMA)
    assert likely_white(prior, patches, sigma, 1000.0) == pytest.approx(7.0, rel=0.1)  # 400 patches know no better
    assert likely_white(prior, patches, sigma / 3.0, 1000.0) != pytest.approx(7.0, rel=0.1)  # the control


@pytest.mark.parametrize("sigma", [SIGMA, None])
def test_a_factor_changes_nothing_but_the_units(sigma):
    first, second = (full_scale(None, k * NOISY, sigma if sigma is None else k * sigma, None) for k in (1000.0, 2.5e-4))
    assert second == pytest.approx(2.5e-7 * first, rel=1e-3)
    options = {"prior": "patch7", "method": "eb"}
    usual = error(hp.denoise(NOISY, sigma, **options), 1.0)
    found = error(hp.denoise(1000.0 * NOISY, None if sigma is None else 1000.0 * sigma, **options), 1000.0)
    assert abs(found - usual) < 0.3  # of these hills, which are no photograph
    wrong = error(hp.denoise(1000.0 * NOISY, 1000.0 * SIGMA, white=65535.0, **options), 1000.0)
    assert wrong > usual + 1.0  # the control: what the type of 16 bits would say


def test_the_scale_of_the_type_stays_where_the_image_fills_it():
    eight = (NOISY.clip(0, 1) * 40).astype(np.uint8)
    for image, white in ((NOISY, 1.0), (eight, 255.0), ((NOISY.clip(0, 1) * 65535).astype(np.uint16), 65535.0)):
        assert full_scale(None, image, None, None) == white
    assert full_scale(3.0, NOISY, None, None) == 3.0


def test_a_stand_in_for_missing_pixels_is_refused():
    image = 1000.0 * NOISY
    image[3, 4] = 1e20
    with pytest.raises(hp.InvalidInputError, match="set values that stand for missing pixels to NaN"):
        hp.denoise(image, 100.0)


def test_an_image_with_less_in_it_than_the_noise_that_is_told_keeps_the_scale_of_its_type():
    flat = (0.5 + 0.01 * CLEAN).astype(np.float32)  # no noise at all: the likelihood rises without end
    assert full_scale(None, flat, SIGMA, None) == 1.0
    assert full_scale(None, flat, 1e-4, None) < 0.1  # the control: told what it has, its scale is found
