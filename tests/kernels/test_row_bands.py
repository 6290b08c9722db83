"""Averages over overlapping patches, added up band by band."""

from itertools import pairwise

import numpy as np
import pytest

from heatprior.kernels.patches import BAND, average, average_by_bands, edges_of_bands


def collect(patches, shape, size, **options):
    """The average of patches (..., (H − size + 1)(W − size + 1), size²), by bands."""
    grid = patches.reshape(*patches.shape[:-2], shape[0] - size + 1, shape[1] - size + 1, size, size)

    def sum_of_changes(band):
        start, end = band.start, band.stop
        total = np.zeros((*patches.shape[:-2], end - start + size - 1, shape[1]), np.float32)
        for row in range(start, end):
            for column in range(grid.shape[-3]):
                total[..., row - start : row - start + size, column : column + size] += grid[..., row, column, :, :]
        return total

    return average_by_bands(np.zeros(shape, np.float32), size, sum_of_changes, **options)


@pytest.mark.parametrize(
    ("height", "size"), [(7, 7), (8, 7), (BAND + 6, 7), (BAND + 7, 7), (2 * BAND + 1, 2), (7 * BAND + 3, 7), (90, 40)]
)
@pytest.mark.parametrize("at_once", [1, 16])
@pytest.mark.parametrize("stretch", [1, 3])
def test_bands_give_the_average_over_all_patches(height, size, at_once, stretch):
    shape = (height, size + 5)
    patches = np.random.default_rng(height).normal(size=((height - size + 1) * 6, size * size))
    found = collect(patches, shape, size, at_once=at_once, stretch=stretch)
    np.testing.assert_allclose(found, average(patches, shape, size), atol=1e-6)


@pytest.mark.parametrize("stretch", [1, 2])
def test_bands_begin_where_their_edges_say(stretch):
    begun = []

    def sum_of_changes(band):
        begun.append((band.start, band.stop))
        return np.zeros((len(band) + 6, 9), np.float32)

    average_by_bands(np.zeros((5 * BAND + 3, 9), np.float32), 7, sum_of_changes, stretch=stretch)
    edges = edges_of_bands(5 * BAND + 3, 7, stretch)
    assert sorted(begun) == list(pairwise(edges))
    assert edges[1] == stretch * BAND


def test_patches_may_count_differently():
    shape, size = (2 * BAND + 5, 12), 7
    rng = np.random.default_rng(0)
    patches = rng.normal(size=((shape[0] - 6) * 6, 49))
    weights = rng.uniform(0.5, 2.0, patches.shape)
    whole = [average(values, shape, size) for values in (weights * patches, weights)]
    found = collect(np.stack([weights * patches, weights]), shape, size)
    np.testing.assert_allclose(found, whole[0] / whole[1], atol=1e-5)
    assert np.abs(found - average(patches, shape, size)).max() > 0.01


def test_a_band_that_is_not_carried_over_is_noticed():
    shape, size = (BAND + 20, 12), 7
    patches = np.random.default_rng(0).normal(size=((BAND + 14) * 6, 49))
    wrong = collect(patches[: BAND * 6], (BAND + 6, 12), size)
    assert np.abs(collect(patches, shape, size)[: BAND + 6] - wrong).max() > 0.1


def test_progress_rises_to_one():
    told = []
    collect(np.zeros(((5 * BAND - 2) * 2, 9)), (5 * BAND, 4), 3, progress=told.append, at_once=2)
    assert told == sorted(told)
    assert len(told) == 3
    assert told[-1] == 1.0
