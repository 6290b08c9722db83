"""Where blocks are computed: threads here, processes here, or the workers of a dask cluster; one interface to all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from logging import CRITICAL
from queue import SimpleQueue
from typing import Any, NamedTuple

from heatprior.errors import HeatpriorError, InvalidInputError, OutputFileError
from heatprior.large.allocation import keep_freed_memory

AHEAD = 2  # blocks handed out for each thread of a worker: one to do, one to come
ASK_AFTER = 1.0  # seconds
TIMEOUT = 20  # seconds in which a scheduler must answer
QUIETLY = {  # what dask's own processes do beside the work: on this machine they take it from the workers
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "5s",
}


class Pool(NamedTuple):
    """Something that takes tasks, how many it can do at a time now, and where it shows what it does."""

    submit: Callable[..., Any]  # function, arguments → a future, of dask or of the standard library
    width: Callable[[], int]
    dashboard: str | None = None


@contextmanager
def pool_of(scheduler: str | None, workers: int | None, warm_up: Callable[[], None]) -> Iterator[Pool]:
    """The workers of a scheduler, as many processes on this machine, or threads. `warm_up` is called in each worker."""
    if scheduler is None and workers is None:
        count = os.cpu_count() or 1
        with ThreadPoolExecutor(count) as threads:
            try:
                yield Pool(threads.submit, lambda: count)
            except BaseException:
                threads.shutdown(wait=True, cancel_futures=True)
                raise
        return
    if scheduler is not None and workers is not None:
        raise InvalidInputError("a scheduler names a cluster that runs, workers start one; give one of them")
    try:
        from dask import config  # noqa: PLC0415
        from distributed import Client, LocalCluster  # noqa: PLC0415
    except ImportError as error:
        raise InvalidInputError("workers need dask; pip install 'heatprior[large]'") from error
    cluster = None
    try:
        if scheduler is None:
            shown_at = "127.0.0.1:0" if find_spec("bokeh") else None  # dask draws its dashboard with bokeh
            with config.set(QUIETLY):
                cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    dashboard_address=shown_at,
                    silence_logs=CRITICAL,  # what fails is told by its future; the rest is of connections as they close
                )
        client = Client(cluster or scheduler, timeout=TIMEOUT)
    except (OSError, ValueError) as error:
        where = scheduler or f"{workers} workers on this machine"
        raise InvalidInputError(f"cannot reach {where}: {' '.join(str(error).split())}") from error
    try:
        client.register_plugin(_warming(warm_up))
        yield Pool(partial(client.submit, pure=False), _Width(client), _dashboard(client))
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def _dashboard(client: Any) -> str | None:
    """The address of the scheduler's dashboard; None if it has none."""
    try:
        return client.dashboard_link or None
    except KeyError:
        return None


class _Width:
    """How many threads the workers of a client have, asked now and then: workers come and go."""

    def __init__(self, client: Any) -> None:
        self._client, self._width, self._asked = client, 1, -ASK_AFTER

    def __call__(self) -> int:
        if time.monotonic() > self._asked + ASK_AFTER:
            self._width = max(1, sum(self._client.nthreads().values()))
            self._asked = time.monotonic()
        return self._width


def _warming(warm_up: Callable[[], None]) -> Any:
    """A plugin that compiles for the processor of a worker before it gets any block, also of those that come later."""
    from distributed import WorkerPlugin  # noqa: PLC0415

    class WarmUp(WorkerPlugin):
        name = "heatprior-warm-up"
        idempotent = True

        def setup(self, worker: Any) -> None:  # noqa: ARG002
            keep_freed_memory()
            decode_in_one_thread()
            warm_up()

    return WarmUp()


def decode_in_one_thread() -> None:
    """Have zarr of this process compress and decompress in one thread, not one per core: there are other workers."""
    import zarr  # noqa: PLC0415

    zarr.config.set({"threading.max_workers": 1})


def run(
    pool: Pool, function: Callable[..., Any], tasks: Iterable[tuple[str, tuple[Any, ...]]], done: Callable[[str], None]
) -> None:
    """Call function(*arguments) for every (name, arguments), some at a time, and `done` with the names as they end.

    The list of tasks is never in memory, here or in the scheduler. After an error no further task is begun.
    """
    waiting: dict[str, Any] = {}
    ended: SimpleQueue[str] = SimpleQueue()  # names, so that no time is spent on looking through all that wait

    def collect(most: int) -> None:
        while len(waiting) > most:
            name = ended.get()
            _result(waiting.pop(name))
            done(name)

    try:
        for name, arguments in tasks:
            waiting[name] = pool.submit(function, *arguments)
            waiting[name].add_done_callback(lambda _, name=name: ended.put(name))
            collect(max(0, AHEAD * pool.width() - 1))
        collect(0)
    except BaseException:
        for future in waiting.values():
            future.cancel()
        raise


def _result(future: Any) -> None:
    try:
        future.result()
    except (HeatpriorError, OSError, MemoryError):
        raise
    except Exception as error:
        why = " ".join(str(error).split())[:300]
        raise OutputFileError(f"a block failed on a worker ({type(error).__name__}: {why})") from error
