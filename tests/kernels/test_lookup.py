import numpy as np
import pytest

from heatprior.kernels.lookup import look_up, look_up_plain


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_kernel_is_its_twin_and_straight_beyond_the_ends(dtype):
    u = np.random.default_rng(0).uniform(-3.0, 3.0, (50, 20)).astype(dtype)
    table = np.sin(np.linspace(-2.0, 2.0, 33))
    expected = look_up_plain(u.astype(np.float64), table, 2.0)
    found = u.copy()
    look_up(found, table, 2.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 if dtype == np.float32 else 1e-12)
    inside = np.abs(u) < 2.0
    np.testing.assert_allclose(expected[inside], np.sin(u[inside]), rtol=0, atol=(4 / 32) ** 2 / 8)  # of straight lines
    slope = (table[-1] - table[-2]) / (4 / 32)
    beyond = u > 2.0
    np.testing.assert_allclose(expected[beyond], table[-1] + slope * (u[beyond] - 2.0), rtol=0, atol=1e-6)
