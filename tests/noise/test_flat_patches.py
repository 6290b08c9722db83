"""Noise is everywhere and texture is not: the flattest patches of an image tell one from the other."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.stats import chi2

import heatprior as hp
from heatprior.noise.cameras import MOST_SCATTER, scatter_of_flattest
from heatprior.noise.correlated import Picture
from heatprior.noise.flat_patches import (
    MOST_SCATTER_OF_WHITE,
    flattest_of_white,
    levels_of_flattest,
    patches_on_grid,
    scatter,
)
from heatprior.noise.levels import clipping
from heatprior.noise_model import NoiseSpectrum

SHAPE = (160, 200)
SIGMA = 0.03
RNG = np.random.default_rng(0)
WHITE = RNG.standard_normal(SHAPE).astype(np.float32)
# As strong as the noise on average, but here stronger and there weaker.
UNEVEN = np.exp(gaussian_filter(RNG.standard_normal(SHAPE), 6.0) * 30.0).astype(np.float32)
HILLS = (0.5 + 3.0 * gaussian_filter(RNG.standard_normal(SHAPE), 8.0)).astype(np.float32)
F = np.fft.fftfreq(16)
LOW_PASS = np.exp(-np.add.outer(F**2, F**2) / 0.2**2) + 0.01


@pytest.mark.parametrize("directions", [21, 63])
def test_levels_of_flattest_are_those_of_chi_square(directions):
    places = np.linspace(0, 1, 10_003)[1:-1]
    of_noise = chi2.ppf(places, directions) / directions
    np.testing.assert_allclose(
        levels_of_flattest(SIGMA**2 * of_noise, directions), SIGMA, rtol=0.02
    )  # of the approximation
    of_fewer = chi2.ppf(places, directions // 4) / (directions // 4)  # the control: another distribution
    assert scatter(levels_of_flattest(of_fewer, directions)) > 1.15


def test_flattest_patches_hold_the_white_noise_even_if_few_are_flat():
    textured = HILLS + 0.2 * UNEVEN / UNEVEN.max() * np.roll(WHITE, 50)
    levels = flattest_of_white(textured + SIGMA * WHITE, SIGMA, (-np.inf, np.inf))
    np.testing.assert_allclose(levels, 1.0, atol=0.15)
    assert scatter(levels) < MOST_SCATTER_OF_WHITE
    without = flattest_of_white(textured, SIGMA, (-np.inf, np.inf))
    assert scatter(without) > MOST_SCATTER_OF_WHITE


def test_clipped_patches_do_not_count_and_too_few_tell_nothing():
    noisy = np.clip(1.2 * np.linspace(0, 1, SHAPE[1], dtype=np.float32) + SIGMA * WHITE, 0, 1)
    assert scatter(flattest_of_white(noisy, SIGMA, clipping(noisy))) < 1.2
    assert scatter(flattest_of_white(noisy, SIGMA, (-np.inf, np.inf))) > MOST_SCATTER_OF_WHITE  # as if nothing were
    assert flattest_of_white(noisy[:30, :30], SIGMA, clipping(noisy)) is None


def test_texture_alone_is_not_taken_for_noise():
    texture = HILLS + SIGMA * UNEVEN / UNEVEN.mean() * WHITE
    (found,) = hp.estimate_noise(HILLS + SIGMA * WHITE, white=1.0).channels
    assert found.level.sigma == pytest.approx(SIGMA, rel=0.05)
    (found,) = hp.estimate_noise(texture, white=1.0).channels
    assert found.model == "constant"
    assert found.level.sigma == 0.0
    assert hp.estimate_noise(texture, "constant", white=1.0).channels[0].level.sigma > 0  # told that it is noise


def test_correlated_noise_scatters_less_than_texture_of_its_spectrum():
    field = NoiseSpectrum(LOW_PASS).field(SHAPE, np.random.default_rng(1))
    usable = np.ones(SHAPE, bool)
    noise, texture = (Picture(x.astype(np.float32), HILLS, usable) for x in (field, UNEVEN * field))
    assert scatter_of_flattest([noise], LOW_PASS) < MOST_SCATTER
    assert scatter_of_flattest([texture], LOW_PASS) > MOST_SCATTER
    small = Picture(noise.pixels[:20, :20], HILLS[:20, :20], usable[:20, :20])
    assert scatter_of_flattest([small], LOW_PASS) == np.inf


def test_patches_are_whole_varied_and_where_they_are_said_to_be():
    image, usable = np.zeros((40, 50), np.float32), np.ones((40, 50), bool)
    image[:, 25:] = np.arange(25)
    usable[:12] = False
    found = patches_on_grid(image, usable)
    assert found.rows.min() == 12 + 4
    assert found.columns.min() > 25 - 8 + 4
    np.testing.assert_array_equal(found.pixels[:, 4 * 8 + 4], image[found.rows, found.columns])
