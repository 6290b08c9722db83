"""Images in xarrays keep their labels, in memory and in blocks."""

import numpy as np
import pytest

import heatprior as hp

dask = pytest.importorskip("dask")
pytest.importorskip("dask.array")
xarray = pytest.importorskip("xarray")

BYTES = np.random.default_rng(0).poisson(np.tile(np.linspace(20, 120, 40), (32, 1))).astype(np.uint8)
SETTINGS = {"quality": "fast"}
EXPECTED = hp.denoise(BYTES, 8, **SETTINGS)


def test_labels_of_xarray_are_kept():
    labelled = xarray.DataArray(BYTES, dims=("y", "x"), coords={"y": np.arange(32) / 10}, attrs={"unit": "e"}, name="n")
    result = hp.denoise(labelled, 8, **SETTINGS)
    assert (result.dims, result.attrs, result.name) == (labelled.dims, labelled.attrs, "n")
    np.testing.assert_array_equal(result.y, labelled.y)
    np.testing.assert_array_equal(result.data, EXPECTED)
    assert isinstance(hp.estimate_noise(labelled).sigma, np.ndarray)
    seen = hp.restore(labelled, hp.operators.Mask(BYTES > 30), 8)
    assert isinstance(seen, xarray.DataArray)
    larger = hp.restore(labelled, hp.operators.Downsample(2), 8)
    assert isinstance(larger, np.ndarray)
    with pytest.raises(hp.InvalidInputError, match="Dataset of xarray; give one DataArray of it"):
        hp.denoise(labelled.to_dataset(), 8)


def test_labels_of_an_xarray_in_blocks_are_kept():
    lazy = xarray.DataArray(dask.array.from_array(BYTES, chunks=16), dims=("y", "x"))
    result = hp.denoise(lazy, 8, white=255, **SETTINGS)
    assert result.chunks is not None
    np.testing.assert_array_equal(result.compute().data, hp.denoise(BYTES, 8, white=255, **SETTINGS))
