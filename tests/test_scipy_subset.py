"""Compiled parts of scipy, alone: scipy is none the worse for it."""

import subprocess
import sys

import pytest

from heatprior import scipy_subset


def test_a_part_that_is_not_there_is_an_import_error():
    with pytest.raises(ImportError):
        scipy_subset.extension("scipy.fft.no_such_part")


def test_scipy_goes_on_with_the_parts_that_are_there():
    script = """
import sys
from heatprior.scipy_subset import extension
blas = extension("scipy.linalg.cython_blas")
import numpy as np
assert "scipy.linalg" not in sys.modules
import scipy.linalg, scipy.sparse.linalg
from scipy.linalg import cython_blas
assert cython_blas is blas
assert abs(scipy.linalg.det(2.0 * np.eye(4)) - 16.0) < 1e-12
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)
