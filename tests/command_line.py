"""The command line as a user meets it: arguments in, exit code and two streams out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_refused(outcome: Outcome, remedy: str) -> None:
    """Exit code 2 and exactly one line on stderr, which names the remedy."""
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("heatprior: error: ")
    assert outcome.err.count("\n") == 1
    assert outcome.err.endswith("\n")
    assert remedy in outcome.err
