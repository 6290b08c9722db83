"""Fair shares of the processor: long jobs take turns; quick looks go first, of each tab only the newest."""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from threading import Condition, Event, Thread
from typing import Any

from heatprior.errors import HeatpriorError
from heatprior.kernels.patches import Progress
from heatprior.kernels.threads import in_background, step_back

SLICE = 0.25  # seconds that a turn lasts at least
Work = Callable[[Progress], dict[str, Any]]  # returns what the page shows in the end
FINISHED = ("done", "failed", "cancelled")


class CancelledByUserError(Exception):
    """The job was cancelled."""


class SupersededError(Exception):
    """A newer quick look of the same tab replaced this one."""


class Turns:
    """A line of jobs, of which the first has its turn; who hands it on may stand in line again."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._line: list[object] = []  # tickets
        self._since = 0.0

    def take(self, is_cancelled: Callable[[], bool]) -> object:
        """Wait for a turn; the ticket hands it on again."""
        ticket = object()
        with self._changed:
            self._line.append(ticket)
            while self._line[0] is not ticket and not is_cancelled():
                self._changed.wait(1.0)
            if is_cancelled():
                self._line.remove(ticket)
                self._changed.notify_all()
                raise CancelledByUserError
            self._since = time.monotonic()
        return ticket

    def give(self, ticket: object) -> None:
        """End the turn, if it has not ended."""
        with self._changed:
            if ticket in self._line:
                self._line.remove(ticket)
            self._changed.notify_all()

    def is_due(self) -> bool:
        """Whether the holder has had its time while another job waits."""
        with self._changed:
            return time.monotonic() - self._since > SLICE and len(self._line) > 1

    def wake(self) -> None:
        """Let those that wait see that they are cancelled."""
        with self._changed:
            self._changed.notify_all()


Look = Callable[[Callable[[], bool]], Any]  # its argument says whether a newer look of its tab waits


class QuickLooks:
    """Short work, one piece at a time, tabs in turn; a newer piece takes the place of an older one of its tab."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Look, asyncio.Future[Any]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def run(self, tab: str, work: Look) -> Any:
        """The result of `work`; raises SupersededError if a newer look came before it began, or made it give way."""
        result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        _, older = self._waiting.get(tab, (None, None))
        self._waiting[tab] = (work, result)  # keeps its place in the line
        if older is not None and not older.done():
            older.set_exception(SupersededError())
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        return await result

    async def _work(self) -> None:
        while self._waiting:
            tab = next(iter(self._waiting))
            work, result = self._waiting.pop(tab)
            if result.done():  # nobody waits for it
                continue
            with suppress(asyncio.InvalidStateError):  # nobody does any more
                try:
                    result.set_result(await asyncio.to_thread(work, partial(self._waiting.__contains__, tab)))
                except Exception as error:
                    result.set_exception(error)
        self._task = None


def describe_failure(error: Exception) -> str:
    """Say in one line what failed; an internal error goes to the terminal too."""
    if isinstance(error, HeatpriorError):
        return " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return "not enough memory; close other pictures, or cut this one into parts"
    sys.stderr.write(f"heatprior: error: {type(error).__name__}: {error}\n")
    why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return f"something unexpected happened ({why}); please report it"


class LongJob:
    """One piece of work in a thread of its own, which computes only while it is its turn."""

    def __init__(self, work: Work, turns: Turns, explain: Callable[[str], str], picture: str = "") -> None:
        self.number, self.picture = secrets.token_urlsafe(8), picture
        self._work, self._turns, self._explain = work, turns, explain
        self.state, self.fraction, self.error = "waiting", 0.0, ""
        self.outcome: dict[str, Any] = {}
        self.warnings: list[str] = []
        self._ticket: object = None
        self._unwanted = Event()
        self._begun = time.monotonic()
        self._thread = Thread(target=self._run, name=f"job-{self.number}", daemon=True)

    def start(self) -> LongJob:
        """Begin to wait for a turn."""
        self._thread.start()
        return self

    def cancel(self) -> None:
        """End it at the next band of the picture; nothing of it stays."""
        self._unwanted.set()
        self._turns.wake()

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, at most so many seconds."""
        self._thread.join(seconds)

    @property
    def is_finished(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.state in FINISHED

    def status(self) -> dict[str, Any]:
        """The status, as sent to the page."""
        running = self.state == "running" and 0.02 < self.fraction < 1.0
        seconds = time.monotonic() - self._begun
        return {
            "job": self.number,
            "state": "cancelling" if self._unwanted.is_set() and not self.is_finished else self.state,
            "progress": round(self.fraction, 4),
            "left": round(seconds * (1.0 - self.fraction) / self.fraction, 1) if running else None,
            "error": self.error,
            "warnings": self.warnings,
            **self.outcome,
        }

    def _run(self) -> None:
        step_back()
        try:
            with in_background(), collect_warnings() as self.warnings:
                self._ticket = self._turns.take(self._unwanted.is_set)
                self.state, self._begun = "running", time.monotonic()
                self.outcome = self._work(self._progress)
            self.state, self.fraction = "done", 1.0
        except CancelledByUserError:
            self.state = "cancelled"
        except Exception as error:  # a server goes on, whatever happens to one job
            if self._unwanted.is_set():  # maybe the server ends, and its threads with it
                self.state = "cancelled"
            else:
                self.error, self.state = self._explain(describe_failure(error)), "failed"
        finally:
            self._turns.give(self._ticket)

    def _progress(self, fraction: float) -> None:
        """Called between bands, with no lock held: where a job can end, or let others go first."""
        self.fraction = max(self.fraction, min(float(fraction), 1.0))
        if self._unwanted.is_set():
            raise CancelledByUserError
        if self._turns.is_due():
            self._turns.give(self._ticket)
            self._ticket = self._turns.take(self._unwanted.is_set)


_heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)  # the warnings of this thread


def capture_warnings() -> None:
    """Send warnings of the library to the list of the thread that causes them, if it has one, and nowhere else."""
    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = _record


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect the warnings of this thread inside the block, each once and in one line."""
    lines: list[str] = []
    token = _heard.set(lines)
    try:
        yield lines
    finally:
        _heard.reset(token)


def _record(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:  # noqa: ARG001
    if not issubclass(category, UserWarning):
        sys.stderr.write(f"heatprior: warning: {message}\n")
        return
    line, lines = " ".join(str(message).split()), _heard.get()
    if lines is not None and line not in lines:
        lines.append(line)
