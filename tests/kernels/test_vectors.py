"""The wish for wide vectors reaches the compiler, and changes no result."""

import numpy as np
from numba import njit

from heatprior.kernels.vectors import widest_vectors


@njit
def squares(x):
    widest_vectors()
    for i in range(x.size):
        x[i] = x[i] * x[i]


@njit
def squares_without_the_wish(x):
    for i in range(x.size):
        x[i] = x[i] * x[i]


def test_the_wish_reaches_the_compiler_and_changes_no_result():
    values = np.random.default_rng(0).standard_normal(1001)
    wide, narrow = values.copy(), values.copy()
    squares(wide)
    squares_without_the_wish(narrow)
    np.testing.assert_array_equal(wide, narrow)
    np.testing.assert_array_equal(wide, values**2)
    (told,), (untold,) = squares.inspect_llvm().values(), squares_without_the_wish.inspect_llvm().values()
    assert "prefer-vector-width" in told
    assert "prefer-vector-width" not in untold
