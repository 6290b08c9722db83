"""What the library warns of, told to whoever asked for the work: here warnings belong to a thread."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import local
from typing import Any


class _Ears(local):
    heard: list[str] | None = None


_ears = _Ears()


def listen() -> None:
    """From now on, warnings of the library go to the thread's own list, if it has one, and nowhere else."""
    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = _note


@contextmanager
def overhearing() -> Iterator[list[str]]:
    """The warnings of this thread inside the block, each once and in one line."""
    before, _ears.heard = _ears.heard, []
    try:
        yield _ears.heard
    finally:
        _ears.heard = before


def _note(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:  # noqa: ARG001
    if not issubclass(category, UserWarning):
        sys.stderr.write(f"heatprior: warning: {message}\n")
        return
    line = " ".join(str(message).split())
    if _ears.heard is not None and line not in _ears.heard:
        _ears.heard.append(line)
