"""The fused kernel of denoising against its twin, which cuts every patch."""

import numba
import numpy as np
import pytest

from heatprior.kernels.patch_averaging import LANES, RUN, ResponseTables, average_changes, average_changes_plain
from heatprior.kernels.patches import BAND
from heatprior.priors.filters import FilterBank


def tables(count, cells, levels, rng):
    """Random lines: slopes of up to about one cell's worth of value, jumps between cells."""
    lines = rng.normal(size=(count, levels, cells, 2)) / [1.0, cells]
    return ResponseTables(lines.astype(np.float32), 0.8, rng.uniform(2.0, 8.0, count), 0.05, 1.3)


def smooth_tables(count, levels, rng, cells=64):
    """v = sin(a q + s): continuous over cells, so that a rounding cannot choose another line."""
    q = np.arange(cells + 1) - cells / 2
    phase = np.arange(levels)[:, None] / 3
    values = np.sin(rng.uniform(3.2, 6.4, count)[:, None, None] / cells * q + phase)  # (J, levels, cells + 1)
    slopes = np.diff(values)
    lines = np.stack([values[..., :-1] - slopes * q[:-1], slopes], axis=-1).astype(np.float32)
    return ResponseTables(lines, 0.8, rng.uniform(2.0, 8.0, count), 0.05, 1.3)


def kernel(image, filters, given, sigma=None, **options):
    """The mean changes."""
    image = np.ascontiguousarray(image, np.float32)
    sigmas = None if sigma is None else lambda start, end: sigma[start:end]
    return average_changes(image, filters, given, sigmas=sigmas, **options) - image


SHAPES = [(7, 7), (8, 30), (BAND + 9, 7), (BAND + 6, RUN + 6), (2 * BAND + 11, 2 * RUN + 7)]


@pytest.mark.parametrize("size", [2, 3, 7])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_kernel_is_its_twin(size, shape):
    rng = np.random.default_rng(sum(shape) + size)
    image, filters = rng.normal(size=shape).astype(np.float32), FilterBank.dct(size).matrix
    given = smooth_tables(len(filters), 1, rng)
    expected = average_changes_plain(image.astype(np.float64), filters, given, given.lowest)
    # lines are packed: slopes, of up to 0.1 in a cell, are known to 1 in 2,000 of that
    np.testing.assert_allclose(kernel(image, filters, given), expected, atol=1e-4)


def test_fine_tables_lose_little_by_being_packed():
    rng = np.random.default_rng(4)
    image, filters = rng.normal(size=(60, 70)).astype(np.float32), FilterBank.dct(7).matrix
    for cells, error in ((64, 1e-4), (1024, 2e-5)):
        given = smooth_tables(len(filters), 1, rng, cells)
        expected = average_changes_plain(image.astype(np.float64), filters, given, given.lowest)
        np.testing.assert_allclose(kernel(image, filters, given), expected, atol=error)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_kernel_is_its_twin_for_one_noise_level_per_patch(shape):
    rng = np.random.default_rng(sum(shape))
    image, filters = rng.normal(size=shape).astype(np.float32), FilterBank.dct(3).matrix
    given = smooth_tables(len(filters), 5, rng)
    sigma = rng.uniform(0.03, 0.2, (shape[0] - 2, shape[1] - 2))  # from below the lowest level to above the highest
    expected = average_changes_plain(image.astype(np.float64), filters, given, sigma)
    np.testing.assert_allclose(kernel(image, filters, given, sigma), expected, atol=2e-5)
    shuffled = kernel(image, filters, given, sigma[::-1])
    assert np.abs(shuffled - expected).max() > 1e-3


def test_a_patch_that_is_forgotten_is_noticed():
    rng = np.random.default_rng(0)
    image, filters = rng.normal(size=(12, 12)), FilterBank.dct(3).matrix
    given = smooth_tables(len(filters), 1, rng)
    wrong = average_changes_plain(image[:-1], filters, given, given.lowest)
    assert np.abs(kernel(image, filters, given)[:-1] - wrong).max() > 1e-2


def test_the_length_of_runs_does_not_matter():
    rng = np.random.default_rng(2)
    image, filters = rng.normal(size=(40, 300)), FilterBank.dct(7).matrix
    given = smooth_tables(len(filters), 1, rng)
    whole = kernel(image, filters, given)
    for most in (LANES, 50, 129):
        np.testing.assert_allclose(kernel(image, filters, given, most=most), whole, atol=1e-6)


@pytest.mark.parametrize("levels", [1, 4])
def test_the_number_of_threads_changes_no_bit(levels):
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("one thread only")
    rng = np.random.default_rng(1)
    image, filters = rng.normal(size=(5 * BAND + 3, 300)), FilterBank.dct(5).matrix
    given = tables(len(filters), 65, levels, rng)
    sigma = rng.uniform(0.05, 0.1, (5 * BAND - 1, 296)) if levels > 1 else None
    results = []
    try:
        for threads in (1, 2, 2):
            numba.set_num_threads(threads)
            results.append(kernel(image, filters, given, sigma))
    finally:
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[1], results[2])


def test_the_image_stays_as_it_is():
    rng = np.random.default_rng(3)
    image, filters = rng.normal(size=(20 * BAND + 3, 40)).astype(np.float32), FilterBank.dct(5).matrix
    before = image.copy()
    result = average_changes(image, filters, smooth_tables(len(filters), 1, rng))
    np.testing.assert_array_equal(image, before)
    assert not np.shares_memory(result, image)


def test_lines_go_on_beyond_the_ends():
    filters = np.array([[0.5, 0.5, 0.5, 0.5]])
    lines = np.array([[[[0.0, -1.0], [0.0, 1.0]]]], np.float32)  # two cells: |q|, q = u / reach
    given = ResponseTables(lines, 2.0, np.zeros(1), 0.1, 2.0)
    for grey in (5.0, -5.0):  # the response is ±10
        np.testing.assert_allclose(kernel(np.full((2, 2), grey), filters, given), np.full((2, 2), 2.5))
