"""One fast step of a whole image with a mixture of Gaussians, against the exact posterior means of all patches."""

from itertools import combinations

import numba
import numpy as np
import pytest
from skimage.data import camera
from synthetic import oriented_mixture

from examples import gaussian_mixture
from heatprior import load
from heatprior.data.trials import psnr
from heatprior.kernels import patches as bands
from heatprior.kernels.patches import average, extract
from heatprior.noise_value import Noise, as_noise, root_mean_squares
from heatprior.priors import mixture_step as mixture_averaging
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.mixture_step import NEGLIGIBLE, cells_of_mixture, step_of_mixture

PRIOR = oriented_mixture()
SHAPES = len(PRIOR.covariances)


def picture(shape, seed=0):
    """Smooth shades, an edge and noise."""
    rng = np.random.default_rng(seed)
    row, column = np.meshgrid(*(np.linspace(0, 3, n) for n in shape), indexing="ij")
    return 0.5 + 0.2 * np.sin(row + 2 * column) + 0.3 * (row > column) + 0.1 * rng.standard_normal(shape)


def fast(prior, image, sigma, **options):
    """The image after one step."""
    image = np.ascontiguousarray(image, np.float32)
    noise = sigma if isinstance(sigma, Noise) else as_noise(sigma)
    return step_of_mixture(prior, image, noise, **options)


def exact(prior, image, sigma):
    """The average of the exact posterior means, over all shapes."""
    levels = sigma if np.ndim(sigma) == 0 else root_mean_squares(sigma, prior.size).ravel()
    return average(prior.posterior(extract(image, prior.size), levels).mean, image.shape, prior.size)


@pytest.mark.parametrize("sigma", [1e-3, 0.02, 0.1, 0.4])
@pytest.mark.parametrize(
    "prior",
    [gaussian_mixture(8, 1, (0.25, 1.0, 4.0)), gaussian_mixture(3, 1, seed=1), gaussian_mixture(2, 1, seed=2)],
    ids=["three contrasts on 8×8", "3×3", "2×2"],
)
def test_with_one_shape_it_is_the_exact_posterior_mean(prior, sigma):
    image = picture((40, 51))
    np.testing.assert_allclose(fast(prior, image, sigma, negligible=0.0), exact(prior, image, sigma), atol=1e-5)
    if sigma >= 0.02:
        assert np.abs(fast(prior, image, sigma) - exact(prior, image, 1.05 * sigma)).max() > 5e-5


def test_contrasts_may_come_in_any_order():
    other = GaussianMixturePrior(PRIOR.covariances, PRIOR.log_weights[:, ::-1], PRIOR.contrasts[::-1])
    image = picture((30, 30))
    np.testing.assert_allclose(fast(other, image, 0.1), fast(PRIOR, image, 0.1), atol=1e-6)


@pytest.mark.parametrize("kept", [1, 5, 20, 40])
def test_axes_that_are_left_out_would_have_kept_little(kept):
    """Few enough axes for the tables to be narrower than the patch; each left out keeps less than 3 % of a response."""
    sigma = 0.1
    variances = np.where(np.arange(63) < kept, 0.05, 0.99 * NEGLIGIBLE * sigma**2)
    prior, image = GaussianMixturePrior(np.diag(variances)[None], np.zeros((1, 1))), picture((30, 30))
    error = np.abs(fast(prior, image, sigma) - exact(prior, image, sigma)).max()
    patches = extract(image, 8)
    assert 0.0 < error < NEGLIGIBLE * np.linalg.norm(patches - patches.mean(axis=1, keepdims=True), axis=1).max()
    np.testing.assert_allclose(fast(prior, image, sigma, negligible=0.0), exact(prior, image, sigma), atol=1e-5)


