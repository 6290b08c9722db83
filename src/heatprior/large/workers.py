"""Run blocks in threads, in processes or on a dask cluster, and keep a journal of those that are done."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from logging import CRITICAL
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from heatprior.errors import HeatpriorError, InvalidInputError, OutputFileError
from heatprior.files import explain_write_errors

AHEAD = 2  # blocks handed out for each thread of a worker: one to do, one to come
TIMEOUT = 20  # seconds in which a scheduler must answer
# Of processes on this machine: less of what dask does beside the work, and a heap that keeps freed memory. By a
# threshold of dask's own, glibc would map, zero and unmap all arrays above 128 kB anew, which takes much of the time.
CONFIGURATION = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**28,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,  # bytes: the most that glibc allows
}


class Pool(NamedTuple):
    """Takes tasks, and says how many it can run at a time now: workers come and go."""

    submit: Callable[..., Any]  # function, arguments → a future, of dask or of the standard library
    width: Callable[[], int]


@contextmanager
def pool_of(scheduler: str | None, workers: int | None, warm_up: Callable[[], None]) -> Iterator[Pool]:
    """Open the workers of a scheduler, processes on this machine, or threads; `warm_up` is called in each worker."""
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
            with config.set(CONFIGURATION):
                cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    dashboard_address=None,
                    silence_logs=CRITICAL,  # what fails is told by its future; the rest is of connections as they close
                )
        client = Client(cluster or scheduler, timeout=TIMEOUT)
    except (OSError, ValueError) as error:
        where = scheduler or f"{workers} workers on this machine"
        raise InvalidInputError(f"cannot reach {where}: {' '.join(str(error).split())}") from error
    try:
        client.register_plugin(_make_plugin(warm_up))
        yield Pool(partial(client.submit, pure=False), lambda: max(1, sum(client.nthreads().values())))
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def _make_plugin(warm_up: Callable[[], None]) -> Any:
    """A plugin that compiles in each worker before it gets a block, also in workers that join later."""
    import zarr  # noqa: PLC0415
    from distributed import WorkerPlugin  # noqa: PLC0415

    class WarmUp(WorkerPlugin):
        name = "heatprior-warm-up"
        idempotent = True

        def setup(self, worker: Any) -> None:  # noqa: ARG002
            zarr.config.set({"threading.max_workers": 1})  # to compress and decompress: there are other workers
            warm_up()

    return WarmUp()


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
            try:
                waiting.pop(name).result()
            except (HeatpriorError, OSError, MemoryError):
                raise
            except Exception as error:
                why = " ".join(str(error).split())[:300]
                raise OutputFileError(f"a block failed on a worker ({type(error).__name__}: {why})") from error
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


class Journal:
    """A file of lines: what the run is, what was found of its noise, and the blocks that are done.

    A block is written before its line, and a line without an end does not count: a kill costs blocks, no bits.
    Without `resume` the file is started anew: the blocks that it lists are gone.
    """

    def __init__(self, path: Path, about: Mapping[str, Any], *, resume: bool) -> None:
        self._path, self._about = path, json.dumps(about, sort_keys=True)
        with explain_write_errors(path, "; choose another place"):
            self._file = path.open("a+", encoding="utf-8")
        self._file.seek(0)
        lines = self._file.read().split("\n")[:-1]
        self.goes_on = resume and bool(lines) and lines[0] == self._about
        self.noted: dict[str, Any] = {}
        self.done: set[str] = set()
        self._file.truncate(len("".join(f"{line}\n" for line in lines).encode()) if self.goes_on else 0)
        if not self.goes_on:
            self._line(self._about)
            return
        for line in lines[1:]:
            if line.startswith("{"):
                self.noted |= json.loads(line)
            else:
                self.done.add(line)

    def note(self, **found: Any) -> None:
        """Keep what was estimated, for when the run is resumed."""
        self.noted |= found
        self._line(json.dumps(found))

    def mark(self, block: str) -> None:
        """Mark a block as done."""
        self.done.add(block)
        self._line(block)

    def _line(self, text: str) -> None:
        with explain_write_errors(self._path):
            self._file.write(f"{text}\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file; it stays for the next run."""
        self._file.close()
