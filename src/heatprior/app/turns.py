"""Fair shares of two cores: long jobs take turns, tab by tab; quick looks go first, of each tab only the newest.

A long job uses all cores while it has its turn, and hands it on between two bands of its image. So each of ten tabs
gets a tenth, not what the first one leaves. Quick looks run beside it, on threads that it makes way for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from threading import Condition
from typing import Any, NamedTuple

SLICE = 0.25  # seconds that a turn lasts at least


class CancelledByUserError(Exception):
    """A job that nobody waits for any more."""


class SupersededError(Exception):
    """A quick look that a newer one of the same tab has replaced."""


class Turns:
    """One holder at a time; of those that wait, the tab whose last turn is longest ago is next."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._waiting: list[tuple[str, object]] = []  # tab, ticket
        self._holder: object | None = None
        self._since = 0.0
        self._last: dict[str, int] = {}  # number of the last turn of a tab
        self._count = 0

    def take(self, tab: str, is_cancelled: Callable[[], bool]) -> object:
        """Wait for a turn; the ticket hands it on again."""
        ticket = object()
        with self._changed:
            self._waiting.append((tab, ticket))
            try:
                while self._holder is not None or self._next() is not ticket:
                    if is_cancelled():
                        raise CancelledByUserError
                    self._changed.wait(1.0)
                if is_cancelled():
                    raise CancelledByUserError
                self._holder, self._since = ticket, time.monotonic()
                self._count += 1
                self._last[tab] = self._count
            finally:
                self._waiting.remove((tab, ticket))
                self._changed.notify_all()
        return ticket

    def give(self, ticket: object) -> None:
        """End the turn."""
        with self._changed:
            if self._holder is ticket:
                self._holder = None
            self._changed.notify_all()

    def is_due(self, tab: str) -> bool:
        """Whether the holder, of this tab, has had its time while another tab waits."""
        with self._changed:
            return time.monotonic() - self._since > SLICE and any(other != tab for other, _ in self._waiting)

    @property
    def waiting(self) -> int:
        """How many wait."""
        with self._changed:
            return len(self._waiting)

    def wake(self) -> None:
        """Let those that wait see that they are cancelled."""
        with self._changed:
            self._changed.notify_all()

    def _next(self) -> object:
        return min(self._waiting, key=lambda entry: self._last.get(entry[0], 0))[1]


Look = Callable[[Callable[[], bool]], Any]  # is told how to ask whether a newer look of its tab waits


class _Look(NamedTuple):
    work: Look
    result: asyncio.Future[Any]


class QuickLooks:
    """Short work, one piece at a time, tabs in turn; a newer piece takes the place of an older one of its tab."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Look] = {}
        self._task: asyncio.Task[None] | None = None

    async def run(self, tab: str, work: Look) -> Any:
        """The result of `work`; raises SupersededError if a newer look came before it began, or made it give way."""
        result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        older = self._waiting.get(tab)
        self._waiting[tab] = _Look(work, result)  # keeps its place in the line
        if older is not None and not older.result.done():
            older.result.set_exception(SupersededError())
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        return await result

    async def _work(self) -> None:
        while self._waiting:
            tab = next(iter(self._waiting))
            look = self._waiting.pop(tab)
            if look.result.done():  # nobody waits for it
                continue
            try:
                value = await asyncio.to_thread(look.work, partial(self._waiting.__contains__, tab))
            except Exception as error:
                if not look.result.done():
                    look.result.set_exception(error)
            else:
                if not look.result.done():
                    look.result.set_result(value)
        self._task = None
