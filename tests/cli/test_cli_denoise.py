"""`heatprior denoise` writes what the library computes, and tells it."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from command_line import Run, assert_refused
from denoising_folder import QUICK, SIGMA, tree
from PIL import Image

import heatprior as hp
from heatprior.images import read_image
from heatprior.restoration import denoising


def expected(path: str, **options: object) -> np.ndarray:
    image = read_image(Path(path))
    return hp.denoise(image.pixels, SIGMA, prior="mine.safetensors", channel_axis=image.channel_axis, **options)


def test_a_file_is_what_the_library_makes_of_it_and_is_told_in_one_line(run: Run, workplace: Path):
    outcome = run("denoise", "noisy.png", "-o", "clean.png", "--sigma", SIGMA, *QUICK)
    assert (outcome.code, outcome.err) == (0, "")
    assert re.fullmatch(
        r"wrote clean\.png: 24×20 pixels, grey, 8 bits, from noisy\.png, \d+\.\d s; noise as given\n", outcome.out
    )
    clean = read_image(workplace / "clean.png")
    np.testing.assert_array_equal(clean.pixels, expected("noisy.png"))
    assert not np.array_equal(clean.pixels, read_image(workplace / "noisy.png").pixels)
    assert clean.metadata.dpi == pytest.approx((300, 300), abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--quality", "best"], {"quality": "best"}),
        (["--white", "200"], {"white": 200}),
    ],
)
@pytest.mark.usefixtures("workplace")
def test_options_reach_the_library(run: Run, arguments: list[str], options: dict[str, object]):
    assert run("denoise", "noisy.png", "-o", "new.png", "--sigma", SIGMA, *QUICK, *arguments).code == 0
    np.testing.assert_array_equal(read_image(Path("new.png")).pixels, expected("noisy.png", **options))


@pytest.mark.usefixtures("workplace")
def test_counts_may_be_given_by_gain_read_noise_and_black_level(run: Run):
    outcome = run("denoise", "noisy.png", "-o", "new.png", "--noise", "2.5,4,10", *QUICK)
    assert outcome.code == 0
    assert "noise as given" in outcome.out
    told = hp.PoissonGaussian(2.5, 4.0, 10.0)
    noisy = read_image(Path("noisy.png")).pixels
    clean = hp.denoise(noisy, noise=told, prior="mine.safetensors")
    np.testing.assert_array_equal(read_image(Path("new.png")).pixels, clean)
    for bad in ("2.5,x", "1,2,3,4", "0,3"):
        assert_refused(run("denoise", "noisy.png", "-o", "2.png", "--noise", bad, *QUICK), "GAIN,READ,BLACK")
    line = ("denoise", "noisy.png", "-o", "2.png", "--noise", "2.5,4,10", "--strength", "2")
    assert_refused(run(*line, *QUICK), "leave it out")


@pytest.mark.usefixtures("workplace")
def test_the_shipped_prior_is_the_default(run: Run):
    assert run("denoise", "noisy.png", "-o", "new.png", "--sigma", SIGMA).code == 0
    noisy = read_image(Path("noisy.png")).pixels
    np.testing.assert_array_equal(read_image(Path("new.png")).pixels, hp.denoise(noisy, SIGMA, prior="tuned"))


@pytest.mark.parametrize("name", ["map.npy", "map.tif"])
@pytest.mark.usefixtures("workplace")
def test_a_map_of_one_level_does_what_the_level_does(run: Run, name: str):
    tifffile.imwrite("map.tif", np.load("map.npy"))
    assert run("denoise", "noisy.png", "-o", "new.png", "--sigma", name, *QUICK).code == 0
    difference = read_image(Path("new.png")).pixels.astype(int) - expected("noisy.png")
    assert np.abs(difference).max() <= 1  # a map is interpolated between levels, and the result rounded


@pytest.mark.usefixtures("workplace")
def test_a_stack_keeps_its_pages_and_its_metadata(run: Run):
    outcome = run("denoise", "stack.tif", "-o", "new.tif", "--sigma", SIGMA * 257, *QUICK)
    assert (outcome.code, outcome.err) == (0, "")
    assert "2 images of 24×20 pixels, grey, 16 bits" in outcome.out
    with tifffile.TiffFile("stack.tif") as old, tifffile.TiffFile("new.tif") as new:
        assert new.imagej_metadata == old.imagej_metadata
        assert new.series[0].shape == (2, 20, 24)
        assert new.series[0].dtype == np.uint16


def test_a_folder_is_mirrored(run: Run, workplace: Path):
    outcome = run("denoise", "photos", "-o", "clean", "--sigma", SIGMA, "--white", 255, *QUICK)
    assert outcome.code == 0
    assert outcome.out.count("\n") == 3
    assert sorted(tree(workplace / "clean")) == ["a.png", "trip/b.jpg", "trip/day/c.npy"]
    np.testing.assert_array_equal(read_image(Path("clean/a.png")).pixels, expected("photos/a.png"))


def test_several_files_go_into_a_folder_and_one_into_one_that_exists(run: Run, workplace: Path):
    assert run("denoise", "noisy.png", "photos/a.png", "-o", "new", "--sigma", SIGMA, *QUICK).code == 0
    assert sorted(tree(workplace / "new")) == ["a.png", "noisy.png"]
    assert run("denoise", "noisy.png", "-o", "nothing", "--sigma", SIGMA, *QUICK).code == 0
    assert sorted(tree(workplace / "nothing")) == ["noisy.png"]


@pytest.mark.parametrize("name", ["noisy.png", "photos/trip/b.jpg", "stack.tif"])
def test_compare_draws_a_picture_beside(run: Run, workplace: Path, name: str):
    target = f"new{Path(name).suffix}"
    assert run("denoise", name, "-o", target, "--sigma", SIGMA, "--compare", *QUICK).code == 0
    assert (workplace / "new-compare.png").read_bytes().startswith(b"\x89PNG")


def test_force_replaces_an_output(run: Run, workplace: Path):
    assert run("denoise", "noisy.png", "-o", "old.png", "--sigma", SIGMA, "--force", *QUICK).code == 0
    assert (workplace / "old.png").read_bytes().startswith(b"\x89PNG")


def test_no_psnr_is_foretold_of_clipped_noise(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    noise = SIGMA * np.random.default_rng(0).standard_normal((64, 64))
    Image.fromarray(np.clip(5 + noise, 0, 255).astype(np.uint8)).save("dark.png")
    outcome = run("denoise", "dark.png", "-o", "new.png", "--sigma", SIGMA, "--error", "error.tif", "--prior", "patch7")
    assert "saturated" in outcome.err
    assert "expected PSNR" not in outcome.out


@pytest.mark.usefixtures("workplace")
def test_errors_are_written_beside_and_the_psnr_is_foretold(run: Run):
    outcome = run(
        "denoise", "noisy.png", "-o", "new.png", "--sigma", SIGMA, "--error", "error.tif", "--compare", *QUICK
    )
    assert outcome.code == 0
    assert re.search(r"expected PSNR \d+\.\d ± \d+\.\d dB", outcome.out)
    written = tifffile.imread("error.tif")
    noisy = read_image(Path("noisy.png")).pixels
    found = hp.denoise(noisy, SIGMA, prior="mine.safetensors", return_error=True)
    assert written.dtype == np.float32
    np.testing.assert_array_equal(written, found.error)
    np.testing.assert_array_equal(read_image(Path("new.png")).pixels, found.pixels)


def test_errors_of_a_folder_go_to_a_folder_and_are_refused_where_they_would_replace(run: Run, workplace: Path):
    command = ("denoise", "photos", "-o", "new", "--sigma", SIGMA, "--white", 255, *QUICK)
    assert run(*command, "--error", "errors").code == 0
    assert sorted(str(path.relative_to("errors")) for path in Path("errors").rglob("*.tif")) == [
        "a.tif", "trip/b.tif", "trip/day/c.tif"
    ]  # fmt: skip
    before = tree(workplace)
    assert_refused(
        run("denoise", "noisy.png", "-o", "2.png", "--sigma", SIGMA, "--error", "old.png", *QUICK), "--force"
    )
    assert_refused(run("denoise", "noisy.png", "-o", "2.png", "--sigma", SIGMA, "--error", "e.jpg", *QUICK), "float32")
    assert tree(workplace) == before


@pytest.mark.usefixtures("workplace")
def test_warnings_are_one_line(run: Run, monkeypatch: pytest.MonkeyPatch):
    plan = denoising.plan

    def grumble(*given: Any) -> Any:
        warnings.warn("it is\ndark", stacklevel=2)
        return plan(*given)

    monkeypatch.setattr(denoising, "plan", grumble)
    outcome = run("denoise", "noisy.png", "-o", "new.png", "--sigma", SIGMA, *QUICK)
    assert outcome.code == 0
    assert outcome.err == "heatprior: warning: noisy.png: it is dark\n"


@pytest.mark.usefixtures("workplace")
def test_white_says_what_full_scale_is(run: Run):
    dim = np.random.default_rng(0).normal(900, 30, (20, 24)).astype(np.uint16)
    np.save("dim.npy", dim)
    for name, options in (("as found", {}), ("as told", {"white": 4095})):
        arguments = [word for key, value in options.items() for word in (f"--{key}", value)]
        outcome = run("denoise", "dim.npy", "-o", f"{name}.npy", "--sigma", SIGMA, *QUICK, *arguments)
        assert (outcome.code, outcome.err) == (0, "")
        np.testing.assert_array_equal(
            np.load(f"{name}.npy"), hp.denoise(dim, SIGMA, prior="mine.safetensors", **options)
        )
    assert not np.array_equal(np.load("as found.npy"), np.load("as told.npy"))


@pytest.mark.usefixtures("workplace")
def test_a_stack_of_narrow_images_in_a_file_is_not_taken_for_colours(run: Run):
    """A file says what its axes are: a volume of 4×20×7 has no channels."""
    stack = np.random.default_rng(0).integers(90, 160, (7, 20, 4)).astype(np.uint8)
    tifffile.imwrite("narrow.tif", stack, photometric="minisblack")
    Image.fromarray(np.uint8(255) * (stack[0] > 150)).save("mask.png")
    for command in (("denoise",), ("inpaint", "--mask", "mask.png"), ("upscale",)):
        outcome = run(*command, "narrow.tif", "-o", "new.tif", "--sigma", SIGMA, "--force", *QUICK)
        assert (outcome.code, outcome.err) == (0, ""), outcome
    line = ("denoise", "narrow.tif", "-o", "new.tif", "--force", *QUICK)
    assert run(*line, "--sigma", SIGMA, "--error", "error.tif").code == 0
    assert tifffile.imread("new.tif").shape == tifffile.imread("error.tif").shape == stack.shape
    for command in (line, ("noise", "narrow.tif")):  # whose noise is estimated by larger patches
        assert "give a larger image" in run(*command).err


def test_hot_pixels_are_said_and_kept_if_asked_for(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    image = np.random.default_rng(0).normal(100.0, 5.0, (60, 70)).astype(np.float32)
    image[20, 30] = image[40, 50] = 900.0
    np.save("hot.npy", image)
    line = ("denoise", "hot.npy", "-o", "clean.npy", "--sigma", "5", "--white", "255", "--quality", "fast", "--force")
    assert "; 2 hot pixels filled in" in run(*line).out
    assert np.load("clean.npy").max() < 140
    assert "filled in" not in run(*line, "--noise", "auto+outliers").out
    assert "2 hot pixels" in run("noise", "hot.npy").out
