"""`heatprior deblur`, `inpaint` and `upscale`: files of every kind, as by the library; bad input in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from command_line import Run, assert_refused
from PIL import Image
from synthetic import landscape, oriented_mixture

import heatprior as hp
from heatprior.restoration.operators.convolution import gaussian_kernel, motion_kernel

QUICK = ("--prior", "mixture.safetensors")
SHAPE = (32, 36)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    oriented_mixture(3).save("mixture.safetensors")
    rng = np.random.default_rng(0)
    grey = landscape(SHAPE, rng)
    colour = np.stack([grey, 1.0 - grey, 0.5 * grey], axis=-1) + 0.01 * rng.standard_normal((*SHAPE, 3))
    eight = np.clip(np.rint(255 * colour), 0, 255).astype(np.uint8)
    Image.fromarray(eight).save("photo.png", dpi=(300, 300))
    tifffile.imwrite("deep.tif", np.rint(60000 * grey).astype(np.uint16), description="a slide")
    mask = np.zeros(SHAPE, np.uint8)
    mask[10:13, 5:30] = 255
    Image.fromarray(mask).save("scratches.png")
    Image.fromarray(np.full_like(mask, 255)).save("white.png")
    tifffile.imwrite("psf.tif", np.rint(1e4 * gaussian_kernel(1.0)).astype(np.uint16))
    return tmp_path


def pixels(name: str) -> np.ndarray:
    return np.asarray(Image.open(name))


def dpi(name: str) -> object:
    with Image.open(name) as image:
        return image.info["dpi"]


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize(
    ("arguments", "kernel"),
    [
        (("--gaussian", 1.2), gaussian_kernel(1.2)),
        (("--motion", "5,30"), motion_kernel(5, 30)),
        (("--kernel", "psf.tif"), np.rint(1e4 * gaussian_kernel(1.0)) / np.rint(1e4 * gaussian_kernel(1.0)).sum()),
    ],
)
def test_deblur_is_that_of_the_library(run: Run, arguments: tuple[object, ...], kernel: np.ndarray):
    outcome = run("deblur", "photo.png", "-o", "sharp.png", "--sigma", 3, *QUICK, *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    expected = hp.restore(
        pixels("photo.png"), hp.operators.Blur(kernel), 3, prior="mixture.safetensors", channel_axis=-1
    )
    np.testing.assert_array_equal(pixels("sharp.png"), expected)
    assert dpi("sharp.png") == pytest.approx((300, 300), abs=0.1)


@pytest.mark.usefixtures("workplace")
def test_folders_of_16_bits_keep_their_metadata_and_are_compared(run: Run):
    Path("slides").mkdir()
    Path("deep.tif").rename("slides/deep.tif")
    Path("slides/bad.png").write_text("no image")
    outcome = run("deblur", "slides", "-o", "sharp", "--gaussian", 1, "--sigma", 500, *QUICK, "--compare")
    assert outcome.code == 1
    assert "1 of 2 failed" in outcome.err
    with tifffile.TiffFile("sharp/deep.tif") as file:
        assert file.pages[0].description == "a slide"
        assert file.asarray().dtype == np.uint16
    assert pixels("sharp/deep-compare.png").shape[1] > 2 * SHAPE[1]


@pytest.mark.usefixtures("workplace")
def test_inpaint_changes_only_what_is_missing(run: Run):
    outcome = run("inpaint", "photo.png", "--mask", "scratches.png", "-o", "whole.png", *QUICK)
    assert (outcome.code, outcome.err) == (0, "")
    before, after, spoilt = pixels("photo.png"), pixels("whole.png"), pixels("scratches.png") > 0
    np.testing.assert_array_equal(after[~spoilt], before[~spoilt])
    assert not np.array_equal(after[spoilt], before[spoilt])
    run("inpaint", "photo.png", "--mask", "scratches.png", "-o", "clean.png", "--sigma", 5, *QUICK)
    assert not np.array_equal(pixels("clean.png")[~spoilt], before[~spoilt])


@pytest.mark.usefixtures("workplace")
def test_masks_of_zeros_and_ones_are_masks(run: Run):
    spoilt = pixels("scratches.png") > 0
    np.save("ones.npy", spoilt.astype(np.uint8))
    run("inpaint", "photo.png", "--mask", "scratches.png", "-o", "whole.png", *QUICK)
    assert run("inpaint", "photo.png", "--mask", "ones.npy", "-o", "same.png", *QUICK).code == 0
    np.testing.assert_array_equal(pixels("same.png"), pixels("whole.png"))
    np.save("faint.npy", 2 * spoilt.astype(np.uint8))  # is no mask, but a nearly black image
    assert_refused(run("inpaint", "photo.png", "--mask", "faint.npy", "-o", "none.png", *QUICK), "no pixel is missing")


@pytest.mark.usefixtures("workplace")
def test_inpaint_fills_nan(run: Run):
    image = landscape(SHAPE, np.random.default_rng(1)).astype(np.float32)
    gaps = image.copy()
    gaps[8:12, 9:20] = np.nan
    np.save("gaps.npy", gaps)
    assert run("inpaint", "gaps.npy", "-o", "whole.npy", *QUICK).code == 0
    whole = np.load("whole.npy")
    assert np.isfinite(whole).all()
    np.testing.assert_array_equal(whole[~np.isnan(gaps)], gaps[~np.isnan(gaps)])


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize("target", ["large.png", "large.tif"])
def test_upscale_is_that_of_the_library(run: Run, target: str):
    outcome = run("upscale", "photo.png", "-o", target, "--factor", 3, "--sigma", 3, *QUICK, "--compare")
    assert (outcome.code, outcome.err) == (0, "")
    operator = hp.operators.Downsample(3)
    expected = hp.restore(pixels("photo.png"), operator, 3, prior="mixture.safetensors", channel_axis=-1)
    np.testing.assert_array_equal(pixels(target), expected)
    assert expected.shape == (96, 108, 3)
    if target == "large.png":
        assert dpi(target) == pytest.approx((900, 900), abs=0.1)


@pytest.mark.usefixtures("workplace")
def test_upscale_16_bits_in_the_same_format(run: Run):
    assert run("upscale", "deep.tif", "-o", "large.tif", "--sigma", 500, *QUICK).code == 0
    assert tifffile.imread("large.tif").shape == (64, 72)


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("deblur",), "expected one blur"),
        (("deblur", "--gaussian", 1, "--motion", "5,0"), "expected one blur"),
        (("deblur", "--motion", "5"), "such as 15,30"),
        (("deblur", "--motion", "0,5"), "a length of 1 to 4000"),
        (("deblur", "--motion", "1e6,0"), "a length of 1 to 4000"),
        (("deblur", "--motion", "5,nan"), "a finite angle"),
        (("deblur", "--gaussian", 0), "expected a positive number"),
        (("deblur", "--gaussian", 1e4), "at most 500"),
        (("deblur", "--gaussian", 9), "but the image only 36×32"),
        (("deblur", "--gaussian", 1, "--sigma", 0), "expected a positive number"),
        (("deblur", "--kernel", "none.tif"), "none.tif"),
        (("inpaint",), "no pixel is missing"),
        (("inpaint", "--mask", "psf.tif"), "the mask has shape (9, 9)"),
        (("inpaint", "--mask", "white.png"), "the mask leaves no valid pixel"),
        (("upscale", "--gaussian", 1e4), "at most 500"),
        (("upscale", "--factor", 1), "--factor"),
    ],
)
def test_bad_input_is_refused_in_one_line(run: Run, arguments: tuple[object, ...], remedy: str):
    command, *options = arguments
    assert_refused(run(command, "photo.png", "-o", "out.png", *QUICK, *options), remedy)
    assert not Path("out.png").exists()


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize("target", ["photo.png", "scratches.png", "mixture.safetensors"])
def test_what_is_read_is_never_replaced(run: Run, target: str):
    before = Path(target).read_bytes()
    outcome = run("inpaint", "photo.png", "--mask", "scratches.png", "-o", target, *QUICK, "--force")
    assert_refused(outcome, "inputs are never replaced")
    assert Path(target).read_bytes() == before
