"""One step of empirical Bayes with patch averaging, against cutting every patch and its exact posterior mean."""

import numpy as np
import pytest

from heatprior import load
from heatprior.patches import average, extract
from heatprior.priors.averaging import averaged_posterior_mean

PRIOR = load("dct7")


def picture(shape, seed=0):
    """Smooth shades, an edge and noise."""
    rng = np.random.default_rng(seed)
    row, column = np.meshgrid(*(np.linspace(0, 3, n) for n in shape), indexing="ij")
    return 0.5 + 0.2 * np.sin(row + 2 * column) + 0.3 * (row > column) + 0.1 * rng.standard_normal(shape)


@pytest.mark.parametrize("sigma", [1e-3, 0.02, 0.1, 0.4, 5.0])
def test_it_is_the_average_of_the_exact_posterior_means(sigma):
    image = picture((40, 51))
    exact = average(PRIOR.posterior(extract(image, 7), sigma).mean, image.shape, 7)
    # the tables are straight between nodes: 1e-5 of full scale
    np.testing.assert_allclose(averaged_posterior_mean(PRIOR, image, sigma), exact, atol=2e-5)


def test_another_noise_level_is_noticed():
    image = picture((40, 51))
    exact = average(PRIOR.posterior(extract(image, 7), 0.1).mean, image.shape, 7)
    assert np.abs(averaged_posterior_mean(PRIOR, image, 0.101) - exact).max() > 1e-4


def test_without_noise_the_image_stays():
    image = picture((30, 30))
    np.testing.assert_allclose(averaged_posterior_mean(PRIOR, image, 0.0), image, atol=1e-7)


def test_a_constant_image_stays_constant():
    # up to 1e-6 from the rounding of the zero-mean filters
    np.testing.assert_allclose(averaged_posterior_mean(PRIOR, np.full((20, 25), 0.7), 0.2), 0.7, atol=1e-5)


def test_it_commutes_with_adding_a_constant():
    image = picture((30, 33))
    shifted = averaged_posterior_mean(PRIOR, image + 0.25, 0.1)
    np.testing.assert_allclose(shifted, averaged_posterior_mean(PRIOR, image, 0.1) + 0.25, atol=1e-5)


@pytest.mark.parametrize("move", [np.fliplr, np.flipud, np.transpose])
def test_it_commutes_with_the_symmetries_of_the_cosine_filters(move):
    image = picture((30, 33))
    moved = averaged_posterior_mean(PRIOR, move(image), 0.1)
    np.testing.assert_allclose(moved, move(averaged_posterior_mean(PRIOR, image, 0.1)), atol=1e-5)
