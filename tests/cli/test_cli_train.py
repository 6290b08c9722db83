from __future__ import annotations

import dataclasses
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import Run, assert_refused
from PIL import Image
from synthetic import folder_of_images

import heatprior as hp
from heatprior.cli import train as module

QUICK = ("--size", 3, "--components", 11, "--batch", 40, "--steps", 20)
MIXTURE = ("--kind", "mixture", "--size", 3, "--shapes", 2, "--contrasts", 2, "--batch", 40, "--steps", 20)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with images of all sorts in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEATPRIOR_DATA", raising=False)
    folder_of_images(tmp_path / "photos")
    (tmp_path / "nothing").mkdir()
    (tmp_path / "small").mkdir()
    Image.fromarray(np.zeros((2, 9), np.uint8)).save(tmp_path / "small" / "a.png")
    (tmp_path / "few").mkdir()
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "few" / "a.png")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.png").touch()
    (tmp_path / "degrees").mkdir()
    np.save(tmp_path / "degrees" / "a.npy", np.full((50, 50), 20.0))
    (tmp_path / "notes.txt").write_text("precious")
    return tmp_path


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_trains_and_says_where_the_prior_is_and_how_to_look_at_it(run: Run, workplace: Path):
    outcome = run("train", "photos", "-o", "mine", *QUICK)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == ("wrote mine/prior.safetensors; look at it with\n  heatprior show mine/prior.safetensors\n")
    assert sorted(path.name for path in (workplace / "mine").iterdir()) == [
        "checkpoint.safetensors",
        "config.json",
        "filters.png",
        "log.csv",
        "loss.png",
        "prior.safetensors",
    ]
    for picture in ("loss.png", "filters.png"):
        assert (workplace / "mine" / picture).read_bytes().startswith(b"\x89PNG")
    prior = hp.load("mine/prior.safetensors")
    assert prior.filters.size == 3
    assert prior.card["name"] == "mine"
    assert prior.card["trained on"] == "the folder photos"
    assert str(workplace) not in json.dumps(dict(prior.card))
    shown = run("show", "mine/prior.safetensors")
    assert shown.code == 0
    assert "trained on  the folder photos" in shown.out


def test_trains_a_mixture_in_the_same_folder_and_shows_it(run: Run, workplace: Path):
    outcome = run("train", "photos", "-o", "mine", *MIXTURE, "--validation", "photos")
    assert (outcome.code, outcome.err) == (0, "")
    assert sorted(path.name for path in (workplace / "mine").iterdir()) == [
        "checkpoint.safetensors",
        "config.json",
        "log.csv",
        "loss.png",
        "prior.safetensors",
        "shapes.png",
    ]
    settings = json.loads(Path("mine/config.json").read_text())
    assert settings["kind"] == "mixture"
    assert settings["training"] == {
        "size": 3, "shapes": 2, "contrasts": 2, "batch": 40, "steps": 20, "sigma": 0.0, "seed": 0
    }  # fmt: skip
    prior = hp.load("mine/prior.safetensors")
    assert isinstance(prior, hp.GaussianMixturePrior)
    assert prior.log_weights.shape == (2, 2)
    assert {"log_likelihood", "psnr25"} <= set(prior.card["validation"])
    before = Path("mine/prior.safetensors").read_bytes()
    assert run("train", "-o", "mine", "--resume").code == 0
    assert Path("mine/prior.safetensors").read_bytes() == before
    shown = run("show", "mine/prior.safetensors")
    assert shown.code == 0
    assert "shapes      2\n" in shown.out
    assert "contrasts   2, from 0.5 to 2\n" in shown.out
    assert Path("prior.png").read_bytes().startswith(b"\x89PNG")
    assert run("sample", "mine/prior.safetensors", "--count", 4, "-o", "patches.npy").code == 0
    assert np.load("patches.npy").shape == (5, 4, 3, 3)


def test_trains_a_mixture_on_noisy_images_if_their_noise_is_told(run: Run, workplace: Path):
    rng = np.random.default_rng(0)
    (workplace / "noisy").mkdir()
    for number in range(2):
        clean = rng.random((30, 1)) * np.ones((30, 30))
        np.save(workplace / "noisy" / f"{number}.npy", clean + 0.1 * rng.standard_normal((30, 30)))
    assert_refused(run("train", "noisy", "-o", "mine", *MIXTURE), "must lie in [0, 1]: rescale them")
    assert run("train", "noisy", "-o", "mine", *MIXTURE[:-4], "--batch", 500, "--steps", 20, "--sigma", 0.1).code == 0
    prior = hp.load("mine/prior.safetensors")
    assert prior.card["training"]["sigma"] == 0.1
    assert prior.variances.min() * prior.contrasts.max() < 0.1 * 0.1**2  # clean rows are constant


