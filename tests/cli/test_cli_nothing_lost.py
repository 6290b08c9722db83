"""No command writes to an input, around one or within one, by whatever name; `--force` replaces only what is ours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import Run, assert_refused
from denoising_folder import QUICK, SIGMA, tree
from PIL import Image

SMALL = ("--size", "3", "--components", "9", "--batch", "20", "--steps", "2")


@pytest.fixture
def places(workplace: Path) -> Path:
    """What the commands are tried on, and links to it."""
    shutil.copy("mine.safetensors", "prior.png")
    shutil.copy("mine.safetensors", "prior.npy")
    shutil.copy("noisy.png", "photos/b.png")
    Path("link").symlink_to("photos")
    Path("photos/trip/up").symlink_to("../..")
    for number in range(3):
        Image.effect_noise((24, 24), 40).save(f"photos/trip/day/{number}.png")
    return workplace


@pytest.mark.parametrize(
    "arguments",
    [
        "denoise photos -o photos/clean",
        "denoise photos -o link/clean",
        "denoise photos/trip -o photos",
        "denoise photos/trip -o link",
        "denoise photos/trip/day -o nothing/../photos",
        "denoise photos -o .",
        "denoise link -o photos",
        "denoise photos noisy.png -o photos/trip/clean",
        "denoise photos -o clean --error photos/errors",
        "denoise photos -o clean --error link/errors",
        "denoise noisy.png -o prior.png --prior prior.png",
        "denoise noisy.png -o new.png --error noisy.png",
        "denoise photos/a.png -o new.png --error link/a.png",
        "deblur photos -o photos/clean --gaussian 1.6",
        "deblur noisy.png -o photos/a.png --kernel link/a.png",
        "inpaint noisy.png -o link/a.png --mask photos/a.png",
        "inpaint photos -o link/clean --mask noisy.png",
        "upscale photos/trip -o photos",
        "upscale noisy.png -o nothing/../noisy.png",
        "noise noisy.png --picture noisy.png",
        "noise photos/a.png --picture link/a.png",
        "sample prior.npy -o prior.npy",
        "sample prior.png -o nothing/../prior.png",
        "show prior.png -o prior.png",
        "show prior.png",
        "evaluate photos --sigma 25 --steps 1 -o photos/found.json",
        "evaluate photos --sigma 25 --steps 1 -o link/trip/found.json",
        "train photos -o photos",
        "train photos -o photos/run",
        "train photos -o link/run",
        "train photos/trip -o photos",
        "train photos/trip/day -o nothing/run --validation nothing",
    ],
)
def test_an_output_in_an_input_or_around_it_is_refused_and_nothing_changes(run: Run, places: Path, arguments: str):
    command, *rest = arguments.split()
    quick = () if "--prior" in rest or command in ("noise", "sample", "show", "train") else QUICK
    level = ("--sigma", SIGMA) if command in ("denoise", "deblur", "inpaint", "upscale") else ()
    small = SMALL if command == "train" else ()
    before = tree(places)
    assert_refused(run(command, *rest, *quick, *level, *small, "--force"), "inputs are never")
    assert tree(places) == before


@pytest.mark.usefixtures("workplace")
def test_files_may_go_to_the_folder_above_them(run: Run):
    """The outputs are the files: none of them is an input, or within one."""
    assert run("denoise", "photos/a.png", "-o", ".", "--sigma", SIGMA, *QUICK).code == 0
    assert run("denoise", "photos/a.png", "photos/trip/b.jpg", "-o", "photos/..", "--force", "--sigma", SIGMA, *QUICK)
    assert Path("a.png").is_file()


@pytest.mark.parametrize("name", [".c-heatprior.png", ".c.png-heatprior.png", ".c.png-heatprior/c.png"])
@pytest.mark.usefixtures("workplace")
def test_no_input_is_taken_for_a_temporary_file(run: Run, name: str):
    Path(name).parent.mkdir(exist_ok=True)
    shutil.copy("noisy.png", name)
    before = Path(name).read_bytes()
    outcome = run("denoise", name, "-o", "c.png", "--sigma", SIGMA, *QUICK)
    if "/" in name:  # which would be in the way
        assert_refused(outcome, "contains the input")
    else:
        assert outcome.code == 0
        assert Path("c.png").is_file()
    assert Path(name).read_bytes() == before


def test_one_output_is_not_written_twice_by_two_names(run: Run, workplace: Path):
    before = tree(workplace)
    outputs = ("-o", "new.tif", "--error", "photos/../new.tif")
    assert_refused(run("denoise", "stack.tif", *outputs, "--sigma", SIGMA, *QUICK), "twice")
    assert tree(workplace) == before


@pytest.mark.usefixtures("places")
def test_a_training_replaces_runs_and_nothing_else(run: Run):
    Path("project").mkdir()
    for name in ("config.json", "log.csv", "checkpoint.safetensors", "prior.safetensors"):
        Path("project", name).write_text(json.dumps({"of": "another program"}))
    before = tree(Path("project"))
    train = ("train", "photos/trip/day", "-o", "project", *SMALL)
    assert_refused(run(*train, "--force"), "is not empty and holds no run")
    assert tree(Path("project")) == before
    assert run("train", "photos/trip/day", "-o", "run", *SMALL).code == 0
    for name in (".log-book", ".prior-notes.txt", ".checkpoint-of-mine"):
        Path("run", name).write_text("precious")
    assert run("train", "photos/trip/day", "-o", "run", *SMALL, "--force").code == 0
    assert run("train", "-o", "run", "--resume").code == 0
    for name in (".log-book", ".prior-notes.txt", ".checkpoint-of-mine"):
        assert Path("run", name).read_text() == "precious"
