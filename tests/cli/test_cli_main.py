from __future__ import annotations

import re
import subprocess
import sys
import warnings
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest
from command_line import Run, assert_refused

import heatprior as hp
from heatprior.cli import main


def test_the_command_heatprior_is_main():
    (command,) = entry_points(group="console_scripts", name="heatprior")
    assert command.load() is main


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_names_the_commands_and_an_example_on_a_line_of_its_own(run: Run, arguments: list[str]):
    outcome = run(*arguments)
    assert (outcome.code, outcome.err) == (0, "")
    assert "  sample    Draw" in outcome.out
    assert "    heatprior sample -o patches.png           draw patches from a prior\n" in outcome.out


@pytest.mark.parametrize("command", ["denoise", "noise", "evaluate", "sample", "train"])
def test_help_imports_nothing_slow(command: str):
    slow = "{'numba', 'numpy', 'scipy', 'matplotlib', 'skimage', 'safetensors', 'PIL', 'tqdm'}"
    script = (
        f"import sys; from heatprior.cli import main; main(['{command}', '--help']);"
        f"print(sorted({slow} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


def test_denoising_imports_of_scipy_only_what_it_uses(tmp_path: Path):
    shades = np.linspace(0, 1, 32, dtype=np.float32)  # which fill their range: full scale needs no search
    np.save(tmp_path / "noisy.npy", shades + 0.1 * np.random.default_rng(0).standard_normal((32, 32), np.float32))
    slow = "{'scipy.fft', 'scipy.interpolate', 'scipy.linalg', 'scipy.ndimage', 'scipy.optimize', 'scipy.stats'}"
    script = (
        "import sys; from heatprior.cli import main;"
        "code = main(['denoise', 'noisy.npy', '-o', 'clean.npy', '--sigma', '0.1']);"
        f"print(sorted({slow} & set(sys.modules))); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.endswith("[]\n")


def test_drawing_leaves_pyplot_alone(tmp_path: Path):
    script = (
        "import sys; from heatprior.cli import main; code = main(['sample', '-o', 'patches.png']);"
        "sys.exit(code or 'matplotlib.pyplot' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True)


def test_version(run: Run):
    assert run("--version") == (0, f"heatprior {hp.__version__}\n", "")


def test_an_unknown_command_is_one_line_that_points_to_the_help(run: Run):
    assert_refused(run("smaple"), "(see heatprior --help)")


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (KeyboardInterrupt(), 130, ""),
        (MemoryError(), 2, "not enough memory; ask for less (MemoryError)"),
        (OSError(5, "Input/output error"), 2, "Input/output error"),
        (hp.HeatpriorError("two\nlines"), 2, "heatprior: error: two lines\n"),
    ],
)
def test_failures_have_an_exit_code_and_no_traceback(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int, said: str
):
    def fail(_: str) -> None:
        raise raised

    monkeypatch.setattr(hp, "load", fail)
    outcome = run("sample", "-o", tmp_path / "new.png")
    assert outcome.code == code
    assert said in outcome.err
    assert len(outcome.err.strip().splitlines()) == (1 if said else 0)


def test_a_bug_is_not_hidden(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hp, "load", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("sample", "-o", tmp_path / "new.png")


def test_a_real_process_ends_with_code_2_and_one_line(tmp_path: Path):
    text = tmp_path / "notes.txt"
    text.write_text("not a prior at all\n")
    command = [sys.executable, "-m", "heatprior", "sample", str(text), "-o", str(tmp_path / "new.png")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"heatprior: error: {text} is not a prior")
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("command", ["denoise", "evaluate", "sample", "train"])
def test_every_noise_level_states_its_units(run: Run, command: str):
    """Three units are in use, each the custom of its field: every option says which it takes, in the same words."""
    told = " ".join(run(command, "--help").out.split())
    options = re.split(r" (?=--\w)", told)
    levels = [option for option in options if re.match(r"--sigma(-min|-max)? S ", option)]
    assert levels
    for option in levels:
        assert "tandard deviation of the noise, " in option
        assert (
            "in the units of the image" in option
            or re.search("grey levels being 0 to 1[ .:;]", option)
            or (command == "evaluate" and "grey levels being 0 to 255" in option)
        )


def test_a_warning_is_one_line_without_its_source(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch):
    def noisy_load(_: str) -> object:
        warnings.warn("invalid value\nencountered", RuntimeWarning, stacklevel=1)
        raise hp.PriorFileError("no prior")

    monkeypatch.setattr(hp, "load", noisy_load)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        outcome = run("sample", "mine.safetensors", "-o", folder / "out.npy")
    assert outcome.code == 2
    assert outcome.err.splitlines() == [
        "heatprior: warning: invalid value encountered",
        "heatprior: error: no prior",
    ]
