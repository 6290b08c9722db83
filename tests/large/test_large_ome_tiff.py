"""An OME-TIFF becomes an OME-Zarr that others open with the right scale."""

import warnings

import numpy as np
import pytest
import tifffile
import zarr
from small_stores import by_planes, pixels

from heatprior.large.files import denoise_store
from heatprior.restoration.denoising import Settings


@pytest.fixture(params=[("ZYX", (3, 80, 700)), ("TZCYX", (2, 2, 3, 80, 700))], ids=lambda param: param[0])
def from_ome_tiff(request, tmp_path, prior, rng):
    """An OME-TIFF as microscopes write it, denoised into an OME-Zarr: its axes, in order, and what is to be in it."""
    axes, shape = request.param
    noisy = pixels(shape, rng)
    metadata = {"axes": axes, "PhysicalSizeX": 0.1, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": 0.1}
    metadata |= {"PhysicalSizeYUnit": "µm", "PhysicalSizeZ": 0.5, "PhysicalSizeZUnit": "µm"}
    if "C" in axes:
        metadata["Channel"] = {"Name": ["a", "b", "c"]}
    tifffile.imwrite(tmp_path / "a.ome.tif", noisy, metadata=metadata, tile=(64, 64), photometric="minisblack")
    target = tmp_path / "b.ome.zarr"
    denoise_store(tmp_path / "a.ome.tif", target, Settings(prior=prior), 900.0)
    order = sorted(axes.lower(), key="tczyx".index)
    return target, order, by_planes(np.transpose(noisy, [axes.lower().index(axis) for axis in order]), prior)


def test_an_ome_tiff_becomes_an_ome_zarr_that_ome_zarr_opens_with_the_right_scale(from_ome_tiff):
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader

    target, order, clean = from_ome_tiff
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (node,) = list(Reader(parse_url(target))())
    assert [axis["name"] for axis in node.metadata["axes"]] == order
    np.testing.assert_array_equal(np.asarray(node.data[0]), clean)
    assert node.data[1].shape[-2:] == (40, 350)
    scales = [level[0]["scale"] for level in node.metadata["coordinateTransformations"]]
    assert scales[0][-3:] == [0.5, 0.1, 0.1]
    assert scales[1][-3:] == [0.5, 0.2, 0.2]
    assert {axis["name"]: axis.get("unit") for axis in node.metadata["axes"]}["z"] == "micrometer"


def test_it_is_what_the_specification_asks_for(from_ome_tiff):
    models = pytest.importorskip("ome_zarr_models", reason="needs ome-zarr-models, which later ome-zarr brings")
    omero = pytest.importorskip("ome_zarr_models.v04.omero").Omero
    target, order, _ = from_ome_tiff
    group = zarr.open_group(target, mode="r")
    models.open_ome_zarr(group)  # refuses what is not valid
    if "c" in order:
        window = omero.model_validate(group.attrs["ome"]["omero"]).channels[0].window
        assert (window.min, window.max) == (0, 65535)
        assert 10000 < window.start < window.end < 30000


@pytest.mark.filterwarnings("ignore")  # of napari itself
def test_napari_opens_it_with_the_right_scale(from_ome_tiff):
    reader = pytest.importorskip("napari_ome_zarr._reader", reason="needs napari-ome-zarr")
    target, order, clean = from_ome_tiff
    ((levels, about, kind),) = reader.napari_get_reader(str(target))(str(target))
    assert kind == "image"
    np.testing.assert_array_equal(np.asarray(levels[0]), clean)
    if "c" in order:
        assert about["channel_axis"] == 1
        assert [name.rpartition(": ")[2] for name in about["name"]] == ["a", "b", "c"]
    scale = about["scale"] if "scale" in about else np.diag(about["affine"].affine_matrix)[:-1]
    np.testing.assert_allclose(scale[-3:], [0.5, 0.1, 0.1])
