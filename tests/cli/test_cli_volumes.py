"""`heatprior denoise --volume`: which axis is the depth, and that nothing of a file is lost."""

from pathlib import Path

import numpy as np
import pytest
import tifffile

import heatprior as hp
from heatprior.images import read_image

SIGMA = "10"
QUICK = ("--quality", "fast", "--sigma", SIGMA, "--force", "--white", "255")


def stack(shape, seed=0):
    """One picture in all slices, with noise."""
    rows, columns = np.indices(shape[-2:])
    picture = 120 + 50 * np.sin(rows / 2.0 + columns / 3.0)
    return np.clip(picture + 10 * np.random.default_rng(seed).standard_normal(shape), 0, 255).astype(np.uint8)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def together(volume, axis):
    return hp.denoise(volume, 10, depth_axis=axis, quality="fast", white=255, channel_axis=())


@pytest.mark.usefixtures("place")
def test_slices_of_a_stack_are_denoised_together_and_its_metadata_are_kept(run):
    volume = stack((9, 14, 16))
    tifffile.imwrite("a.tif", volume, imagej=True, metadata={"axes": "ZYX", "spacing": 3.5, "unit": "um"})
    assert run("denoise", "a.tif", "-o", "b.tif", "--volume", *QUICK).code == 0
    np.testing.assert_array_equal(tifffile.imread("b.tif"), together(volume, 0))
    assert run("denoise", "a.tif", "-o", "c.tif", *QUICK).code == 0
    assert not np.array_equal(tifffile.imread("c.tif"), tifffile.imread("b.tif"))  # slice by slice
    with tifffile.TiffFile("b.tif") as file:
        assert file.imagej_metadata["spacing"] == 3.5
        assert file.series[0].axes == "ZYX"


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("asked", "axis"), [((), 1), (("z",), 1), (("t",), 0)])
def test_the_file_says_which_axis_is_depth_and_which_is_time(run, asked, axis):
    volume = stack((8, 9, 2, 14, 16))
    tifffile.imwrite("a.ome.tif", volume, metadata={"axes": "TZCYX"})
    assert run("denoise", "a.ome.tif", "-o", "b.ome.tif", *QUICK, "--volume", *asked).code == 0
    np.testing.assert_array_equal(tifffile.imread("b.ome.tif"), together(volume, axis))
    assert read_image(Path("b.ome.tif")).stack_axes == "TZC"


@pytest.mark.usefixtures("place")
def test_the_one_axis_of_a_plain_stack_is_its_depth(run):
    volume = stack((9, 14, 16))
    np.save("a.npy", volume)
    assert run("denoise", "a.npy", "-o", "b.npy", "--volume", *QUICK).code == 0
    np.testing.assert_array_equal(np.load("b.npy"), together(volume, 0))


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("axes", "asked", "message"),
    [
        ("YX", ("--volume",), "it is a single image, not a stack of slices; denoise it as an image"),
        ("ZYX", ("--volume", "t"), "the axes of its stack are depth, not time"),
        ("CYX", ("--volume",), "the axes of its stack are channels, not"),
        ("ZYX", ("--volume=x",), "--volume is 'x'; expected z, t, or nothing"),
        ("ZYX", ("--volume", "--error", "e.tif"), "leave out --error, or --volume"),
    ],
)
def test_what_has_no_depth_is_refused_in_a_line(run, axes, asked, message):
    tifffile.imwrite("a.ome.tif", stack((5, 14, 16)[-len(axes) :]), metadata={"axes": axes})
    outcome = run("denoise", "a.ome.tif", "-o", "b.tif", *QUICK, *asked)
    assert outcome.code != 0
    assert message in " ".join(outcome.err.split())
    assert outcome.err.count("\n") == 1


@pytest.mark.usefixtures("place")
def test_the_noise_of_a_volume_is_estimated_once(run):
    rng = np.random.default_rng(0)
    volume = 100 + 40 * np.sin(np.indices((9, 40, 44)).sum(axis=0) / 6) + 8 * rng.standard_normal((9, 40, 44))
    np.save("a.npy", volume.astype(np.float32))
    outcome = run("denoise", "a.npy", "-o", "b.npy", "--volume", "--quality", "fast", "--white", "255")
    assert outcome.code == 0, outcome
    assert np.std(np.load("b.npy") - volume) > 4
