"""Browser tabs: the pictures, jobs and files of each, and the temporary folder, gone when the server ends."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from heatprior.app.jobs import LongJob, Turns, Work
from heatprior.app.pictures import OpenedPicture
from heatprior.errors import InvalidInputError
from heatprior.files import LOCKS, claim

MOST_TABS = 32
MOST_OPEN = 3  # pictures of a tab that stay in memory; the page goes on with the newest ones
PATIENCE = 5.0  # seconds that its jobs have to end when it is closed
SILENCE = 600.0  # seconds after which a tab that says nothing is taken for closed; hidden tabs speak once a minute
PREFIX = "heatprior-app-"
LONGEST_NAME = 150  # characters; with what results add to it, below what systems take
CLOSED = "this page is no longer known to the server; reload it"


class GoneError(InvalidInputError):
    """A tab, a picture or a job that is not there, or no longer."""


class Tab:
    """One page that is open."""

    def __init__(self, folder: Path, turns: Turns) -> None:
        self.number = secrets.token_urlsafe(12)
        self.folder = folder / self.number
        self.folder.mkdir(mode=0o700)
        self.heard = time.monotonic()
        self._archiving = Lock()  # held by who changes or packs the results of the queue
        self._turns = turns
        self.pictures: dict[str, OpenedPicture] = {}
        self.jobs: dict[str, LongJob] = {}

    def place_for(self, name: str) -> tuple[str, Path]:
        """A number for a picture that comes, and where its file goes: under its own name, in a folder of its own."""
        number, plain = secrets.token_urlsafe(8), plain_name(name)
        folder = self.folder / number
        try:
            folder.mkdir(mode=0o700)
        except FileNotFoundError:
            raise GoneError(CLOSED) from None
        return number, folder / plain

    def open(self, number: str, path: Path) -> OpenedPicture:
        """Read a file that has come; nothing of it stays if it is no picture."""
        try:
            picture = OpenedPicture(number, path, path.name)
        except BaseException:
            self.discard(number)
            raise
        self.pictures[number] = picture
        for old in list(self.pictures)[:-MOST_OPEN]:
            self.discard(old)
        return picture

    def discard(self, number: str) -> None:
        """Forget a picture and its files; nobody waits for work on it any more."""
        self.pictures.pop(number, None)
        for job in list(self.jobs.values()):
            if job.picture == number:
                job.cancel()
        shutil.rmtree(self.folder / number, ignore_errors=True)

    def picture(self, number: str) -> OpenedPicture:
        """Return the picture of this number."""
        if number not in self.pictures:
            raise GoneError("this picture is no longer open; open it again")
        return self.pictures[number]

    def begin(self, work: Work, picture: OpenedPicture) -> LongJob:
        """Start a job; jobs that have ended long ago are forgotten."""
        for number in [key for key, job in self.jobs.items() if job.is_finished][:-20]:
            del self.jobs[number]
        job = LongJob(work, self._turns, lambda text: text.replace(str(picture.path), picture.name), picture.number)
        self.jobs[job.number] = job
        return job.start()

    def archive(self, work: Callable[..., None], *arguments: Any) -> None:
        """Change or pack the results of the queue, as nobody else does meanwhile."""
        with self._archiving:
            work(*arguments)

    def job(self, number: str) -> LongJob:
        """Return the job of this number."""
        if number not in self.jobs:
            raise GoneError("there is no such job any more; start it again")
        return self.jobs[number]

    def close(self) -> None:
        """End its jobs and remove its files."""
        jobs, limit = list(self.jobs.values()), time.monotonic() + PATIENCE
        for job in jobs:
            job.cancel()
        for job in jobs:  # so that nothing is written after their folder has gone
            with suppress(RuntimeError):  # never begun
                job.wait(max(0.0, limit - time.monotonic()))
        self.pictures.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


class Tabs:
    """All pages that are open."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._turns, self._lock = folder, Turns(), Lock()
        self._tabs: dict[str, Tab] = {}

    def open(self) -> Tab:
        """Open a new page; pages that have been silent for long are closed."""
        for silent in [tab for tab in list(self._tabs.values()) if time.monotonic() - tab.heard > SILENCE]:
            self.close(silent.number)
        with self._lock:
            if len(self._tabs) >= MOST_TABS:
                raise InvalidInputError(f"{MOST_TABS} pages are open already; close one of them")
            tab = Tab(self._folder, self._turns)
            self._tabs[tab.number] = tab
        return tab

    def find(self, number: str) -> Tab:
        """Return the page of this number, and note that it has just been heard."""
        tab = self._tabs.get(number)
        if tab is None:
            raise GoneError(CLOSED)
        tab.heard = time.monotonic()
        return tab

    def close(self, number: str) -> None:
        """Close the page of this number."""
        with self._lock:
            tab = self._tabs.pop(number, None)
        if tab is not None:
            tab.close()

    def close_all(self) -> None:
        """Close all pages, as the server ends."""
        for number in list(self._tabs):
            self.close(number)


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Path]:
    """Make a folder that only this user can read, and remove it when the block ends."""
    place = Path(tempfile.gettempdir()) if parent is None else parent
    sweep(place)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    handle = claim(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def sweep(parent: Path) -> None:
    """Remove what killed servers of this user left; without locks, that stays until the system tidies up."""
    if not LOCKS:
        return
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if (handle := claim(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(handle)


def plain_name(name: str) -> str:
    """The name of a file and nothing else; refuses one that leads to another folder."""
    if not name or name in (".", "..") or any(mark in name for mark in "/\\:") or not name.isprintable():
        raise InvalidInputError(f"{name[:80]!r} is no plain file name; rename the file")
    if len(name) > LONGEST_NAME or len(os.fsencode(name)) > LONGEST_NAME:
        raise InvalidInputError(f"the name {name[:40]!r}… is longer than {LONGEST_NAME} letters; rename the file")
    return name
