"""Locks between threads that a fork cannot leave locked for ever."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from threading import RLock
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property", "hold_during_forks", "thread_lock"]

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801 (it stands in for that one)
        """That of Python 3.12, without the lock that a fork could find taken: two threads may compute it."""

        def __init__(self, function: Callable[[Any], Any]) -> None:
            super().__init__(function)
            self.lock = nullcontext()


def thread_lock() -> AbstractContextManager[bool]:
    """Return a lock between threads that a fork waits for, since the child lacks the thread that holds it."""
    made = RLock()
    hold_during_forks(made.acquire, made.release)
    return made


def hold_during_forks(acquire: Callable[[], object], release: Callable[[], object]) -> None:
    """Acquire a lock before every fork, and release it after, in the parent and in the child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=acquire, after_in_parent=release, after_in_child=release)
