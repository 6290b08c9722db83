"""Running the same function on many pieces, on all cores.

Each piece does its matrix products and its loops in one thread. The library of matrix products is held to one thread
meanwhile: two pools of threads that actively wait for each other are slower than one. How many threads there are is
numba's setting (`NUMBA_NUM_THREADS`, `numba.set_num_threads`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from numba import get_num_threads
from threadpoolctl import ThreadpoolController

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def for_each(function: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
    """The results of `function` on each piece, in order; at the first error the pieces not yet begun are left."""
    if len(pieces) <= 1:
        return [function(piece) for piece in pieces]
    threads = min(get_num_threads(), len(pieces))
    with _libraries().limit(limits=1, user_api="blas"):
        if threads == 1:
            return [function(piece) for piece in pieces]
        pool = ThreadPoolExecutor(threads)
        try:
            return list(pool.map(function, pieces))
        finally:
            pool.shutdown(cancel_futures=True)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
