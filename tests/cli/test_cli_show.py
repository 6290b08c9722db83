from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Run, assert_refused, contents
from whole_images import convolutional_prior, wavelet_prior

from examples import gaussian_mixture
from heatprior.zoo import names
from paper.weights.handmade import dct_prior


def test_tells_the_card_and_draws(run: Run, folder: Path):
    outcome = run("show", "patch7", "-o", "picture.png")
    assert (outcome.code, outcome.err) == (0, "")
    facts = dict(line.split(maxsplit=1) for line in outcome.out.replace("patch size", "patch-size").splitlines())
    assert facts["kind"] == "patch"
    assert facts["patch-size"].startswith("7×7")
    assert facts["filters"].startswith("48,")
    assert facts["components"].startswith("125 ")
    assert facts["parameters"] == str(48 * 49 + 48 * 125)
    assert facts["made"].startswith("by heatprior train")
    assert facts["wrote"] == "picture.png"
    assert (folder / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_names_the_picture_after_the_prior(run: Run, folder: Path):
    assert run("show", "mine.safetensors").code == 0
    assert (folder / "mine.png").exists()


def test_a_mixture_is_told_and_drawn(run: Run, folder: Path):
    gaussian_mixture(3, 4, (0.5, 2.0)).save("many.safetensors")
    outcome = run("show", "many.safetensors", "--filters", 3)
    assert (outcome.code, outcome.err) == (0, "")
    facts = dict(line.split(maxsplit=1) for line in outcome.out.replace("patch size", "patch-size").splitlines())
    assert facts["kind"] == "mixture"
    assert facts["patch-size"] == "3×3 pixels"
    assert facts["shapes"] == "4"
    assert facts["contrasts"] == "2, from 0.5 to 2"
    assert facts["parameters"] == str(4 * 36 + 8)
    assert (folder / "many.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("prior", "bands"), [(convolutional_prior(2, 3), 6), (wavelet_prior(1, 3, 1), 18)])
def test_a_prior_of_whole_images_is_told_and_drawn(run: Run, folder: Path, prior, bands: int):
    prior.save("whole.safetensors")
    outcome = run("show", "whole.safetensors")
    assert (outcome.code, outcome.err) == (0, "")
    facts = dict(line.split(maxsplit=1) for line in outcome.out.splitlines())
    assert facts["kind"] in ("convolutional", "wavelet")
    assert facts["bands"].startswith(f"{bands}: ")
    assert facts["parameters"] == str(prior.parameters)
    assert (folder / "whole.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("folder")
def test_settings_of_a_card_are_not_told(run: Run):
    told = run("show", "tuned").out
    assert len(told.splitlines()) < 12
    assert "confidences" not in told


@pytest.mark.usefixtures("folder")
def test_without_a_name_the_shipped_priors_are_listed_a_line_each(run: Run, folder: Path):
    before = contents(folder)
    outcome = run("show")
    assert (outcome.code, outcome.err) == (0, "")
    assert [line.split()[0] for line in outcome.out.splitlines()] == names()
    assert "48 filters of 7×7 pixels, 8,352 parameters" in outcome.out
    assert contents(folder) == before


@pytest.mark.usefixtures("folder")
def test_a_card_cannot_steer_the_terminal(run: Run):
    prior = dct_prior(2)
    type(prior)(prior.filters, prior.experts, {"made": "by\x1b[2J\nnobody"}).save("odd.safetensors")
    outcome = run("show", "odd.safetensors")
    assert outcome.code == 0
    assert "\x1b" not in outcome.out
    assert "made        by [2J nobody\n" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ("nothing", "shipped are"),
        ("notes.txt", "get a fresh copy"),
        ("cut.safetensors -o new.png", "get a fresh copy"),
        ("patch7 --filters 0", "--help"),
        ("patch7 -o new.npy", ".png, .pdf, .svg"),
        ("patch7 -o old.png", "--force"),
        ("patch7 -o missing/new.png", "create the folder first"),
    ],
)
def test_refuses_in_one_line_and_leaves_nothing(run: Run, folder: Path, arguments: str, remedy: str):
    before = contents(folder)
    assert_refused(run("show", *arguments.split()), remedy)
    assert contents(folder) == before
