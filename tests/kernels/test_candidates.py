"""The candidates of patches against their plain twins."""

import numpy as np
import pytest

from examples import gaussian_mixture
from heatprior.kernels.candidates import (
    SIMILAR,
    TOGETHER,
    candidates_on_grid,
    candidates_on_grid_plain,
    cut_centred_patches,
    list_by_shape,
    list_by_shape_plain,
)
from heatprior.kernels.patches import Grid, extract
from heatprior.priors.mixture_step import shape_tables

PRIORS = {
    shapes: gaussian_mixture(4, shapes, (0.2, 1.0, 5.0), seed=3, narrowest=0.02) for shapes in (6, 2 * TOGETHER + 3)
}
SIZE, ROWS, COLUMNS = 4, 7, 21
SIGMAS = tuple(0.05 * 1.3**level for level in range(12))


def noisy_tile():
    rng = np.random.default_rng(0)
    shape = (ROWS + SIZE - 1, COLUMNS + SIZE - 1)
    return (np.cumsum(rng.standard_normal(shape), axis=1) / 10 + 0.2 * rng.standard_normal(shape)).astype(np.float32)


@pytest.mark.parametrize("is_map", [False, True])
@pytest.mark.parametrize("candidates", [1, 3])
@pytest.mark.parametrize("shapes", PRIORS)
def test_candidates_are_those_of_the_twin(shapes, candidates, is_map):
    tile, tables = noisy_tile(), shape_tables(PRIORS[shapes], SIGMAS)
    apart = (SIMILAR + 1) * (np.arange(COLUMNS) // 6)  # no two levels that the kernel would take for one
    levels = np.broadcast_to(apart if is_map else 4, (ROWS, COLUMNS)).astype(np.int32)
    places = np.arange(ROWS), np.arange(COLUMNS)
    centred = cut_centred_patches(tile, places, SIZE)
    found = candidates_on_grid(centred, ROWS, levels if is_map else levels[:1, :1], tables, candidates)
    patches = extract(tile, SIZE).reshape(ROWS, COLUMNS, -1)
    expected = candidates_on_grid_plain(patches, levels, tables, candidates)
    assert found.shape == expected.shape
    assert (found == expected).mean() > 0.99  # in float32 two shapes may be equally good
    other = candidates_on_grid_plain(patches, (levels + 5) % len(SIGMAS), tables, candidates)
    assert (found == other).mean() < 0.95  # the noise level does count


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (4, 5), (7, 6)])
def test_every_patch_is_listed_with_the_candidates_of_its_neighbours_on_the_grid(rows, columns):
    best = np.random.default_rng(1).integers(0, 5, (-(-rows // 2), -(-columns // 2), 2)).astype(np.int32)
    firsts, listed = list_by_shape(best, rows, columns, 5)
    found = [listed[firsts[k] : firsts[k + 1]].tolist() for k in range(5)]
    assert found == list_by_shape_plain(best, rows, columns, 5)
    assert sorted({number for numbers in found for number in numbers}) == list(range(rows * columns))


@pytest.mark.parametrize("grid", [Grid(), Grid(2, 1), Grid(3, 0)])
def test_centred_patches_are_those_on_the_grid_without_their_mean(grid):
    tile = noisy_tile()
    found = cut_centred_patches(tile, grid.places(tile.shape, SIZE), SIZE)
    expected = extract(tile, SIZE, grid)
    np.testing.assert_allclose(found, expected - expected.mean(axis=1, keepdims=True), atol=1e-6)
    assert np.abs(found - expected).max() > 0.1
