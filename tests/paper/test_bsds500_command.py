from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome

from paper import bsds500
from paper.bsds500 import fetch as module
from paper.bsds500.__main__ import main
from paper.bsds500.fetch import BSDS500

Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return lambda *arguments: Outcome(main([str(argument) for argument in arguments]), *capsys.readouterr())


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEATPRIOR_DATA", raising=False)
    monkeypatch.setattr(bsds500, "cache_folder", lambda: tmp_path / "cache")


def data_set(folder: Path) -> Path:
    for name in ("bsds500/train/2.jpg", "bsds500/test/3.jpg", "bsds500/val/37073.jpg"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_tells_where_the_images_are(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = data_set(tmp_path / "data")
    monkeypatch.setenv("HEATPRIOR_DATA", str(folder))
    expected = f"{folder} holds 2 images for training, 1 images for validation, 0 images for BSD68\n"
    assert run() == (0, expected, "")
    other = data_set(tmp_path / "other")
    assert run("--to", other).out.startswith(f"{other} holds 2 images")


def test_fetches_into_the_cache_or_the_given_folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fetched: list[Path] = []
    monkeypatch.setattr(module, "fetch", lambda folder, **_: fetched.append(data_set(folder)))
    assert run().code == 0
    assert run("--to", tmp_path / "mine").code == 0
    assert fetched == [tmp_path / "cache", tmp_path / "mine"]


def test_without_a_network_it_is_one_line_and_nothing_is_left(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    nowhere = module.Archive("http://127.0.0.1:9/nothing.tgz", BSDS500.member, BSDS500.digests, BSDS500.bsd68)
    monkeypatch.setattr(module.fetch, "__defaults__", (nowhere,))
    outcome = run("--to", tmp_path / "data")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("paper: error: ")
    assert outcome.err.count("\n") == 1
    assert "set HEATPRIOR_DATA to the folder" in outcome.err
    assert list(tmp_path.iterdir()) == []
