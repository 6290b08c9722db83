"""Pixels that a file says are none are NaN, or in a mask, and are written as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from round_trip import noise

import heatprior as hp
from heatprior.images import read_image, write_image
from heatprior.images.model import find_missing

LOWEST = "-3.40282346600000016e+38"  # as GDAL writes the least float


def save(path: Path, pixels: np.ndarray, nodata: str) -> None:
    tifffile.imwrite(path, pixels, extratags=[(42113, "s", None, nodata, True)], metadata=None)


@pytest.mark.parametrize("nodata", ["-9999", LOWEST, "nan", "0"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nodata_among_floats_is_nan_and_comes_back(tmp_path: Path, nodata: str, dtype: str):
    pixels = noise((9, 8), dtype) + 1
    pixels[2:4, 3] = np.dtype(dtype).type(nodata)
    save(tmp_path / "image.tif", pixels, nodata)
    image = read_image(tmp_path / "image.tif")
    hole = np.zeros((9, 8), bool)
    hole[2:4, 3] = True
    np.testing.assert_array_equal(np.isnan(image.pixels), hole)
    write_image(tmp_path / "new.tif", image.pixels + 1, like=image)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "new.tif"), np.where(hole, pixels, pixels + 1))
    write_image(tmp_path / "new.npy", image.pixels, like=image)  # which does not know that value
    np.testing.assert_array_equal(np.load(tmp_path / "new.npy"), np.where(hole, np.nan, pixels))


@pytest.mark.parametrize("suffix", ["tif", "npy"])
def test_infinities_are_nan_and_come_back(tmp_path: Path, suffix: str):
    pixels = noise((9, 8), "float32")
    pixels[1, 2], pixels[3, 4], pixels[5, 6] = np.inf, -np.inf, np.nan
    path = tmp_path / f"image.{suffix}"
    tifffile.imwrite(path, pixels) if suffix == "tif" else np.save(path, pixels)
    image = read_image(path)
    np.testing.assert_array_equal(np.isnan(image.pixels), ~np.isfinite(pixels))
    write_image(tmp_path / f"new.{suffix}", image.pixels, like=image)
    new = tifffile.imread(tmp_path / "new.tif") if suffix == "tif" else np.load(tmp_path / "new.npy")
    np.testing.assert_array_equal(new, pixels)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "int32"])
def test_nodata_among_integers_is_a_mask(tmp_path: Path, dtype: str):
    pixels = (noise((9, 8), "uint8") % 100 + 1).astype(dtype)
    pixels[2:4, 3] = 0
    save(tmp_path / "image.tif", pixels, "0")
    image = read_image(tmp_path / "image.tif")
    np.testing.assert_array_equal(image.pixels, pixels)
    np.testing.assert_array_equal(np.isnan(image.values()), pixels == 0)
    denoised = image.values() - 0.6  # rounds down, from 1 to 0, which is taken
    write_image(tmp_path / "new.tif", denoised, like=image)
    expected = np.where(pixels == 0, 0, np.maximum(pixels - 1, 1))
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "new.tif"), expected)


def test_a_file_without_missing_pixels_remembers_nothing():
    pixels = noise((9, 8), "float32")
    assert find_missing(pixels) == (pixels, None) or find_missing(pixels)[0] is pixels
    assert find_missing(pixels)[1] is None
    assert find_missing(noise((9, 8), "uint8"), -9999.0)[1] is None  # no such pixel can be


@pytest.mark.parametrize("nodata", ["none", "1e999", "", "-1"])
def test_nodata_that_no_pixel_can_have_is_ignored(tmp_path: Path, nodata: str):
    pixels = noise((9, 8), "uint8")
    save(tmp_path / "image.tif", pixels, nodata)
    image = read_image(tmp_path / "image.tif")
    assert image.missing is None
    np.testing.assert_array_equal(image.values(), pixels)


def test_one_missing_pixel_among_integers_does_not_spoil_the_noise(tmp_path: Path):
    """Full scale is found among the pixels that are there, not that of their type."""
    rng = np.random.default_rng(0)
    clean = 300 + 100 * np.sin(np.arange(64) / 9) * np.ones((64, 1))
    pixels = np.rint(clean + 10 * rng.standard_normal(clean.shape)).astype(np.int16)
    pixels[7, 9] = -32768
    save(tmp_path / "image.tif", pixels, "-32768")
    image = read_image(tmp_path / "image.tif")
    for sigma in (10.0, None):
        error = (hp.denoise(image.values(), sigma) - clean)[image.pixels != -32768]
        assert np.sqrt(np.mean(error**2)) < 5.0  # of 10