@pytest.mark.usefixtures("workplace")
def test_options_reach_the_settings(run: Run):
    options = ("--sigma", 0.02, "--averaged", 7, "--seed", 5, "--reach", 0.5, "--filter-rate", 0.01)
    assert run("train", "photos", "-o", "mine", *QUICK, *options, "--validation", "photos").code == 0
    settings = json.loads(Path("mine/config.json").read_text())
    training = settings["training"]
    assert (training["sigma_min"], training["sigma_max"]) == (0.02, 0.02)
    assert (training["averaged"], training["seed"], training["reach"]) == (7, 5, 0.5)
    assert (training["size"], training["components"], training["batch"], training["steps"]) == (3, 11, 40, 20)
    assert settings["validation"] == str(Path("photos").resolve())
    assert "psnr15" in hp.load("mine/prior.safetensors").card["validation"]


@pytest.mark.parametrize(
    ("config", "words", "not_offered"),
    [
        (hp.TrainingConfig, r"\[default: ([\w.]+)(?:; mixture: [\w.]+)?\]$", set()),
        (hp.MixtureConfig, r"\[(?:default: [\w.]+; )?(?:mixture|default): ([\w.]+)\]$", set()),
    ],
)
def test_every_default_in_the_help_is_that_of_the_settings(config: type, words: str, not_offered: set[str]):
    """The help must not load the settings, which load numba: so it repeats their defaults."""
    fields = {field.name: field for field in dataclasses.fields(config)}
    shown = {}
    for name, parameter in inspect.signature(module.train, eval_str=True).parameters.items():
        (option, *_) = parameter.annotation.__metadata__
        found = re.search(words, option.help or "")
        if found and name in fields:
            shown[name] = found[1]
    assert shown == {name: str(fields[name].default) for name in shown}
    assert {"size", "steps", "batch", "seed"} <= set(shown)
    assert set(fields) - set(shown) == not_offered


def test_skipped_files_are_told(run: Run, workplace: Path):
    (workplace / "photos" / "zero.png").touch()
    Image.fromarray(np.zeros((2, 9), np.uint8)).save(workplace / "photos" / "thin.png")
    outcome = run("train", "photos", "-o", "mine", *QUICK)
    assert outcome.code == 0
    thin, zero = outcome.err.splitlines()
    assert thin.endswith("thin.png is too small: 9×2 pixels")
    assert zero.endswith("zero.png: the file is empty; get a fresh copy")


def test_of_many_skipped_files_some_are_told(run: Run, workplace: Path):
    for number in range(9):
        (workplace / "photos" / f"zero{number}.png").touch()
    outcome = run("train", "photos", "-o", "mine", *QUICK)
    assert outcome.err.count("\n") == 6
    assert outcome.err.endswith("skipped: 4 more files\n")


def test_ten_images_and_more_spare_some_for_validation(run: Run, workplace: Path):
    folder_of_images(workplace / "many", 20)
    assert run("train", "many", "-o", "mine", *QUICK).code == 0
    prior = hp.load("mine/prior.safetensors")
    assert prior.card["training"]["images"] == 18
    assert "validation" in prior.card


