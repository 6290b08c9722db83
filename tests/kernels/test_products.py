"""A product that is added to what is there."""

import numpy as np
import pytest

from heatprior.kernels.products import add_product


@pytest.mark.parametrize("shape", [(1, 1, 1), (48, 49, 352), (49, 48, 17), (3, 200, 5)])
def test_the_product_is_added(shape):
    rows, inner, columns = shape
    rng = np.random.default_rng(rows)
    a, b, total = (
        rng.normal(size=size).astype(np.float32) for size in ((rows, inner), (inner, columns), (rows, columns))
    )
    expected = total.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64)
    add_product(a, b, total)
    np.testing.assert_allclose(total, expected, atol=2e-5)
    assert np.abs(total - a @ b).max() > 1e-3  # what was there counts


def test_shapes_that_do_not_match_are_refused():
    square = np.zeros((3, 3), np.float32)
    for a, b, total in ((square[:, :2], square, square), (square, square, square[:2])):
        with pytest.raises(ValueError, match="do not match"):
            add_product(np.ascontiguousarray(a), b, np.ascontiguousarray(total))
