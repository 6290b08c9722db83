"""One step of empirical Bayes with patch averaging, against cutting every patch and its exact posterior mean."""

import numpy as np
import pytest

from heatprior import load
from heatprior.kernels.patches import average, extract
from heatprior.noise_value import root_mean_squares
from heatprior.priors.filters import FilterBank
from heatprior.priors.patch import PatchPrior, response_tables
from heatprior.priors.protocol import denoise_once
from paper.weights.handmade import dct_prior

PRIOR = dct_prior(7)


def picture(shape, seed=0):
    """Smooth shades, an edge and noise."""
    rng = np.random.default_rng(seed)
    row, column = np.meshgrid(*(np.linspace(0, 3, n) for n in shape), indexing="ij")
    return 0.5 + 0.2 * np.sin(row + 2 * column) + 0.3 * (row > column) + 0.1 * rng.standard_normal(shape)


@pytest.mark.parametrize("sigma", [1e-3, 0.02, 0.1, 0.4, 5.0])
def test_it_is_the_average_of_the_exact_posterior_means(sigma):
    image = picture((40, 51))
    exact = average(PRIOR.posterior(extract(image, 7), sigma).mean, image.shape, 7)
    # the tables are straight lines: half a thousandth of a grey level of 8 bits
    np.testing.assert_allclose(denoise_once(PRIOR, image, sigma), exact, atol=1e-5)


def test_the_learnt_prior_is_tabulated_as_well():
    image, prior = picture((40, 51)), load("patch7")
    for sigma in (0.01, 0.05, 0.2):
        exact = average(prior.posterior(extract(image, 7), sigma).mean, image.shape, 7)
        np.testing.assert_allclose(denoise_once(prior, image, sigma), exact, atol=1e-5)


def test_another_noise_level_is_noticed():
    image = picture((40, 51))
    exact = average(PRIOR.posterior(extract(image, 7), 0.1).mean, image.shape, 7)
    assert np.abs(denoise_once(PRIOR, image, 0.101) - exact).max() > 1e-4


def test_without_noise_the_image_stays():
    image = picture((30, 30))
    np.testing.assert_allclose(denoise_once(PRIOR, image, 0.0), image, atol=1e-7)


def test_a_constant_image_stays_constant():
    # up to 1e-6 from the rounding of the zero-mean filters
    np.testing.assert_allclose(denoise_once(PRIOR, np.full((20, 25), 0.7), 0.2), 0.7, atol=1e-5)


def test_it_commutes_with_adding_a_constant():
    image = picture((30, 33))
    shifted = denoise_once(PRIOR, image + 0.25, 0.1)
    np.testing.assert_allclose(shifted, denoise_once(PRIOR, image, 0.1) + 0.25, atol=1e-5)


@pytest.mark.parametrize("move", [np.fliplr, np.flipud, np.transpose])
def test_it_commutes_with_the_symmetries_of_the_cosine_filters(move):
    image = picture((30, 33))
    moved = denoise_once(PRIOR, move(image), 0.1)
    np.testing.assert_allclose(moved, move(denoise_once(PRIOR, image, 0.1)), atol=1e-5)


def turned(prior, move):
    """The same prior with every filter moved."""
    filters = [move(k.reshape(7, 7)).ravel() for k in prior.filters.matrix]
    return PatchPrior(FilterBank(np.array(filters)), prior.experts)


MOVES = [np.fliplr, np.flipud, np.rot90]


@pytest.mark.parametrize("move", MOVES)
def test_moving_the_image_and_the_filters_moves_the_result(move):
    image, prior = picture((30, 33)), load("patch7")
    expected = move(denoise_once(prior, image, 0.1))
    np.testing.assert_allclose(denoise_once(turned(prior, move), move(image), 0.1), expected, atol=1e-6)


