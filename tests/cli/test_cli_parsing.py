"""The short way to the values of options leads where typer's own does, and is left where that may differ."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from PIL import Image

from heatprior import cli as parsing
from heatprior.cli import COMMANDS, application

TEXTS = ("3", "-3", "007", "+4", " 5", "1_000", "2.5", "-.5", "1e3", "nan", "inf", "9" * 30, "0", "true", "", "best",
         "BEST", "auto", "constant", "name", "-", "a/b.png", "/", "x" * 300, "σ")  # fmt: skip

# Releases of typer that do without pydantic are left alone.
newer = pytest.mark.skipif(not hasattr(typer.core.TyperOption, "get_runtime_param"), reason="no pydantic in this typer")


@cache
def group() -> Any:
    return typer.main.get_command(application())


def parameters() -> list[Any]:
    commands = [group(), *group().commands.values()]
    return [one for command in commands for one in command.get_params(typer.Context(command)) if one.name != "help"]


def value_or_refusal(process: Any, parameter: Any, value: Any) -> Any:
    try:
        found = process(parameter, typer.Context(group()), value)
    except typer.BadParameter as error:
        return "refused", error.format_message()
    return (type(found), list(map(repr, found))) if isinstance(found, tuple | list) else (type(found), repr(found))


@newer
@pytest.mark.usefixtures("folder")
def test_every_option_takes_the_value_that_typer_gives_it():
    quick = 0
    for parameter in parameters():
        several = parameter.multiple or parameter.nargs == -1
        given = [[text] for text in TEXTS] + [["1", "2"], ["x", "1"]] if several else [*TEXTS, False, True]
        for value in (*given, None, parameter.default):
            if parameter.name == "version" and value:
                continue  # which prints it
            ours = value_or_refusal(parsing._process_value, parameter, value)
            typers = value_or_refusal(type(parameter).process_value, parameter, value)
            assert ours == typers, f"{parameter.opts} {value!r}"
            quick += ours[0] != "refused"
    assert quick > 1000


@newer
def test_an_output_that_cannot_be_read_is_left_to_typer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (output,) = {one.name: one for one in parameters() if one.opts[0] == "--output"}.values()
    (tmp_path / "old.png").touch()
    monkeypatch.setattr("os.access", lambda *_: False)
    assert value_or_refusal(parsing._process_value, output, str(tmp_path / "old.png"))[0] == "refused"


def test_denoising_does_without_pydantic_and_the_other_commands(tmp_path: Path):
    Image.fromarray(np.random.default_rng(0).integers(90, 130, (32, 32), dtype=np.uint8)).save(tmp_path / "noisy.png")
    others = [
        f"heatprior.cli.{name}" for name in COMMANDS.values() if name not in ("denoise", "noise")
    ]  # it borrows of noise
    modules = {"pydantic", *others}
    script = (
        "import sys; from heatprior.cli import main;"
        "code = main(['denoise', 'noisy.png', '-o', 'clean.png', '--sigma', '10', '--quality', 'fast']);"
        f"print(sorted({modules} & set(sys.modules))); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.endswith("[]\n")
