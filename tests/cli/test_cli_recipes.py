"""`--adapt` and `--scales` of `heatprior denoise` and `heatprior evaluate`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Run, assert_refused
from PIL import Image
from synthetic import folder_of_images, landscape, oriented_mixture

import heatprior as hp
from heatprior.priors.handmade import dct_prior

SIGMA = 20
RECIPES: list[tuple[list[str], dict[str, object]]] = [
    (["--adapt"], {"adapt": True}),
    (["--scales", "1"], {"scales": 1}),
    (["--adapt", "--scales", "1"], {"adapt": True, "scales": 1}),
]
QUICK = ("--prior", "mixture.safetensors")


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    oriented_mixture(3).save("mixture.safetensors")
    dct_prior(3).save("patches.safetensors")
    rng = np.random.default_rng(0)
    noisy = 255 * landscape((30, 34), rng) + SIGMA * rng.standard_normal((30, 34))
    Image.fromarray(np.clip(np.rint(noisy), 0, 255).astype(np.uint8)).save("noisy.png")
    folder_of_images(tmp_path / "photos", 2, (30, 34))
    return tmp_path


def pixels(name: str) -> np.ndarray:
    return np.asarray(Image.open(name))


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize(("arguments", "options"), RECIPES)
def test_options_are_those_of_the_library(run: Run, arguments: list[str], options: dict[str, object]):
    outcome = run("denoise", "noisy.png", "-o", "clean.png", "--sigma", SIGMA, *QUICK, *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    expected = hp.denoise(pixels("noisy.png"), SIGMA, prior="mixture.safetensors", **options)
    np.testing.assert_array_equal(pixels("clean.png"), expected)
    assert not np.array_equal(expected, hp.denoise(pixels("noisy.png"), SIGMA, prior="mixture.safetensors"))


@pytest.mark.usefixtures("workplace")
def test_evaluate_tells_what_was_done(run: Run):
    figures = {}
    for number, (arguments, options) in enumerate([([], {}), *RECIPES]):
        output = f"{number}.json"
        run("evaluate", "photos", "--sigma", 40, "-o", output, *QUICK, *arguments)
        record = json.loads(Path(output).read_text())
        assert record["adapt"] == options.get("adapt", False)
        assert record["scales"] == options.get("scales", "all")
        figures[(record["adapt"], record["scales"])] = record["mean"][0]["psnr"]
    assert len(set(figures.values())) == len(figures) == 4


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ("denoise noisy.png -o new.png --sigma 20 --adapt --prior patches.safetensors", "PatchPrior cannot be adapted"),
        ("denoise photos -o new --sigma 20 --adapt --prior patches.safetensors", "PatchPrior cannot be adapted"),
        ("evaluate photos --adapt --prior patches.safetensors", "PatchPrior cannot be adapted"),
        ("denoise noisy.png -o new.png --sigma 20 --scales 0 --prior mixture.safetensors", "--scales"),
        ("evaluate photos --scales 0 --prior mixture.safetensors", "--scales"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(run: Run, arguments: str, remedy: str):
    outcome = run(*arguments.split())
    assert_refused(outcome, remedy)
    assert not Path("new.png").exists()
    assert not Path("new").exists()