def test_the_best_shape_alone_is_nearly_the_mean_over_all():
    sigma = 0.05
    image = picture((60, 70))
    step = np.sqrt(np.mean((exact(PRIOR, image, sigma) - image) ** 2))
    error = np.sqrt(np.mean((fast(PRIOR, image, sigma) - exact(PRIOR, image, sigma)) ** 2))
    one = GaussianMixturePrior(PRIOR.covariances[:1], PRIOR.log_weights[:1], PRIOR.contrasts)
    assert error < 0.1 * step < np.sqrt(np.mean((fast(one, image, sigma) - exact(PRIOR, image, sigma)) ** 2))


@pytest.mark.parametrize("sigma", [15 / 255, 50 / 255])
def test_the_short_cuts_cost_the_shipped_mixture_no_quality_that_counts(sigma):
    """On a natural image; one shape alone costs ten times as much as all of them are allowed to."""
    prior, clean = load("mixture"), camera()[100:196, 180:276] / 255
    noisy = clean + sigma * np.random.default_rng(0).standard_normal(clean.shape)
    reached, best = (psnr(step(prior, noisy, sigma), clean) for step in (fast, exact))
    assert reached > best - 0.05
    common = int(np.argmax(np.exp(prior.log_weights).sum(axis=1)))
    one = GaussianMixturePrior(prior.covariances[[common]], prior.log_weights[[common]], prior.contrasts)
    assert psnr(fast(one, noisy, sigma), clean) < best - 0.5


@pytest.mark.parametrize("sigma", [0.0, 1e-7, 1e-5])
def test_without_noise_the_image_stays(sigma):
    image = picture((30, 30))
    np.testing.assert_allclose(fast(PRIOR, image, sigma), image, atol=1e-5)
    assert np.abs(fast(PRIOR, image, 0.05) - image).max() > 0.01


@pytest.mark.parametrize("sigma", [1e-3, 0.2, 3.0])
def test_a_constant_image_stays_constant(sigma):
    np.testing.assert_allclose(fast(PRIOR, np.full((20, 25), 0.7), sigma), 0.7, atol=1e-6)


def test_it_commutes_with_adding_a_constant():
    image = picture((30, 33))
    np.testing.assert_allclose(fast(PRIOR, image + 0.25, 0.1), fast(PRIOR, image, 0.1) + 0.25, atol=1e-5)


def test_neither_tiles_nor_bands_matter_if_all_shapes_are_compared(monkeypatch):
    image = picture((50, 90))
    whole = fast(PRIOR, image, 0.1, candidates=SHAPES)
    monkeypatch.setattr(mixture_averaging, "TILE", 17)
    np.testing.assert_allclose(fast(PRIOR, image, 0.1, candidates=SHAPES), whole, atol=1e-6)
    monkeypatch.setattr(bands, "BAND", 7)
    np.testing.assert_allclose(fast(PRIOR, image, 0.1, candidates=SHAPES), whole, atol=1e-6)


def test_with_few_candidates_tiles_matter_only_where_they_end(monkeypatch):
    """The last patches of a tile do not see the grid of the next."""
    image = picture((28, 60))
    whole = fast(PRIOR, image, 0.1, candidates=1)
    monkeypatch.setattr(mixture_averaging, "TILE", 30)
    change = np.abs(fast(PRIOR, image, 0.1, candidates=1) - whole).max(axis=0)
    at_edge = slice(29, 29 + PRIOR.size)
    assert change[at_edge].max() > 1e-4
    change[at_edge] = 0.0
    assert change.max() < 1e-6


@pytest.mark.parametrize("width", [8, 519, 600, 647, 648, 1000, 1159, 1160, 5000])
def test_no_tile_is_narrow_and_pieces_of_whole_tiles_have_the_same(width):
    """A tile of a few columns costs nearly as much as one of many."""
    tile, columns = mixture_averaging.TILE, cells_of_mixture(PRIOR, (64, width)).columns
    widths = np.diff(columns)
    assert widths.sum() == width - PRIOR.size + 1
    assert (widths[:-1] == tile).all()
    assert widths[-1] <= 1.25 * tile
    assert len(widths) == 1 or widths[-1] > 0.25 * tile
    for left, right in combinations(columns, 2):
        of_piece = cells_of_mixture(PRIOR, (64, right - left + PRIOR.size - 1)).columns
        np.testing.assert_array_equal(of_piece + left, columns[(columns >= left) & (columns <= right)])


