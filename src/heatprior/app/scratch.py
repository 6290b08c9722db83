"""Where the server keeps what was given to it while it runs: one temporary folder, gone when it ends.

A killed process cannot tidy up. Its folder holds a lock that ends with the process; the next server that starts finds
folders whose lock is free, and removes them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from heatprior import locks
from heatprior.errors import InvalidInputError

PREFIX = "heatprior-app-"
LOCK = "lock"
LONGEST_NAME = 150  # characters; with what results add to it, below what systems take


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Path]:
    """A folder that only this user can read, and that goes when the block ends."""
    place = Path(tempfile.gettempdir()) if parent is None else parent
    sweep(place)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        locks.lock(handle)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def sweep(parent: Path) -> None:
    """Remove what killed servers of this user left; without locks, that stays until the system tidies up."""
    if not locks.AVAILABLE:
        return
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                locks.lock(handle)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


def plain_name(name: str) -> str:
    """The name of a file and nothing else; refuses one that leads to another folder."""
    if not name or name in (".", "..") or any(mark in name for mark in "/\\:") or not name.isprintable():
        raise InvalidInputError(f"{name[:80]!r} is no plain file name; rename the file")
    if len(name) > LONGEST_NAME or len(os.fsencode(name)) > LONGEST_NAME:
        raise InvalidInputError(f"the name {name[:40]!r}… is longer than {LONGEST_NAME} letters; rename the file")
    return name
