"""Steps over the patches of a grid, against plain numpy over the same patches."""

import numba
import numpy as np
import pytest

from examples import gaussian_mixture, patch_prior
from heatprior.kernels import patches as row_bands
from heatprior.kernels.patches import EVERY, Grid, average, extract
from heatprior.noise_value import as_noise, root_mean_squares
from heatprior.priors import mixture_step
from heatprior.priors.protocol import complete

ONE_SHAPE = gaussian_mixture(4, 1, (0.25, 1.0, 4.0))  # whose fast step is the exact posterior mean
PATCH = patch_prior(4, 15, 9)
GRIDS = [EVERY, Grid(2), Grid(2, 1), Grid(3, 1)]


class Hidden:
    """A prior of no kind that the library knows."""

    def __init__(self, prior):
        self.log_prob, self.score, self.sample = prior.log_prob, prior.score, prior.sample


PRIORS = {"mixture": ONE_SHAPE, "patch": PATCH, "any other": Hidden(ONE_SHAPE)}


def picture(shape, seed=0):
    rng = np.random.default_rng(seed)
    row, column = np.meshgrid(*(np.linspace(0, 3, n) for n in shape), indexing="ij")
    clean = 0.5 + 0.2 * np.sin(row + 2 * column) + 0.3 * (row > column)
    return (clean + 0.1 * rng.standard_normal(shape)).astype(np.float32)


def step(prior, image, sigma, grid):
    return complete(prior).denoise_step(image, as_noise(sigma), grid=grid)


def plain(prior, image, sigma, grid):
    levels = sigma
    if np.ndim(sigma):
        of_patches = root_mean_squares(sigma, 4)
        levels = of_patches[np.ix_(*(grid.starts(length, 4) for length in image.shape))].ravel()
    patches = extract(image.astype(np.float64), 4, grid)
    noise = np.broadcast_to(levels, len(patches))[:, None] ** 2
    return average(patches + noise * prior.score(patches, levels), image.shape, 4, grid)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("shape", [(4, 4), (5, 30), (75, 42)])
def test_a_step_is_the_plain_average_over_the_patches_of_the_grid(name, grid, shape):
    prior, image = PRIORS[name], picture(shape)
    expected = plain(prior, image, 0.1, grid)
    # the tables of a patch prior are right to about 1e-5, the mixture leaves out axes that keep less than 3 %
    error = np.abs(step(prior, image, 0.1, grid) - expected).max()
    assert error < (2e-3 if name == "mixture" else 5e-5)
    if shape == (75, 42):
        other = Grid(2) if grid == EVERY else EVERY
        assert np.abs(plain(prior, image, 0.1, other) - expected).max() > 4 * error


@pytest.mark.parametrize("name", PRIORS)
def test_a_map_gives_every_patch_of_the_grid_its_own_noise_level(name):
    prior, image, grid = PRIORS[name], picture((40, 51)), Grid(2, 1)
    sigma = 0.05 * 4.0 ** np.linspace(0, 1, 51) * np.ones((40, 1))
    expected = plain(prior, image, sigma, grid)
    error = np.abs(step(prior, image, sigma, grid) - expected).max()
    # noise levels of a mixture are rounded to steps of 3 %
    assert error < np.abs(plain(prior, image, 1.03 * sigma, grid) - expected).max() + 2e-3
    assert np.abs(step(prior, image, sigma[:, ::-1].copy(), grid) - expected).max() > 4 * error


@pytest.mark.parametrize("name", ["mixture", "patch"])
def test_threads_change_no_bit_and_bands_nothing_but_rounding(name, monkeypatch):
    prior, image, grid = PRIORS[name], picture((5 * row_bands.BAND + 3, 60)), Grid(2, 1)
    results = []
    try:
        for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
            numba.set_num_threads(threads)
            results.append(step(prior, image, 0.1, grid))
    finally:
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    np.testing.assert_array_equal(*results)
    monkeypatch.setattr(mixture_step, "TILE", 17)
    monkeypatch.setattr(row_bands, "BAND", 5)
    np.testing.assert_allclose(step(prior, image, 0.1, grid), results[0], atol=1e-6)


def test_a_band_without_a_row_of_the_grid_changes_nothing(monkeypatch):
    monkeypatch.setattr(row_bands, "BAND", 1)  # bands are then as high as a patch
    image, grid = picture((21, 16)), Grid(4, 3)
    for prior in (ONE_SHAPE, PATCH):
        expected = plain(prior, image, 0.1, grid)
        np.testing.assert_allclose(step(prior, image, 0.1, grid), expected, atol=2e-3)
