from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Outcome, Run
from denoising_folder import fill_current_folder

from heatprior.cli import main
from heatprior.cli.batches import COMPILING
from paper.weights.handmade import dct_prior


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: object) -> Outcome:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        lines = [line for line in err.splitlines(keepends=True) if COMPILING not in line]  # where no cache is warm
        return Outcome(code, out, "".join(lines))

    return run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a prior and with files that are none."""
    monkeypatch.chdir(tmp_path)
    dct_prior(3).save("mine.safetensors")
    whole = Path("mine.safetensors").read_bytes()
    Path("cut.safetensors").write_bytes(whole[: len(whole) // 2])
    Path("headless.safetensors").write_bytes(whole[:5])
    Path("empty.safetensors").write_bytes(b"")
    Path("notes.txt").write_text("not a prior at all\n")
    Path("old.png").write_text("precious")
    return tmp_path


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with what `heatprior denoise` is tried on."""
    monkeypatch.chdir(tmp_path)
    fill_current_folder()
    return tmp_path
