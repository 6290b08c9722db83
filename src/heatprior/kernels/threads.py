"""Running the same function on many pieces, on all cores.

Each piece does its matrix products and its loops in one thread. The BLAS is limited to one thread meanwhile: two thread
pools that spin while they wait for each other are slower than one. The number of threads is
numba's setting (`NUMBA_NUM_THREADS`, `numba.set_num_threads`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache
from threading import current_thread, get_native_id, local
from typing import Any, TypeVar

from numba import get_num_threads, set_num_threads
from threadpoolctl import ThreadpoolController

from heatprior.errors import InvalidInputError
from heatprior.locks import thread_lock
from heatprior.scipy_subset import extension

POOL = "heatprior"  # how the names of its threads begin
STEP_BACK = 5  # how much nicer than others the threads of work in the background are: a quarter of what is contended
Piece = TypeVar("Piece")
Result = TypeVar("Result")


def for_each(function: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
    """The results of `function` on each piece, in order; after an error no further piece is begun, and it is raised."""
    threads = min(_threads(), len(pieces))
    if current_thread().name.startswith(POOL):  # a piece of a piece runs where it is
        return list(map(function, pieces))
    with products_in_one_thread():  # a single piece, too: shared among threads, products have other bits
        if threads <= 1:
            return list(map(function, pieces))
        results: list[Any] = [None] * len(pieces)
        numbers = iter(range(len(pieces)))  # shared: each number is given out once
        errors: dict[int, Exception] = {}

        def work() -> None:
            for number in numbers:
                if errors:
                    return
                try:
                    results[number] = function(pieces[number])
                except Exception as error:  # raised below, in the thread of the caller
                    errors[number] = error

        begun: list[Future[None]] = []
        try:
            for _ in range(threads):
                begun.append(_pool(threads, _Place.background).submit(work))
        except RuntimeError:  # the interpreter ends, and its pools take no more; or there can be no more threads
            work()
        wait(begun)
        if errors:
            raise errors[min(errors)]
        return results


def meanwhile(function: Callable[[], Result]) -> Callable[[], Result]:
    """Begin `function` in the background, its pieces in turn; returns what waits for its result, or finds it then."""
    if _threads() == 1:
        return function
    try:
        return _background().submit(function).result
    except RuntimeError:  # as above
        return function


def _threads() -> int:
    """Return numba's setting; it takes locks of its own to look it up, and a fork must not find them taken."""
    with _Limit.lock:
        return get_num_threads()


class _PlaceOfWork(local):
    """Of each thread: whether what it begins is work in the background, and how often it limits the BLAS now."""

    background = False
    limits = 0


_Place = _PlaceOfWork()


@contextmanager
def in_background() -> Iterator[None]:
    """What this thread begins inside runs on threads of its own, which make way for those of other callers.

    Without it, callers share the threads, and whoever comes later waits until a thread is free. Where the system knows
    no priority of single threads, they only do not wait for each other.
    """
    before, _Place.background = _Place.background, True
    try:
        yield
    finally:
        _Place.background = before


def step_back() -> None:
    """Let other threads go before this one, where the system can do that for a single thread (Linux).

    Counted from the main thread: a thread begins with the priority of the one that started it, which may have stepped
    back itself, and two steps would leave it next to nothing on a busy computer.
    """
    with suppress(OSError, AttributeError):
        if sys.platform == "linux":
            usual = os.getpriority(os.PRIO_PROCESS, os.getpid())
            os.setpriority(os.PRIO_PROCESS, get_native_id(), usual + STEP_BACK)


class _Limit:
    """How many callers limit the BLAS to one thread now, and how to undo it when the last one leaves."""

    lock = thread_lock()
    holders = 0
    undo: Callable[[], None] = staticmethod(lambda: None)


@contextmanager
def products_in_one_thread() -> Iterator[None]:
    """Limit the BLAS to one thread, for as long as any caller, in any thread, is inside."""
    with _Limit.lock:
        if _Limit.holders == 0:
            for library in _controlled():
                library.clear_controlling_thread(force=True)
            _Limit.undo = _libraries().limit(limits=1, user_api="blas").restore_original_limits
        _Limit.holders += 1
        _Place.limits += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.holders -= 1
            _Place.limits -= 1
            if _Limit.holders == 0:
                for library in _controlled():  # the last to leave need not be the first that came
                    library.clear_controlling_thread(force=True)
                _Limit.undo()


@contextmanager
def limit_threads(threads: int) -> Iterator[None]:
    """Limit what this thread begins to so many threads, each with one of the BLAS."""
    before = _threads()
    try:
        set_num_threads(threads)
    except ValueError as error:
        raise InvalidInputError(f"threads is {threads}; expected 1 or more, at most the number of cores") from error
    try:
        with products_in_one_thread():
            yield
    finally:
        set_num_threads(before)


@cache
def _pool(threads: int, background: bool = False) -> ThreadPoolExecutor:
    """Threads that stay: creating them for every call costs time, and their caches would be cold."""
    return ThreadPoolExecutor(threads, POOL, initializer=step_back if background else None)


@cache
def _background() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, POOL)


def _forget_other_threads() -> None:
    """In a child process, which has none of its parent's threads: neither pools nor limits but those of this one."""
    _pool.cache_clear()
    _background.cache_clear()
    if _Limit.holders > _Place.limits == 0:
        for library in _controlled():
            library.clear_controlling_thread(force=True)
        _Limit.undo()
    _Limit.holders = _Place.limits


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


@cache
def _libraries() -> ThreadpoolController:
    """All that is loaded; numba takes its products from scipy's BLAS, which it would load only later."""
    extension("scipy.linalg.cython_blas")
    return ThreadpoolController()


@cache
def _controlled() -> list[Any]:
    """Libraries that a thread must take over to set limits: from 3.8 on threadpoolctl keeps to the first that did."""
    return [library for library in _libraries().lib_controllers if hasattr(library, "clear_controlling_thread")]
