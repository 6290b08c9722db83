"""Compiled parts of scipy, alone: the same results, and scipy is none the worse for it."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.fft import dctn, idctn

from heatprior import scipy_subset


@pytest.fixture(params=["alone", "by scipy.fft"])
def _either_way(request, monkeypatch):
    if request.param == "by scipy.fft":
        monkeypatch.setattr(scipy_subset, "_dct", lambda: None)


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (64, 33), (3, 8, 8)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cosine_transforms_are_those_of_scipy(shape, dtype):
    image = np.random.default_rng(0).normal(size=shape).astype(dtype)
    spectrum = scipy_subset.cosine_transform(image)
    assert spectrum.dtype == dtype
    tolerance = 20 * np.finfo(dtype).eps  # rounding, if ever they are not the same program
    np.testing.assert_allclose(spectrum, dctn(image, axes=(-2, -1), norm="ortho"), atol=tolerance)
    back = scipy_subset.inverse_cosine_transform(spectrum)
    np.testing.assert_allclose(back, image, atol=tolerance)
    np.testing.assert_allclose(back, idctn(spectrum, axes=(-2, -1), norm="ortho"), atol=tolerance)


@pytest.mark.parametrize(
    "other",
    [lambda *_: np.zeros((2, 3)), lambda x: x, None],  # other results, another signature, nothing of that name
)
def test_a_transform_that_is_not_what_it_was_is_not_used(monkeypatch, other):
    monkeypatch.setattr(scipy_subset, "extension", lambda _: type("Part", (), {"dct": other} if other else {}))
    assert scipy_subset._dct.__wrapped__() is None


def test_a_part_that_is_not_there_is_an_import_error():
    with pytest.raises(ImportError):
        scipy_subset.extension("scipy.fft.no_such_part")


def test_scipy_goes_on_with_the_parts_that_are_there():
    script = """
import sys
from heatprior.scipy_subset import cosine_transform, extension
blas = extension("scipy.linalg.cython_blas")
import numpy as np
cosine_transform(np.eye(4))
assert not {"scipy.linalg", "scipy.fft"} & set(sys.modules)
import scipy.fft, scipy.linalg, scipy.sparse.linalg
from scipy.linalg import cython_blas
assert cython_blas is blas
assert np.allclose(scipy.fft.dctn(np.eye(4), norm="ortho"), cosine_transform(np.eye(4)))
assert abs(scipy.linalg.det(2.0 * np.eye(4)) - 16.0) < 1e-12
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)
