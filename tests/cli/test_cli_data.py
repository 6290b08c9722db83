from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Run, assert_refused

from heatprior.data import bsds500
from heatprior.data.bsds500 import fetch as module
from heatprior.data.bsds500.fetch import BSDS500


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
    assert run("data") == (0, expected, "")
    other = data_set(tmp_path / "other")
    assert run("data", "--to", other).out.startswith(f"{other} holds 2 images")


def test_fetches_into_the_cache_or_the_given_folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fetched: list[Path] = []
    monkeypatch.setattr(module, "fetch", lambda folder, **_: fetched.append(data_set(folder)))
    assert run("data").code == 0
    assert run("data", "--to", tmp_path / "mine").code == 0
    assert fetched == [tmp_path / "cache", tmp_path / "mine"]


def test_without_a_network_it_is_one_line_and_nothing_is_left(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    nowhere = module.Archive("http://127.0.0.1:9/nothing.tgz", BSDS500.member, BSDS500.digests, BSDS500.bsd68)
    monkeypatch.setattr(module.fetch, "__defaults__", (nowhere,))
    outcome = run("data", "--to", tmp_path / "data")
    assert_refused(outcome, "set HEATPRIOR_DATA to the folder")
    assert "--" not in outcome.err  # it has no other option to advise
    assert list(tmp_path.iterdir()) == []
