"""No index leaves its table, whatever comes: numbers are clamped as floats before they become indices."""

import subprocess
import sys

import numpy as np
import pytest

from heatprior.kernels.lookup import clamp, clamp_plain, look_up

ODD = [np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, 1e37, 2.0**31, -(2.0**31), 1e-45, -0.0, 4.5]
WHATEVER_COMES = """
import sys, warnings
from contextlib import suppress
import numpy as np
import heatprior as hp
from heatprior.border import pixels, scale

warnings.simplefilter("ignore")
pixels.LARGEST_GREY = scale.LARGEST_GREY = np.inf  # the border lets anything pass
image = np.random.default_rng(0).normal(0.5, 0.1, (40, 40)).astype(np.float32)
for value in (3.4e38, -3.4e38, 1e37, 1e30, 1e20):
    image[:2, :3] = value
    with np.errstate(all="ignore"):
        for prior in ("patch7", "mixture"):
            for sigma in (0.1, np.full(image.shape, 0.1) + np.linspace(0, 0.1, 40)):
                done = hp.denoise(image, sigma, prior=prior, steps=1, white=1.0)
                assert np.isfinite(done[20:]).all(), (prior, value)
        with suppress(hp.InvalidInputError):  # it may refuse, but not crash
            hp.estimate_noise(image, "constant")
print("alive")
"""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", ODD)
def test_a_clamped_number_is_in_its_range(value, dtype):
    result = clamp(dtype(value), dtype(0), dtype(7))
    assert 0 <= result <= 7
    assert result == clamp_plain(np.array(value, dtype), 0, 7)
    assert not np.isnan(np.minimum(np.maximum(dtype(value), 0), 7)) or np.isnan(value)  # numpy alone keeps NaN


def test_a_look_up_of_odd_numbers_reads_nothing_but_its_table():
    table = np.full(9, 2.0)
    found = np.array(ODD)
    with np.errstate(all="ignore"):
        look_up(found, table, 1.0)
    inside = np.isfinite(ODD)
    np.testing.assert_array_equal(found[inside], 2.0)  # a constant goes on as a constant, however far


def test_nothing_crashes_even_if_the_border_lets_anything_pass():
    """Pixels of 1e37 times full scale once ended the process."""
    done = subprocess.run([sys.executable, "-c", WHATEVER_COMES], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr[-2000:]
