"""Which blocks are done: a line each, so that a run that was killed goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heatprior import locks
from heatprior.errors import OutputFileError


class Journal:
    """A file of lines: what the run is, what was found of its noise, and the blocks that are done.

    A block is written before its line is; a line without an end was never written. So a kill costs blocks, no bits.
    """

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self._path, self._about = path, json.dumps(about, sort_keys=True)
        try:
            self._file = path.open("a+", encoding="utf-8")
        except OSError as error:
            raise OutputFileError(f"cannot write {path}: {error.strerror or error}; choose another place") from error
        try:
            locks.lock(self._file.fileno())
        except OSError as error:
            self._file.close()
            raise OutputFileError(f"another run is writing the same output (see {path}); wait for it") from error
        self._file.seek(0)
        lines = self._file.read().split("\n")[:-1]
        self.goes_on = bool(lines) and lines[0] == self._about
        self.noted: dict[str, Any] = {}
        self.done: set[str] = set()
        for line in lines[1:] if self.goes_on else []:
            if line.startswith("{"):
                self.noted |= json.loads(line)
            else:
                self.done.add(line)
        if self.goes_on:
            self._file.seek(0)
            self._file.truncate(len("".join(f"{line}\n" for line in lines).encode()))
            self._file.seek(0, os.SEEK_END)
        else:
            self._file.truncate(0)
            self._line(self._about)

    def note(self, **found: Any) -> None:
        """Keep what was found out, for when the run is taken up again."""
        self.noted |= found
        self._line(json.dumps(found))

    def mark(self, block: str) -> None:
        """A block is done."""
        self.done.add(block)
        self._line(block)

    def _line(self, text: str) -> None:
        try:
            self._file.write(f"{text}\n")
            self._file.flush()
        except OSError as error:
            raise OutputFileError(f"cannot write {self._path}: {error.strerror or error}") from error

    def close(self) -> None:
        """Let go of it; it stays for the next run."""
        self._file.close()

    def remove(self) -> None:
        """All is done."""
        self._path.unlink(missing_ok=True)
        self._file.close()
