"""Writing results so that nothing is lost: to a temporary name first, renamed only when whole.

The temporary name follows from the final one, so that what a killed process left there is found, and overwritten, by
the next that writes the same file. A lock, which is released when its process ends, distinguishes that from a file
that is being written.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from heatprior import locks
from heatprior.errors import OutputFileError

LONGEST_NAME = 200  # bytes; systems take 255


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`, with the same suffix; rename it to `path` if the block succeeds.

    If it fails, the temporary file goes and what stood at `path` stays.
    """
    try:
        handle, temporary = _begun(path)
    except OSError as error:
        raise OutputFileError(_explain(path, error)) from error
    try:
        try:
            yield temporary
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)  # still locked: it is ours
            raise
    except OutputFileError:
        raise
    except OSError as error:
        raise OutputFileError(_explain(path, error)) from error
    finally:
        os.close(handle)


def discard_unfinished(path: Path) -> None:
    """Remove what a killed process left of its attempt to write `path`; not what is being written now."""
    temporary = _temporary(path)
    handle = _locked(temporary) if os.path.lexists(temporary) else None
    if handle is not None:
        with suppress(OSError):
            temporary.unlink()
        os.close(handle)


def _begun(path: Path) -> tuple[int, Path]:
    """An empty temporary file for `path`, and a handle that holds its lock."""
    temporary = _temporary(path)
    handle = _locked(temporary)
    if handle is not None:
        os.ftruncate(handle, 0)
        return handle, temporary
    # Someone writes the same file now, the name is not ours, or there are no locks here.
    handle, name = tempfile.mkstemp(prefix=f"{temporary.stem}-", suffix=path.suffix, dir=path.parent)
    if not locks.AVAILABLE:  # an open file cannot be renamed
        os.close(handle)
        handle = os.open(os.devnull, os.O_RDONLY)
    return handle, Path(name)


def _temporary(path: Path) -> Path:
    stem = path.stem
    if len(os.fsencode(path.name)) > LONGEST_NAME:
        stem = hashlib.blake2b(os.fsencode(path.name), digest_size=12).hexdigest()
    return path.with_name(f".{stem}-heatprior{path.suffix}")


def _locked(temporary: Path) -> int | None:
    """The temporary file, made if it is not there, open and locked; None if it is in use, not ours, or cannot be."""
    while locks.AVAILABLE:  # else names are drawn at random, and what a killed process left stays
        try:
            handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return None
        try:
            locks.lock(handle)
            about, there = os.fstat(handle), os.lstat(temporary)
        except FileNotFoundError:  # the process that held it has just renamed it: try again
            os.close(handle)
            continue
        except OSError:
            os.close(handle)
            return None
        if os.path.samestat(about, there):
            if stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and about.st_nlink == 1:
                return handle
            os.close(handle)
            return None
        os.close(handle)
    return None


def make_folder(folder: Path) -> None:
    """Create a folder, with those that it is in, unless it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot make the folder {folder}: {error.strerror or error}; choose another place"
        raise OutputFileError(message) from error


def _explain(path: Path, error: OSError) -> str:
    return f"cannot write {path}: {error.strerror or error}; choose another place"


def _umask() -> int:
    """Permissions that new files go without; reading it means setting it, so set it back at once."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
