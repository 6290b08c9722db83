"""Of a FITS file of an observatory the image called SCI is denoised, by the errors called ERR."""

from pathlib import Path

import numpy as np
import pytest

from heatprior.cli import main
from heatprior.images import read_image

fits = pytest.importorskip("astropy.io.fits")


@pytest.mark.parametrize("errors", [True, False])
def test_of_a_file_of_an_observatory_the_image_is_denoised_by_its_errors(errors, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    sigma = np.where(np.arange(40) < 20, 2.0, 8.0) * np.ones((32, 1))
    science = (100 + sigma * rng.standard_normal(sigma.shape)).astype(np.float32)
    parts = [fits.PrimaryHDU(), fits.ImageHDU(science, name="SCI"), fits.ImageHDU(np.zeros((32, 40), "i4"), name="DQ")]
    if errors:
        broken = sigma.astype(np.float32)
        broken[3, 3] = np.nan
        parts.append(fits.ImageHDU(broken, name="ERR"))
    fits.HDUList(parts).writeto("field.fits")
    image = read_image(Path("field.fits"))
    np.testing.assert_array_equal(image.pixels, science)
    assert (image.sigma is not None) == errors
    assert main(["denoise", "field.fits", "--quality", "fast"]) == 0
    assert ("; noise taken from its ERR extension" in capsys.readouterr().out) == errors
    with fits.open("field-denoised.fits") as result, fits.open("field.fits") as source:
        assert [part.name for part in result] == [part.name for part in source]
        assert np.std(result["SCI"].data) < 0.6 * np.std(science)
