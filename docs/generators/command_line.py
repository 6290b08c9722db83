"""The command line as it describes itself: a page of the help of every command."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from heatprior.cli import COMMANDS, application

WIDTH = 100  # columns of the terminal that the help is laid out for
INTRODUCTION = """# The command line

What `heatprior COMMAND --help` says, for every command. A refusal is one line and exit code 2; where some of several
files failed, the exit code is 1; after Ctrl-C it is 130.
"""


def command_names() -> list[str]:
    """The names of all commands, in the order of the help."""
    return list(COMMANDS)


def help_of(*command: str) -> str:
    """What `heatprior COMMAND --help` prints."""
    result = CliRunner().invoke(application(), [*command, "--help"], prog_name="heatprior", terminal_width=WIDTH)
    if result.exit_code:
        raise RuntimeError(f"heatprior {' '.join(command)} --help failed: {result.output}")
    return result.output.rstrip()


def write_command_line(path: Path) -> None:
    """Write the page."""
    sections = [INTRODUCTION, _listing(help_of())]
    sections += [f"## heatprior {name}\n\n{_listing(help_of(name))}" for name in command_names()]
    path.write_text("\n".join(sections), encoding="utf-8")


def _listing(text: str) -> str:
    return f"```text\n{text}\n```\n"