@pytest.mark.usefixtures("workplace")
def test_force_begins_anew_and_resume_goes_on(run: Run):
    assert run("train", "photos", "-o", "mine", *QUICK).code == 0
    first = Path("mine/prior.safetensors").read_bytes()
    assert run("train", "-o", "mine", "--resume").code == 0
    assert run("train", "photos", "-o", "mine", "--resume", *QUICK).code == 0
    assert Path("mine/prior.safetensors").read_bytes() == first
    assert run("train", "photos", "-o", "mine", *QUICK, "--seed", 1, "--force").code == 0
    assert Path("mine/prior.safetensors").read_bytes() != first


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ("", "-o"),
        ("-o mine", "give a folder of images"),
        ("missing -o mine", "does not exist; give a folder"),
        ("notes.txt -o mine", "is a file; give a folder"),
        ("nothing -o mine", "holds no images"),
        ("small -o mine", "too small: 9×2 pixels"),
        ("few -o mine --batch 100", "give more or larger images"),
        ("broken -o mine", "the file is empty"),
        ("degrees -o mine", "rescale"),
        ("photos -o mine --validation nothing", "holds no images"),
        ("photos -o mine --validation missing", "does not exist"),
        ("photos -o mine --size 1", "at least 2"),
        ("photos -o mine --size much", "--help"),
        ("photos -o mine --steps 0", "at least 1"),
        ("photos -o mine --batch 0", "at least"),
        ("photos -o mine --batch 100000", "a smaller batch"),
        ("photos -o mine --sigma-max 0", "0 < max"),
        ("photos -o mine --sigma -1", "0 ≤ min"),
        ("photos -o mine --sigma 0.1 --sigma-max 0.4", "leave out"),
        ("photos -o mine --kind newton", "--help"),
        ("photos -o mine --seed -1", "seed is -1; expected at least 0"),
        ("photos -o mine --filter-rate nan", "filter_rate is nan; expected a finite number"),
        ("photos -o mine --filter-rate 1e9", "filter_rate is 1e+09; expected 0 to 1"),
        ("photos -o mine --logit-rate inf", "logit_rate is inf; expected a finite number"),
        ("photos -o mine --reach nan", "reach is nan"),
        ("photos -o mine --reach 1e300", "reach is 1e+300; expected 0.001 to 1000"),
        ("photos -o mine --sigma 1e-320", "too small"),
        ("photos -o mine --sigma-max inf", "sigma_max is inf; expected a finite number"),
        ("photos -o mine --sigma 1e9", "divide 8-bit levels by 255"),
        ("photos -o mine --components 1000000000", "at most 500"),
        ("photos -o mine --steps 99999999999", "at most 1000000000"),
        ("photos -o mine --averaged 0", "at least 1"),
        ("photos -o mine --kind mixture --sigma nan", "sigma is nan; expected a finite number"),
        ("photos -o mine --kind mixture --seed -5", "seed is -5; expected at least 0"),
        ("photos -o mine --kind mixture --contrasts 500", "contrasts is 500; expected at most 40"),
        ("photos -o mine --kind mixture --shapes 10000000", "at most 100000"),
        ("photos -o mine --checkpoint nan", "checkpoint"),
        ("photos -o mine --resume", "leave out --resume"),
        ("photos -o mine --kind wavelet", "--help"),
        ("photos -o mine --shapes 5", "--shapes belongs to --kind mixture and this is --kind patch; leave it out"),
        ("photos -o mine --kind mixture --filter-rate 1", "--filter-rate belongs to --kind patch and this is"),
        ("photos -o mine --kind mixture --sigma-max 1", "--sigma-max belongs to --kind patch"),
        ("photos -o mine --kind mixture --shapes 0", "at least 1"),
        ("photos -o mine --kind mixture --sigma 25", "divide an 8-bit level by 255"),
        ("photos -o missing/mine", "create the folder first"),
        ("photos -o notes.txt", "it is a file"),
        ("photos -o photos", "inputs are never replaced"),
        ("photos -o photos --force", "inputs are never replaced"),
    ],
)
def test_refuses_in_one_line_and_leaves_nothing(run: Run, workplace: Path, arguments: str, remedy: str):
    before = tree(workplace)
    settings = [option for option in ("--size 3", "--batch 40", "--steps 20") if option.split()[0] not in arguments]
    assert_refused(run("train", *arguments.split(), *" ".join(settings).split()), remedy)
    assert tree(workplace) == before
    assert not (workplace / "mine").exists()


def test_an_empty_name_is_not_the_current_folder(run: Run, workplace: Path):
    Image.fromarray(np.zeros((50, 50), np.uint8)).save(workplace / "here.png")
    assert_refused(run("train", "", "-o", "mine", *QUICK), "empty")
    assert_refused(run("train", "photos", "-o", "mine", "--validation", "", *QUICK), "empty")
    assert not (workplace / "mine").exists()


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ("photos -o mine", "--resume to continue it, or --force to start over"),
        ("photos -o mine --resume --steps 30", "was started with steps = 20 and cannot continue with 30"),
        ("photos -o mine --resume --seed 3", "was started with seed = 0"),
        ("other -o mine --resume", "differ from those with which"),
        (
            "-o mine --resume --kind mixture",
            "was started with kind = patch and cannot continue with mixture",
        ),
        ("-o mine --resume --shapes 3", "--shapes belongs to --kind mixture and this is --kind patch"),
    ],
)
def test_a_run_that_exists_is_kept(run: Run, workplace: Path, arguments: str, remedy: str):
    folder_of_images(workplace / "other", seed=1)
    assert run("train", "photos", "-o", "mine", *QUICK).code == 0
    before = tree(workplace)
    assert_refused(run("train", *arguments.split()), remedy)
    assert tree(workplace) == before


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_saves_and_tells_how_to_go_on(workplace: Path, number: signal.Signals):
    command = [sys.executable, "-m", "heatprior", "train", "photos", "-o", "mine", *map(str, QUICK[:-1]), "1000000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    log = workplace / "mine" / "log.csv"
    while process.poll() is None and not log.exists():
        time.sleep(0.02)
    time.sleep(0.2)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert re.fullmatch(r"stopped after step \d+ of 1000000; continue with\n  heatprior train -o mine --resume\n", out)
    assert (workplace / "mine" / "checkpoint.safetensors").exists()
    assert not (workplace / "mine" / "prior.safetensors").exists()


def test_a_full_disk_is_one_line(run: Run, workplace: Path, monkeypatch: pytest.MonkeyPatch):
    def fill(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill)
    assert_refused(run("train", "photos", "-o", "mine", *QUICK), "free disk space, then resume the run")
    assert not list((workplace / "mine").glob(".*"))
    monkeypatch.undo()
    monkeypatch.chdir(workplace)
    assert run("train", "-o", "mine", "--resume").code == 0