@pytest.mark.parametrize("is_map", [False, True])
def test_the_number_of_threads_changes_no_bit(is_map):
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("one thread only")
    image = picture((5 * bands.BAND + 3, 60))
    sigma = np.linspace(0.05, 0.2, 60) * np.ones((len(image), 1)) if is_map else 0.1
    results = []
    try:
        for threads in (1, 2, 2):
            numba.set_num_threads(threads)
            results.append(fast(PRIOR, image, sigma))
    finally:
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[1], results[2])


def test_a_map_of_nearly_one_level_is_that_level():
    image = picture((40, 51))
    expected = fast(PRIOR, image, 0.1)
    np.testing.assert_array_equal(fast(PRIOR, image, np.full(image.shape, 0.1)), expected)
    nearly = 0.1 + 1e-5 * np.linspace(-1, 1, 51) * np.ones((40, 1))
    np.testing.assert_allclose(fast(PRIOR, image, nearly), expected, atol=5e-5)


def test_far_from_its_edge_a_map_of_two_levels_is_each_of_them():
    image = picture((60, 64))
    sigma = np.where(np.arange(64) < 32, 0.05, 0.2) * np.ones((60, 1))
    result = fast(PRIOR, image, sigma, negligible=0.0)
    for columns, level in [(slice(0, 26), 0.05), (slice(38, 64), 0.2)]:
        expected = fast(PRIOR, image, level, negligible=0.0)
        np.testing.assert_allclose(result[:, columns], expected[:, columns], atol=1e-5)
    assert np.abs(result[:, :26] - fast(PRIOR, image, 0.2)[:, :26]).max() > 0.01


@pytest.mark.parametrize(("lowest", "highest"), [(0.1, 0.12), (0.02, 0.3), (1e-7, 0.3)])
def test_a_map_is_the_posterior_mean_at_the_noise_level_of_each_patch(lowest, highest):
    prior, image = gaussian_mixture(4, 1, (0.25, 1.0, 4.0)), picture((40, 51))
    sigma = lowest * (highest / lowest) ** np.linspace(0, 1, 51) * np.ones((40, 1))
    # noise levels are rounded to steps of at most 3 %, the noise being at most 6 % off in variance
    step = np.abs(exact(prior, image, 1.03 * sigma) - exact(prior, image, sigma)).max()
    error = np.abs(fast(prior, image, sigma) - exact(prior, image, sigma)).max()
    assert error < 1e-5 + step
    assert np.abs(fast(prior, image, sigma[:, ::-1].copy()) - exact(prior, image, sigma)).max() > 3 * step


def test_a_map_may_hold_zeros():
    image = picture((40, 51))
    sigma = np.where(np.arange(51) < 25, 0.0, 0.1) * np.ones((40, 1))
    result = fast(PRIOR, image, sigma, negligible=0.0)
    np.testing.assert_allclose(result[:, :21], image[:, :21], atol=1e-5)
    np.testing.assert_allclose(result[:, 30:], fast(PRIOR, image, 0.1, negligible=0.0)[:, 30:], atol=1e-5)


def test_values_beyond_the_range_of_a_map_are_taken_for_its_ends():
    image, sigma = picture((30, 40)), np.linspace(0.01, 0.5, 40) * np.ones((30, 1))
    narrow = Noise(sigma.__getitem__, 0.1, 0.2)
    clipped = Noise(np.clip(sigma, 0.1, 0.2).__getitem__, 0.1, 0.2)
    ends = fast(PRIOR, image, narrow)
    # patches in between have other shapes, so that products have other rows, and may round otherwise
    np.testing.assert_allclose(ends[:, :4], fast(PRIOR, image, clipped)[:, :4], atol=1e-6)
    np.testing.assert_allclose(ends[:, -10:], fast(PRIOR, image, clipped)[:, -10:], atol=1e-6)
