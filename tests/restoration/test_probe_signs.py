"""Signs to probe with: their shifted products cancel over a tile, and traces of denoisers are known better by them."""

import numpy as np
from scipy.ndimage import uniform_filter

from heatprior.restoration.error_bars import TILE, draw_signs, sign_tile


def autocorrelation(signs):
    """Sums of products with every shifted copy, around the edges: of the shape of `signs`."""
    return np.rint(np.fft.ifft2(np.abs(np.fft.fft2(signs)) ** 2).real)


def test_products_with_any_shifted_copy_cancel_but_for_one_and_those_of_random_signs_do_not():
    found = autocorrelation(2.0 * sign_tile() - 1.0).ravel()
    assert found[0] == TILE[0] * TILE[1]
    assert (found[1:] == -1).all()
    random = autocorrelation(np.random.default_rng(0).choice([-1.0, 1.0], TILE)).ravel()
    assert np.abs(random[1:]).max() > 100  # of 4,095, a standard deviation being 64


def test_every_image_begins_elsewhere_and_the_same_generator_gives_the_same():
    found = draw_signs((3, 100, 150), np.random.default_rng(0))
    assert found.shape == (3, 100, 150)
    assert 0.4 < np.mean(found[0] == found[1]) < 0.6
    np.testing.assert_array_equal(found, draw_signs((3, 100, 150), np.random.default_rng(0)))
    np.testing.assert_array_equal(found[:, : -TILE[0]], found[:, TILE[0] :])


def test_the_trace_of_a_filter_is_exact_over_whole_tiles():
    """The mean over 3×3 pixels, whose trace is a ninth; random signs are off by what their own products give."""
    shape = (2 * TILE[0], 3 * TILE[1])
    rng = np.random.default_rng(0)
    drawn = [[2.0 * draw_signs(shape, rng) - 1.0, rng.choice([-1.0, 1.0], shape)] for _ in range(8)]
    traces = np.array([[np.mean(n * uniform_filter(n, 3, mode="wrap")) for n in pair] for pair in drawn])
    whole = TILE[0] * TILE[1]
    np.testing.assert_allclose(traces[:, 0], 1 / 9 - 8 / 9 / whole, rtol=1e-9)
    assert np.std(traces[:, 1]) > 2.0 / whole
