"""A new kind of prior is its own files and one entry in the table of kinds: everything else takes it as it is."""

import json

import numpy as np
import pytest
from PIL import Image
from toy_kind import ToyPrior

import heatprior as hp
from heatprior.kinds import KINDS, Kind

CLEAN = np.full((40, 50), 0.5, np.float32)
NOISY = CLEAN + 0.1 * np.random.default_rng(0).standard_normal(CLEAN.shape, np.float32)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setitem(KINDS, "toy", Kind("toy", prior="toy_kind:ToyPrior", training=None, picture="toy_kind:draw"))
    path = tmp_path / "toy.safetensors"
    ToyPrior(0.5, 0.01, {"name": "toy"}).save(path)
    return path


def test_it_is_saved_and_loaded(path):
    loaded = hp.load(path)
    assert (loaded.mean, loaded.spread, loaded.card) == (0.5, 0.01, {"name": "toy"})


def test_without_its_entry_it_is_unknown(path, monkeypatch):
    monkeypatch.delitem(KINDS, "toy")
    with pytest.raises(hp.PriorFileError, match="unknown kind 'toy'"):
        hp.load(path)


@pytest.mark.parametrize("steps", [1, None])
def test_it_denoises(path, steps):
    error = np.abs(hp.denoise(NOISY, 0.1, prior=path, steps=steps, white=1.0) - CLEAN).mean()
    assert error < 0.5 * np.abs(NOISY - CLEAN).mean()


def test_it_cannot_tell_the_noise_and_says_so(path):
    with pytest.raises(hp.InvalidInputError, match=r"not with this one \(toy\); give sigma"):
        hp.estimate_sigma(NOISY, prior=path)


def test_the_command_line_denoises_shows_samples_and_evaluates_it(run, path, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    Image.fromarray((255 * CLEAN).astype(np.uint8)).save(folder / "clean.png")
    assert run("denoise", folder / "clean.png", "-o", tmp_path / "out.png", "--sigma", "25", "--prior", path).code == 0
    shown = run("show", path, "-o", tmp_path / "toy.png")
    assert "0.5 ± 0.01" in shown.out
    assert (tmp_path / "toy.png").read_text() == "a picture of 0.5"
    assert run("sample", path, "-o", tmp_path / "toy.npy", "--count", "5").code == 0
    assert np.load(tmp_path / "toy.npy").shape[1:] == (5, 3, 3)
    record = tmp_path / "record.json"
    assert run("evaluate", folder, "--prior", path, "--sigma", "25", "--steps", "1", "-o", record).code == 0
    assert json.loads(record.read_text())["mean"][0]["psnr"] > 30
