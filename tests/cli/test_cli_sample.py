from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Run, assert_refused, contents
from whole_images import convolutional_prior, wavelet_prior

import heatprior as hp

PAPER_SIGMAS = (0.0, 0.025, 0.05, 0.1, 0.2)


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg", ".PNG"])
def test_writes_a_picture_and_says_so_in_one_line(run: Run, folder: Path, suffix: str):
    outcome = run("sample", "-o", f"patches{suffix}")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"wrote patches{suffix}: 36 patches of 7×7 pixels")
    assert outcome.out.count("\n") == 1
    begins = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}[suffix.lower()]
    assert (folder / f"patches{suffix}").read_bytes().startswith(begins)


def test_an_array_holds_the_draws_of_the_prior_at_each_level(run: Run, folder: Path):
    assert run("sample", "--count", 5, "--seed", 3, "-o", "patches.npy").code == 0
    patches = np.load(folder / "patches.npy")
    assert patches.dtype == np.float32
    assert patches.shape == (5, 5, 7, 7)
    for drawn, sigma in zip(patches, PAPER_SIGMAS, strict=True):
        expected = hp.load("patch7").sample(5, sigma, rng=np.random.default_rng(3))
        np.testing.assert_array_equal(drawn.reshape(5, -1), expected.astype(np.float32))


def test_a_level_does_not_depend_on_the_others(run: Run, folder: Path):
    run("sample", "--sigma", 0.3, "-o", "one.npy")
    run("sample", "--sigma", 0, "--sigma", 0.3, "-o", "two.npy")
    np.testing.assert_array_equal(np.load(folder / "one.npy")[0], np.load(folder / "two.npy")[1])


@pytest.mark.parametrize("suffix", [".png", ".npy"])
def test_a_seed_fixes_every_byte(run: Run, folder: Path, suffix: str):
    for name, seed in {"a": 1, "b": 1, "c": 2}.items():
        run("sample", "--seed", seed, "-o", f"{name}{suffix}")
    first, same, other = (contents(folder)[f"{name}{suffix}"] for name in "abc")
    assert first == same
    assert first != other


def test_takes_a_prior_by_its_path(run: Run, folder: Path):
    outcome = run("sample", "mine.safetensors", "--count", 1, "--sigma", 0, "-o", "patches.npy")
    assert outcome.code == 0
    assert np.load(folder / "patches.npy").shape == (1, 1, 3, 3)


def test_whole_images_have_the_size_that_is_asked_for(run: Run, folder: Path):
    prior = wavelet_prior(1, 2)
    prior.save("whole.safetensors")
    outcome = run("sample", "whole.safetensors", "--size", "20x12", "--sigma", 0.1, "--seed", 3, "-o", "images.npy")
    assert outcome.out == "wrote images.npy: 1 images of 20×12 pixels at each sigma of 0.1\n"
    images = np.load(folder / "images.npy")
    assert images.shape == (1, 1, 12, 20)
    drawn = hp.load(folder / "whole.safetensors").sample(1, 0.1, rng=np.random.default_rng(3), shape=(12, 20))
    np.testing.assert_array_equal(images[0], drawn.astype(np.float32))
    assert run("sample", "whole.safetensors", "--size", "12X20", "-o", "images.png").code == 0


def test_draws_by_langevin_dynamics(run: Run, folder: Path):
    convolutional_prior(1, 2).save("whole.safetensors")
    assert run("sample", "whole.safetensors", "--size", "6x4", "--count", 2, "--sigma", 5, "-o", "images.npy").code == 0
    assert np.load(folder / "images.npy").shape == (1, 2, 4, 6)


@pytest.mark.parametrize("make", [convolutional_prior, wavelet_prior])
def test_the_bar_moves_within_a_noise_level(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, make: Any):
    told: list[float] = []
    monkeypatch.setattr("heatprior.cli.priors.show_progress", lambda count: nullcontext(told.append))  # noqa: ARG005
    make(1, 2).save("whole.safetensors")
    assert run("sample", "whole.safetensors", "--size", "4x6", "--sigma", 5, "--sigma", 2, "-o", "images.npy").code == 0
    assert (folder / "images.npy").exists()
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len([part for part in set(told) if part < 0.5]) >= 3  # of the first of two levels


def test_force_replaces(run: Run, folder: Path):
    assert run("sample", "--force", "-o", "old.png").code == 0
    assert (folder / "old.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ("--sigma -1 -o new.png", "not negative"),
        ("--sigma 0 --sigma -0.1 -o new.npy", "not negative"),
        ("--sigma nan -o new.png", "finite"),
        ("--sigma inf -o new.png", "finite"),
        ("--sigma much -o new.png", "--help"),
        ("--count 0 -o new.png", "--help"),
        ("--count -3 -o new.png", "--help"),
        ("--count 2000 -o new.png", ".npy"),
        ("--seed -1 -o new.png", "--help"),
        ("--colour -o new.png", "--help"),
        ("", "-o"),
        ("nothing -o new.png", "shipped are"),
        ("nothing.safetensors -o new.png", "give the path of a prior"),
        (". -o new.png", "give the path of a prior"),
        ("notes.txt -o new.png", "get a fresh copy"),
        ("cut.safetensors -o new.png", "get a fresh copy"),
        ("headless.safetensors -o new.png", "get a fresh copy"),
        ("empty.safetensors -o new.png", "get a fresh copy"),
        ("--size 12x12 -o new.png", "leave out --size"),
        ("wavelet-density --size 12 -o new.png", "such as 128x128"),
        ("wavelet-density --size 0x12 -o new.png", "such as 128x128"),
        ("wavelet-density --size 12x9999 -o new.png", "such as 128x128"),
        ("-o new.gif", ".png, .pdf, .svg, .npy"),
        ("-o new", ".png, .pdf, .svg, .npy"),
        ("-o old.png", "--force"),
        ("-o missing/new.png", "create the folder first"),
        ("-o notes.txt/new.png", "create the folder first"),
    ],
)
def test_refuses_in_one_line_and_leaves_nothing(run: Run, folder: Path, arguments: str, remedy: str):
    before = contents(folder)
    assert_refused(run("sample", *arguments.split()), remedy)
    assert contents(folder) == before


def test_refuses_a_folder_as_output(run: Run, folder: Path):
    (folder / "taken.png").mkdir()
    assert_refused(run("sample", "-o", "taken.png"), "give a file name inside it")


def test_refuses_a_folder_that_is_not_writable(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    before = contents(folder)
    assert_refused(run("sample", "-o", "new.png"), "choose another")
    assert contents(folder) == before


@pytest.mark.parametrize("writer", ["numpy.save", "matplotlib.figure.Figure.savefig"])
def test_a_full_disk_leaves_no_partial_file(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, writer: str):
    def fill(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, fill)
    before = contents(folder)
    assert_refused(run("sample", "-o", "new.npy" if writer == "numpy.save" else "new.png"), "choose another place")
    assert contents(folder) == before


@pytest.mark.usefixtures("folder")
def test_checks_the_output_before_it_loads_the_prior(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hp, "load", lambda _: pytest.fail("loaded before the output was checked"))
    assert_refused(run("sample", "-o", "old.png"), "--force")
