"""Noise as one value: constant and mapped noise answer the same questions, and agree where they say the same."""

import numpy as np
import pytest

from heatprior.border.gaps import Mirrored
from heatprior.noise_value import Noise, as_noise, mix_noise, root_mean_squares

LEVELS = np.random.default_rng(0).uniform(0.05, 0.2, (9, 12)).astype(np.float32)
MAP = as_noise(LEVELS)
FLAT = Noise(np.full((9, 12), 0.1).__getitem__, 0.1, 0.1)  # not yet known to be constant
ROWS = slice(2, 7)


def test_a_constant_map_is_a_constant_and_a_varying_one_is_not():
    assert as_noise(np.full((3, 4), 0.1)) == Noise.constant(0.1)
    assert as_noise(FLAT) == Noise.constant(0.1) == as_noise(0.1)
    assert not MAP.is_constant
    assert (MAP.lowest, MAP.highest) == (LEVELS.min(), LEVELS.max())


@pytest.mark.parametrize(
    "question",
    [
        lambda noise: noise.rows(ROWS),
        lambda noise: noise.patches(ROWS, 3),
        lambda noise: noise.change(lambda sigma: 0.5 * sigma**2, 0.005, 0.005).rows(ROWS),
        lambda noise: noise.rearrange(Mirrored((9, 12), 2).rows).rows(ROWS),
        lambda noise: noise.halve((9, 12), 0.5).rows(ROWS),
        lambda noise: mix_noise([noise, Noise.constant(0.2)], np.array([1.0, 0.5])).rows(ROWS),
    ],
)
def test_a_constant_answers_as_a_map_of_that_level(question):
    np.testing.assert_allclose(question(Noise.constant(0.1)), question(FLAT).min(), rtol=1e-6)
    np.testing.assert_allclose(question(FLAT), question(FLAT).min(), rtol=1e-6)
    assert np.ptp(question(MAP)) > 1e-4  # a varying map does not


def test_a_patch_has_the_root_mean_square_of_its_pixels():
    expected = [[np.sqrt(np.mean(LEVELS[i : i + 3, j : j + 3] ** 2)) for j in range(10)] for i in range(7)]
    np.testing.assert_allclose(MAP.patches(slice(0, 9), 3), expected, rtol=1e-6)
    np.testing.assert_array_equal(MAP.patches(slice(0, 9), 3), root_mean_squares(LEVELS, 3))


def test_variances_of_independent_channels_add_up():
    weights = np.array([0.5, -2.0])
    noise = mix_noise([MAP, Noise.constant(0.1)], weights)
    np.testing.assert_allclose(noise.rows(ROWS), np.sqrt(0.25 * LEVELS[ROWS] ** 2 + 4 * 0.01), rtol=1e-6)
    assert noise.lowest == pytest.approx(np.sqrt(0.25 * LEVELS.min() ** 2 + 0.04))


def test_at_half_size_the_variance_is_the_mean_of_four_pixels():
    halved = MAP.halve((9, 12), 1.0).rows(slice(0, 4))
    expected = np.sqrt(np.mean(LEVELS[:8].reshape(4, 2, 6, 2) ** 2, axis=(1, 3)))
    np.testing.assert_allclose(halved, expected, rtol=1e-6)
