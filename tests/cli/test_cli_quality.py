"""`--quality` of `heatprior denoise` and `heatprior evaluate`: one dial, and few options beside it."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from command_line import Run, assert_refused
from synthetic import folder_of_images

import heatprior as hp
from heatprior.cli import application
from heatprior.cli.batches import NOISES
from heatprior.noise.estimation import KINDS
from heatprior.presets import PRESETS

MOST_OPTIONS = 12


def test_command_line_and_page_have_the_presets_of_the_table():
    page = (Path(hp.__file__).parent / "app" / "static" / "index.html").read_text()
    select = re.search(r'<select id="quality">(.*?)</select>', page, re.DOTALL)
    assert select is not None
    assert re.findall(r'value="(\w+)"', select[1]) == list(PRESETS)
    assert list(NOISES) == ["auto", *KINDS]


@pytest.mark.parametrize(("arguments", "quality"), [([], "default"), (["--quality", "fast"], "fast")])
def test_the_dial_is_that_of_the_library(
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


def test_other_qualities_are_refused(run: Run, tmp_path: Path):
    outcome = run("denoise", tmp_path / "a.png", "-o", tmp_path / "b.png", "--sigma", 20, "--quality", "good")
    assert_refused(outcome, "--quality")


def options_of(name: str) -> list[str]:
    """The options of a command, without --help."""
    command: Any = typer.main.get_command(application()).commands[name]  # type: ignore[attr-defined]
    options = [one for one in command.get_params(typer.Context(command)) if one.param_type_name == "option"]
    return [one.name for one in options if one.name != "help"]


def test_denoise_has_few_options():
    found = options_of("denoise")
    assert len(found) <= MOST_OPTIONS, found
    assert not {"fast", "best", "method", "adapt", "scales", "scheduler", "noise_model"} & set(found)
    assert len(options_of("train")) > MOST_OPTIONS  # the count does count
