"""The fused kernel of denoising against its twin, which cuts every patch."""

import numba
import numpy as np
import pytest

from heatprior.kernels.patch_averaging import BAND, RUN, ResponseTables, average_changes, average_changes_plain
from heatprior.priors.filters import FilterBank


def tables(count, nodes, rng):
    half = rng.uniform(0.5, 2.0, count)
    values = rng.normal(size=(count, nodes))
    return ResponseTables(*(x.astype(np.float32) for x in (values, -half, (nodes - 1) / (2 * half))))


@pytest.mark.parametrize("size", [2, 3, 7])
@pytest.mark.parametrize(
    "shape", [(7, 7), (8, 30), (BAND + 9, 7), (2 * BAND + 6, RUN + 6), (3 * BAND + 11, 2 * RUN + 7)]
)
def test_the_kernel_is_its_twin(size, shape):
    rng = np.random.default_rng(sum(shape) + size)
    image = rng.normal(size=shape)
    filters = FilterBank.dct(size).matrix
    given = tables(len(filters), 65, rng)
    expected = average_changes_plain(image.astype(np.float32).astype(np.float64), filters, given)
    # roundings of float32 in the products, through slopes of the tables of up to about 100
    np.testing.assert_allclose(average_changes(image, filters, given), expected, atol=2e-4)


def test_a_patch_that_is_forgotten_is_noticed():
    rng = np.random.default_rng(0)
    image, filters = rng.normal(size=(12, 12)), FilterBank.dct(3).matrix
    given = tables(len(filters), 65, rng)
    wrong = average_changes_plain(image[:-1], filters, given)
    assert np.abs(average_changes(image, filters, given)[:-1] - wrong).max() > 1e-2


def test_the_number_of_threads_changes_no_bit():
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("one thread only")
    rng = np.random.default_rng(1)
    image, filters = rng.normal(size=(5 * BAND + 3, 300)), FilterBank.dct(5).matrix
    given = tables(len(filters), 65, rng)
    results = []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        results.append(average_changes(image, filters, given))
    np.testing.assert_array_equal(*results)


def test_tables_are_straight_beyond_their_ends():
    filters = np.array([[0.5, 0.5, 0.5, 0.5]])
    given = ResponseTables(np.array([[1.0, 0.0, 1.0]], np.float32), np.float32([-1.0]), np.float32([1.0]))
    image = np.full((2, 2), 5.0)  # the response is 10, the table |u|
    np.testing.assert_allclose(average_changes(image, filters, given), np.full((2, 2), 5.0))
