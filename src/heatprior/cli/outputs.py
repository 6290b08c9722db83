"""Outputs that are refused before any work is done: what could not be written, or would be lost."""

from __future__ import annotations

import os
from pathlib import Path

from heatprior.errors import OutputFileError


def check_output(path: Path, *, force: bool) -> None:
    """Refuse at once, before any work, an output that could not be written at the end."""
    if path.is_dir():
        raise OutputFileError(f"cannot write {path}: it is a folder; give a file name inside it")
    if not path.parent.is_dir():
        what = "is a file" if path.parent.exists() else "does not exist"
        raise OutputFileError(f"cannot write {path}: {path.parent} {what}; create the folder first")
    if not os.access(path.parent, os.W_OK):
        raise OutputFileError(f"cannot write {path}: the folder {path.parent} is not writable; choose another")
    if os.path.lexists(path) and not force:
        raise OutputFileError(f"{path} exists already; choose another name or add --force to replace it")
