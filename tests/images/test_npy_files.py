"""Arrays of numpy: every bit, type and shape."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from round_trip import DTYPES, assert_upside_down, noise, rewritten

from heatprior import OutputFileError
from heatprior.images import check_writable, read_image


@pytest.mark.parametrize("dtype", [*DTYPES, ">u2", ">f8"])
@pytest.mark.parametrize(
    ("shape", "colour"),
    [((9, 8), False), ((9, 8, 3), True), ((9, 8, 4), True), ((5, 9, 8), False), ((9, 3, 3), False), ((9, 8, 5), False),
     ((2, 5, 9, 8), False), ((2, 9, 8, 3), False)],
)  # fmt: skip
def test_arrays_of_every_type_and_shape(tmp_path: Path, dtype: str, shape: tuple[int, ...], colour: bool):
    array = noise(shape, np.dtype(dtype).newbyteorder("=").name).astype(dtype)
    np.save(tmp_path / "image.npy", array)
    image, new = rewritten(tmp_path / "image.npy")
    assert image.colour == colour
    assert image.pixels.dtype.isnative
    assert_upside_down(new, image)
    assert np.load(new).dtype == np.dtype(dtype)
    assert np.load(new).shape == shape


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((4, 9, 8, 3), {"photometric": "rgb"}),
        ((9, 8, 2), {"photometric": "minisblack", "planarconfig": "contig", "extrasamples": ["unassalpha"]}),
        ((9, 8, 5), {"photometric": "rgb", "extrasamples": ["unassalpha", "unspecified"]}),
        ((9, 8, 3), {"photometric": "minisblack"}),
        ((3, 3, 3), {"photometric": "rgb"}),
    ],
)
def test_what_an_array_cannot_tell_is_refused_before_any_work(tmp_path: Path, shape, options):
    tifffile.imwrite(tmp_path / "image.tif", noise(shape, "uint8"), metadata=None, **options)
    image = read_image(tmp_path / "image.tif")
    with pytest.raises(OutputFileError, match=r"\.npy cannot (tell its channels from a stack|hold its transparency)"):
        check_writable(tmp_path / "new.npy", image)
