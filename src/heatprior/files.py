"""Writing results so that nothing is lost: never over an input, and to a hidden folder first, renamed only when whole.

The hidden folder is beside the result, and its name follows from that of the result, so that the next process that
writes the same finds what a killed one left. It is recognised by a marker in it, whose words only we write; a lock on
the marker, which is released when its process ends, distinguishes what was left from what is being written. Whatever
else has the name of such a folder is not ours, and is not touched.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path

from heatprior.errors import OutputFileError

LONGEST_NAME = 200  # bytes; systems take 255
LOCKS = os.name == "posix"  # elsewhere every lock is granted, and nobody may conclude anything from one
WORDS = b"heatprior makes a result in this folder, and removes it when that is done; you may do so if no run goes on\n"


def keep_apart(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Refuse an output that is an input, contains one or lies within one, by whatever links and names."""
    identity = cache(_identity)
    read: dict[tuple[int, int], Path] = {}
    above: dict[tuple[int, int], Path] = {}
    seen: set[Path] = set()
    for path in inputs:
        if itself := identity(path):
            read.setdefault(itself, path)
        if path.parent not in seen or path.is_symlink():
            seen.add(path.parent)
            above |= {found: path for folder in _above(path) if (found := identity(folder))}
    for output in outputs:
        place = location(output)
        for written in (output, working_folder(place)):
            if (itself := identity(written)) is None:
                continue
            for inputs_there, how in (read, "is"), (above, "contains"):
                if itself in inputs_there:
                    meets = f"{written} {how} the input {inputs_there[itself]}"
                    raise OutputFileError(f"{meets}; inputs are never replaced: choose another")
        for folder in (*place.parents, *Path(os.path.realpath(output)).parents):
            if (found := identity(folder)) in read:
                raise OutputFileError(
                    f"{output} lies within the input {read[found]}; inputs are never changed: choose a place outside"
                )


def location(path: Path) -> Path:
    """Where a path really is, through all links but the last: a link to a file is not where the file is."""
    way = path.absolute()
    return Path(os.path.realpath(way.parent), way.name)


def _above(path: Path) -> Iterator[Path]:
    """The folders without which a path would lead nowhere: those that it is in, and those of the links on its way."""
    way = path.absolute()
    for link in (way, *way.parents):
        if link.is_symlink():
            yield from location(link).parents
    yield from Path(os.path.realpath(way)).parents


def _identity(path: Path) -> tuple[int, int] | None:
    """What a path leads to, through all links; equal for two names of the same file."""
    try:
        about = path.stat()
    except (OSError, ValueError):  # the second: a name that no file can have
        return None
    return about.st_dev, about.st_ino


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to, in a hidden folder; rename it to `path` if the block succeeds, else remove it."""
    with explain_write_errors(path, "; choose another place"):
        folder = working_folder(path)
        handle = claim(folder) if LOCKS else None
        if handle is None:  # someone writes the same file now, the name is not ours, or there are no locks here
            folder = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=path.parent))
        try:
            (folder / path.name).unlink(missing_ok=True)  # which a killed process may have left
            yield folder / path.name
            (folder / path.name).replace(path)
        finally:
            _end(folder, handle, path.name)


@contextmanager
def explain_write_errors(path: Path, remedy: str = "") -> Iterator[None]:
    """Say in one line what the file system has against writing `path`."""
    try:
        yield
    except OutputFileError:
        raise
    except OSError as error:
        raise OutputFileError(f"cannot write {path}: {error.strerror or error}{remedy}") from error


def discard_unfinished(path: Path) -> None:
    """Remove what a killed process left of its attempt to write `path`; not what is being written now."""
    folder = working_folder(path)
    if LOCKS and folder.is_dir() and (handle := claim(folder)) is not None:
        _end(folder, handle, path.name)


def working_folder(path: Path) -> Path:
    """The hidden folder in which `path` is made."""
    name = path.name
    if len(os.fsencode(name)) > LONGEST_NAME:
        name = hashlib.blake2b(os.fsencode(name), digest_size=12).hexdigest()
    return path.with_name(f".{name}-heatprior")


def claim(folder: Path) -> int | None:
    """Make a folder of our own, or take over a killed process's: the handle of its lock, or None if it is not ours."""
    with suppress(FileExistsError):
        folder.mkdir()
    marker = folder / folder.name  # which no result in it has
    flags = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        if not (stat.S_ISDIR((about := folder.lstat()).st_mode) and _is_of_this_user(about)):
            return None
        new = not any(folder.iterdir())
        handle = os.open(marker, flags | (os.O_CREAT | os.O_EXCL if new else 0), 0o600)
    except OSError:  # there is no marker, or somebody was quicker
        return None
    try:
        lock(handle)
        about = os.fstat(handle)
        words = os.read(handle, len(WORDS) + 1) if os.path.samestat(about, marker.lstat()) else None
        ours = _is_of_this_user(about) and (words == WORDS or (words == b"" and _holds_only(folder, marker)))
    except OSError:
        ours = False
    if not ours:
        os.close(handle)
        return None
    if not words:  # it is new, or its process was killed before it wrote them
        try:
            os.write(handle, WORDS)
        except OSError:
            release(folder, handle)
            raise
    return handle


def lock(handle: int) -> None:
    """Take the lock of an open file, which tells other processes that it is in use; OSError if one of them has it."""
    if LOCKS:
        fcntl = import_module("fcntl")
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Hold a folder while its files are written; refuse one that is held, by this process or another."""
    if not LOCKS:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            lock(handle)
        except BlockingIOError as error:
            raise OutputFileError(f"another run writes to {folder} now; wait, or give another folder") from error
        except OSError:  # of a file system that has no locks for folders
            pass
        yield
    finally:
        os.close(handle)


def release(folder: Path, handle: int) -> None:
    """Remove a folder that was claimed, unless there is more in it than its marker."""
    if not LOCKS:  # an open file cannot be removed there
        os.close(handle)
    with suppress(OSError):
        if _holds_only(folder, folder / folder.name):
            (folder / folder.name).unlink()
            folder.rmdir()
    if LOCKS:
        os.close(handle)


def _holds_only(folder: Path, path: Path) -> bool:
    return list(folder.iterdir()) == [path]


def _end(folder: Path, handle: int | None, name: str) -> None:
    with suppress(OSError):
        (folder / name).unlink(missing_ok=True)
    if handle is not None:
        release(folder, handle)
        return
    with suppress(OSError):
        folder.rmdir()


def check_place(path: Path) -> None:
    """Refuse, before any work, a path whose folder is not there, or cannot be written to."""
    if not path.parent.is_dir():
        what = "is a file" if path.parent.exists() else "does not exist"
        raise OutputFileError(f"cannot write {path}: {path.parent} {what}; create the folder first")
    if not os.access(path.parent, os.W_OK):
        raise OutputFileError(f"cannot write {path}: the folder {path.parent} is not writable; choose another")


def make_folder(folder: Path) -> None:
    """Create a folder, with those that it is in, unless it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot make the folder {folder}: {error.strerror or error}; choose another place"
        raise OutputFileError(message) from error


def _is_of_this_user(about: os.stat_result) -> bool:
    return os.name != "posix" or about.st_uid == os.geteuid()
