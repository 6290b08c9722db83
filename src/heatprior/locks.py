"""Locks between processes, on open files, and locks between threads that a fork cannot leave locked for ever.

By a lock on a file processes tell what is in use from what a killed one left behind. Only Unix has them: elsewhere
every lock is granted, and nobody may conclude anything from one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from threading import RLock

AVAILABLE = os.name == "posix"


def lock(handle: int) -> None:
    """Take the lock of an open file, which is held until the file is closed; OSError if another process has it."""
    if AVAILABLE:
        fcntl = import_module("fcntl")
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


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
