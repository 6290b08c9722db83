"""Locks on open files, by which processes tell what is in use from what a killed one left behind.

Only Unix has them: elsewhere every lock is granted, and nobody may conclude anything from one.
"""

from __future__ import annotations

import os
from importlib import import_module

AVAILABLE = os.name == "posix"


def lock(handle: int) -> None:
    """Take the lock of an open file, which is held until the file is closed; OSError if another process has it."""
    if AVAILABLE:
        fcntl = import_module("fcntl")
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
