"""`--fast` and `--best` of `heatprior denoise` and `heatprior evaluate`."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Run, assert_refused
from synthetic import folder_of_images

import heatprior as hp


@pytest.mark.parametrize(("arguments", "quality"), [([], "default"), (["--fast"], "fast")])
def test_the_options_are_the_qualities_of_the_library(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], quality: str
):
    monkeypatch.chdir(tmp_path)
    image = np.random.default_rng(0).uniform(size=(30, 34)).astype(np.float32)
    np.save("noisy.npy", image)
    outcome = run("denoise", "noisy.npy", "-o", "clean.npy", "--sigma", "0.1", *arguments)
    assert outcome.code == 0
    np.testing.assert_array_equal(np.load("clean.npy"), hp.denoise(image, 0.1, quality=quality))
    folder_of_images(tmp_path / "photos", 1, (30, 34))
    run("evaluate", "photos", "--sigma", 40, "-o", "figures.json", *arguments)
    record = json.loads(Path("figures.json").read_text())
    assert (record["quality"], record["prior"]) == (quality, {"default": "tuned", "fast": "fast7"}[quality])


def test_both_at_once_are_refused(run: Run, tmp_path: Path):
    outcome = run("denoise", tmp_path / "a.png", "-o", tmp_path / "b.png", "--sigma", 20, "--fast", "--best")
    assert_refused(outcome, "--fast and --best exclude each other")
