"""Locks between threads that a fork cannot leave locked for ever."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import RLock


def thread_lock() -> AbstractContextManager[bool]:
    """Return a lock between threads that no other thread holds when a process is forked: the fork waits for it.

    Else the child would wait for a thread that it does not have.
    """
    made = RLock()
    hold_during_forks(made.acquire, made.release)
    return made


def hold_during_forks(acquire: Callable[[], object], release: Callable[[], object]) -> None:
    """Acquire a lock before every fork, and release it after, in the parent and in the child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=acquire, after_in_parent=release, after_in_child=release)
