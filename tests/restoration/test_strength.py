"""Strength: times what was found, with a floor, so that it always does something; and nothing unchanged in silence."""

import numpy as np
import pytest

import heatprior as hp
from heatprior.restoration.denoising import FLOOR, strengthen

PLAIN = np.tile(np.rint(np.linspace(60, 190, 64)), (64, 1)).astype(np.uint8)  # no noise


def test_strength_grows_without_a_jump_and_never_in_vain():
    for sigma in (0.0, 0.001, FLOOR, 0.1):
        levels = [strengthen(sigma, strength) for strength in (0.5, 0.999, 1.0, 1.001, 2.0, 4.0)]
        assert levels[2] == sigma
        assert np.all(np.diff(levels[2:]) > 0)
        assert abs(levels[3] - levels[1]) < 1e-3
    assert strengthen(0.1, 2.0) == 0.2


def test_an_image_without_noise_comes_back_as_it_was_with_a_warning_that_says_what_to_do():
    with pytest.warns(
        UserWarning, match="no noise found, image unchanged; if you see noise, give strength=2 or sigma=10"
    ):
        np.testing.assert_array_equal(hp.denoise(PLAIN, quality="fast"), PLAIN)


def test_a_higher_strength_smooths_what_seemed_to_have_no_noise():
    floats = PLAIN.astype(np.float32) / 255
    more = hp.denoise(floats, strength=4, quality="fast")
    assert 0 < np.std(more - floats) < 4 * FLOOR
