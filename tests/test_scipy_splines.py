"""The spline at equal steps is scipy's, and so are the sums of exponentials."""

import numpy as np
import pytest
from scipy import special
from scipy.interpolate import CubicSpline

from heatprior.scipy_subset import log_softmax, log_sum_exp, refine, softmax


@pytest.mark.parametrize("count", [4, 5, 40])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_refined_values_lie_on_the_not_a_knot_spline(count, shape):
    values = np.random.default_rng(count).standard_normal((count, *shape))
    x = np.linspace(-1.0, 2.0, count)
    fine = np.linspace(-1.0, 2.0, 4 * (count - 1) + 1)
    np.testing.assert_allclose(refine(values, 4), CubicSpline(x, values)(fine), atol=1e-12)


def test_a_cubic_is_its_own_spline_and_a_quartic_is_not():
    x, fine = np.arange(8.0), np.linspace(0.0, 7.0, 36)
    np.testing.assert_allclose(refine(x**3 - x, 5), fine**3 - fine, atol=1e-10)
    assert np.abs(refine(x**4, 5) - fine**4).max() > 0.1


@pytest.mark.parametrize("axis", [None, 0, -1, (1, 2)])
def test_sums_of_exponentials_are_those_of_scipy(axis):
    logarithms = 400.0 * np.random.default_rng(0).standard_normal((3, 4, 5))
    logarithms[0, 0, 0] = -np.inf
    for own, other in (
        (log_sum_exp, special.logsumexp),
        (softmax, special.softmax),
        (log_softmax, special.log_softmax),
    ):
        np.testing.assert_allclose(own(logarithms, axis=axis), other(logarithms, axis=axis), rtol=1e-13, atol=1e-13)


def test_the_log_of_nothing_is_minus_infinity():
    assert log_sum_exp(np.array([-np.inf, -np.inf])) == -np.inf
    assert log_sum_exp(np.array([1e308, 1e308])) < np.inf
