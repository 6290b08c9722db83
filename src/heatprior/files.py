"""Writing results so that nothing is lost: to a temporary name first, renamed only when whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heatprior.errors import OutputFileError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`, with the same suffix; rename it to `path` if the block succeeds.

    If it fails, the temporary file goes and what stood at `path` stays.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    except OSError as error:
        raise OutputFileError(_explain(path, error)) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise OutputFileError(_explain(path, error)) from error
    finally:
        temporary.unlink(missing_ok=True)


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


def _explain(path: Path, error: OSError) -> str:
    return f"cannot write {path}: {error.strerror or error}; choose another place"


def _umask() -> int:
    """Permissions that new files go without; reading it means setting it, so set it back at once."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
