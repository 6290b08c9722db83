"""Patches on a grid: they reach every edge, and every pixel."""

import numpy as np
import pytest

from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import EVERY, Grid, average, extract

on_every_grid = pytest.mark.parametrize("grid", [EVERY, Grid(2), Grid(2, 1), Grid(3, 2)], ids=str)


@on_every_grid
@pytest.mark.parametrize(("length", "size"), [(7, 7), (8, 7), (9, 7), (30, 7), (31, 4), (5, 3)])
def test_every_pixel_is_in_as_many_patches_as_are_counted(grid, length, size):
    starts = grid.starts(length, size)
    count = np.zeros(length, int)
    for start in starts:
        count[start : start + size] += 1
    np.testing.assert_array_equal(grid.patches_that_hold(length, size), count)
    assert count.min() > 0
    assert (starts[0], starts[-1]) == (0, length - size)
    assert np.diff(starts).max(initial=0) <= grid.stride
    apart = np.diff(starts[starts <= (length - size) / 2])[1:]
    assert (apart[:-1] == grid.stride).all()  # but for those at the edge and in the middle
    assert len(starts) <= (length - size) // grid.stride + 5


@on_every_grid
@pytest.mark.parametrize("size", [4, 7])
def test_patches_of_a_turned_side_are_the_same_patches_turned(grid, size):
    for length in range(size, 40):
        starts = grid.starts(length, size)
        np.testing.assert_array_equal(length - size - starts[::-1], starts)


@pytest.mark.parametrize("grid", [Grid(8), Grid(0), Grid(2, 2), Grid(2, -1)])
def test_grids_that_miss_pixels_are_refused(grid):
    with pytest.raises(InvalidInputError, match="cover"):
        grid.starts(30, 7)


@on_every_grid
def test_averaging_is_the_left_inverse_of_cutting(grid):
    image = np.random.default_rng(0).normal(size=(20, 23))
    np.testing.assert_allclose(average(extract(image, 5, grid), (20, 23), 5, grid), image, rtol=1e-12)
