"""The examples of docs/torch.md run, and say what they say."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

import heatprior as hp
import heatprior.torch as ht

PAGE = (Path(__file__).parents[2] / "docs" / "torch.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def run(block):
    names = {}
    exec(compile(block, "docs/torch.md", "exec"), names)
    return names


def absolute_error(module, image):
    """On noise, and mostly on pixels, that the loop has not seen."""
    noise = torch.randn(64, 64, generator=torch.Generator().manual_seed(1))
    clean = image[None, None, 100:164, 200:264]
    with torch.no_grad():
        return float((module.denoise(clean + 0.1 * noise, 0.1, 1) - clean).abs().mean())


def test_the_first_example_runs():
    torch.manual_seed(0)
    names = run(BLOCKS[0])
    assert names["patches"].shape == (10, 64)
    assert names["clean"].shape == names["x"].shape


def test_the_training_loop_learns_and_its_file_is_one_of_the_library(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loop = BLOCKS[1].partition("image = ")[2].splitlines()
    assert len(loop) <= 20
    names = run(BLOCKS[1])
    assert absolute_error(names["module"], names["image"]) < 0.997 * absolute_error(ht.load("patch7"), names["image"])
    learnt = hp.load(tmp_path / "mine.safetensors")
    assert learnt.card["name"] == "mine"
    y = learnt.sample(3, 0.1, rng=np.random.default_rng(0))
    expected = names["module"].log_prob(torch.tensor(y), 0.1).detach().numpy()
    assert learnt.log_prob(y, 0.1) == pytest.approx(expected, rel=1e-4)  # files hold float32
    assert hp.load("patch7").log_prob(y, 0.1) != pytest.approx(expected, rel=1e-4)
    assert names["restored"].shape == (64, 64)
