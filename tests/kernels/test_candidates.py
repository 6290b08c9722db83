"""The candidates of patches against their plain twins."""

import numpy as np
import pytest

from examples import gaussian_mixture
from heatprior.kernels import candidates as module
from heatprior.kernels.candidates import (
    KEPT,
    SIMILAR,
    candidates_on_grid,
    candidates_plain,
    listed_by_shape,
    listed_by_shape_plain,
)
from heatprior.kernels.patches import extract
from heatprior.priors.mixture_step import shape_tables

FEW = gaussian_mixture(4, 6, (0.2, 1.0, 5.0), seed=3, narrowest=0.02)
MANY = gaussian_mixture(4, 2 * KEPT, (0.2, 1.0, 5.0), seed=4, narrowest=0.02)
SIZE, ROWS, COLUMNS = 4, 7, 21
SIGMAS = tuple(0.05 * 1.3**level for level in range(12))


def noisy_tile():
    rng = np.random.default_rng(0)
    shape = (ROWS + SIZE - 1, COLUMNS + SIZE - 1)
    return (np.cumsum(rng.standard_normal(shape), axis=1) / 10 + 0.2 * rng.standard_normal(shape)).astype(np.float32)


@pytest.mark.parametrize("prior", [FEW, MANY], ids=["few shapes", "many"])
@pytest.mark.parametrize("apart", [1, 2])
@pytest.mark.parametrize("is_map", [False, True])
@pytest.mark.parametrize("candidates", [1, 3])
def test_candidates_are_those_of_the_twin(prior, candidates, is_map, apart):
    tables = shape_tables(prior, SIGMAS)
    by_column = (SIMILAR + 1) * (np.arange(COLUMNS) // 6)  # no two levels that the kernel would take for one
    levels = np.broadcast_to(by_column if is_map else 4, (ROWS, COLUMNS)).astype(np.int32)
    patches = extract(noisy_tile(), SIZE)
    patches = (patches - patches.mean(axis=1, keepdims=True)).astype(np.float32)
    found = candidates_on_grid(patches, COLUMNS, levels if is_map else levels[:1, :1], tables, candidates, apart)
    on_grid = patches.reshape(ROWS, COLUMNS, -1)[::apart, ::apart]
    own = levels[::apart, ::apart].ravel()
    expected = candidates_plain(on_grid.reshape(len(own), -1), own, tables, candidates, apart)
    assert found.shape == (*on_grid.shape[:2], candidates)
    same = found.reshape(expected.shape) == expected
    # in float32 two shapes may be equally good; of many, how many are kept is found to an eighth of a nat
    assert same.mean() > (0.99 if prior is FEW else 0.97)
    other = candidates_plain(on_grid.reshape(len(own), -1), (own + 5) % len(SIGMAS), tables, candidates, apart)
    assert (found.reshape(expected.shape) == other).mean() < same.mean() - 0.03  # the noise level does count


def test_the_first_look_keeps_no_more_than_asked_and_the_best():
    values = np.random.default_rng(0).standard_normal((50, 200)).astype(np.float32)
    least = np.zeros(200, np.float32)
    module._least_of_kept(values, 8, least)
    kept = (values >= least).sum(axis=0)
    assert kept.max() <= 8
    assert kept.min() >= 1
    assert kept.mean() > 5  # to an eighth of a nat
    assert (values.max(axis=0) >= least).all()


@pytest.mark.parametrize("apart", [1, 2])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (4, 5), (7, 6)])
def test_every_patch_is_listed_with_the_candidates_of_its_neighbours_on_the_grid(rows, columns, apart):
    best = np.random.default_rng(1).integers(0, 5, (-(-rows // apart), -(-columns // apart), 2)).astype(np.int32)
    firsts, listed = listed_by_shape(best, rows, columns, 5, apart)
    found = [listed[firsts[k] : firsts[k + 1]].tolist() for k in range(5)]
    assert found == listed_by_shape_plain(best, rows, columns, 5, apart)
    assert sorted({number for numbers in found for number in numbers}) == list(range(rows * columns))