@pytest.mark.parametrize("move", MOVES)
def test_the_learnt_filters_are_nearly_symmetric_but_not_quite(move):
    image, prior = picture((60, 63)), load("patch7")
    error = denoise_once(prior, move(image), 0.1) - move(denoise_once(prior, image, 0.1))
    assert 1e-4 < np.sqrt(np.mean(error**2)) < 0.01  # a tenth of the noise


def noise_map(shape, lowest, highest):
    """Rising from left to right, with a step."""
    part = np.linspace(0, 1, shape[1]) * 0.7 + 0.3 * (np.arange(shape[0]) > shape[0] / 2)[:, None]
    return lowest * (highest / lowest) ** part


@pytest.mark.parametrize("prior", [PRIOR, load("patch7")], ids=["dct7", "patch7"])
@pytest.mark.parametrize(("lowest", "highest"), [(0.1, 0.1001), (0.1, 0.12), (0.02, 0.2), (1e-7, 0.3)])
def test_a_map_is_the_exact_posterior_mean_at_the_noise_level_of_each_patch(prior, lowest, highest):
    image = picture((40, 51))
    sigma = noise_map(image.shape, lowest, highest)
    levels = root_mean_squares(sigma, 7).ravel()
    exact = average(prior.posterior(extract(image, 7), levels).mean, image.shape, 7)
    # coarser tables than for one level, and straight lines between levels: about a hundredth of a grey level of 8 bits
    np.testing.assert_allclose(denoise_once(prior, image, sigma), exact, atol=5e-5)


def test_the_noise_level_of_a_patch_is_the_root_mean_square():
    sigma = np.random.default_rng(0).uniform(0.01, 0.3, (20, 33))
    expected = np.sqrt((extract(sigma, 7) ** 2).mean(axis=1))
    np.testing.assert_allclose(root_mean_squares(sigma, 7).ravel(), expected, rtol=1e-6)
    assert np.abs(extract(sigma, 7).mean(axis=1) - expected).max() > 0.01  # the mean is another number


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.4])
def test_a_constant_map_is_a_number(sigma):
    image = picture((40, 51))
    expected = denoise_once(PRIOR, image, sigma)
    np.testing.assert_allclose(denoise_once(PRIOR, image, np.full(image.shape, sigma)), expected, atol=1e-7)


def test_far_from_its_edge_a_map_of_two_levels_is_each_of_them():
    image = picture((60, 64))
    sigma = np.where(np.arange(64) < 32, 0.05, 0.2) * np.ones((60, 1))
    result = denoise_once(PRIOR, image, sigma)
    np.testing.assert_allclose(result[:, :20], denoise_once(PRIOR, image, 0.05)[:, :20], atol=5e-5)
    np.testing.assert_allclose(result[:, 44:], denoise_once(PRIOR, image, 0.2)[:, 44:], atol=5e-5)
    assert np.abs(result[:, :20] - denoise_once(PRIOR, image, 0.2)[:, :20]).max() > 0.01


def test_a_map_may_hold_zeros():
    image = picture((40, 51))
    sigma = np.where(np.arange(51) < 25, 0.0, 0.1) * np.ones((40, 1))
    result = denoise_once(PRIOR, image, sigma)
    np.testing.assert_allclose(result[:, :19], image[:, :19], atol=1e-5)
    np.testing.assert_allclose(result[:, 37:], denoise_once(PRIOR, image, 0.1)[:, 37:], atol=5e-5)


def test_levels_that_differ_by_rounding_alone_share_their_tables():
    image = picture((24, 26))
    first = denoise_once(PRIOR, image, 0.1234)
    made = response_tables.cache_info().misses
    np.testing.assert_array_equal(denoise_once(PRIOR, image, np.nextafter(0.1234, 1.0)), first)
    assert response_tables.cache_info().misses == made
    denoise_once(PRIOR, image, 0.1234 * (1.0 + 1e-9))
    assert response_tables.cache_info().misses == made + 1  # another level has its own
