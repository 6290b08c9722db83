"""`heatprior denoise volume.ome.zarr`: a store denoised block by block into a second one, which appears when whole.

A task reads a crop, denoises it, and writes one block of whole chunks or shards: no two tasks write the same file, and
a task done twice writes the same bits. Until all is done the result is in a hidden folder beside its own name.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import product
from logging import CRITICAL
from math import prod
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
import zarr

from heatprior.border.pixels import type_white
from heatprior.border.scale import Places, squares
from heatprior.errors import HeatpriorError, ImageFileError, InvalidInputError, OutputFileError
from heatprior.files import check_place, claim, explain_write_errors, keep_apart, location, release, working_folder
from heatprior.kernels.threads import limit_threads
from heatprior.large import blocks, stores
from heatprior.large.stores import Image
from heatprior.noise.defects import Rule, places_of_rule, rule_of_squares
from heatprior.restoration.denoising import Settings
from heatprior.restoration.pipeline import Pipeline
from heatprior.version import __version__

BEGUN, WORKING, OLD = "begun", "store", "old"  # in the hidden folder: the result, and what it replaces
JOURNAL = "journal"
AREA = 2**22  # pixels of a block, about
WIDEST = 2**14  # columns of a block: cells are wide, so a block should be
MOST = 2**23  # pixels of so wide a block, unless one chunk or shard has more: they bound the memory of a worker
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

Block = tuple[slice, ...]
Report = Callable[[int, int], None]  # blocks done, of how many


class Task(NamedTuple):
    """What the blocks of one image have in common."""

    source: Path
    target: Path
    image: Image
    settings: Settings  # its prior is a name or a path that workers know too
    white: float
    sigmas: tuple[float, ...]  # one per channel, or one
    rules: tuple[Rule, ...]  # likewise; none if outliers are kept


class Done(NamedTuple):
    """What was done: blocks in all, those of an earlier run, and the noise levels of every image."""

    blocks: int
    found: int
    sigmas: dict[str, list[float]]


def denoise_store(
    source: Path,
    target: Path,
    settings: Settings,
    sigma: float | None = None,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
    force: bool = False,
    report: Report = lambda done, count: None,  # noqa: ARG005
) -> Done:
    """Denoise a zarr store or a TIFF into a new store, or go on with that; `report` is called as blocks are done."""
    source, target = source.absolute(), location(target)  # workers may be elsewhere
    keep_apart([target], [source, *filter(Path.is_file, [Path(str(settings.prior))])])
    images = stores.find_images(source)
    _check_target(target, force=force)
    folder = working_folder(target)
    with explain_write_errors(target):
        handle = claim(folder)
    if handle is None:
        raise OutputFileError(
            f"another run is writing the same output, or {folder} was not made by heatprior; wait, or choose another"
        )
    working = folder / WORKING
    chosen = [settings.quality, str(settings.prior), settings.steps, sigma, settings.white, settings.keep_outliers]
    about = {**stores.fingerprint(source, images), "settings": chosen, "version": __version__}
    try:
        journal = Journal(folder / JOURNAL, about, resume=working.is_dir())
    except OutputFileError:
        os.close(handle)
        raise
    finished = False
    try:
        if not journal.goes_on:
            _clear(folder, BEGUN, WORKING)
            with explain_write_errors(target):
                stores.make_like(source, images, folder / BEGUN)
                (folder / BEGUN).rename(working)  # there if and only if all of it is
        tasks = [_task(source, working, image, settings, sigma, journal) for image in images]
        with pool_of(scheduler, workers, partial(warm_up, settings)) as pool:
            found = _run_all(pool, tasks, journal, report)
        for leftover in working.rglob("*.partial"):  # of writers that were killed
            leftover.unlink()
        _check_target(target, force=force)  # somebody may have put something there meanwhile
        with explain_write_errors(target):
            _put_in_place(folder, target)
        finished = True
    except OutputFileError as error:
        raise OutputFileError(f"{error}; what is done is kept: run the same command again to go on") from error
    finally:
        journal.close()
        if finished or not journal.done:
            (folder / JOURNAL).unlink(missing_ok=True)
            _clear(folder, BEGUN, WORKING, OLD)
            release(folder, handle)
        else:
            os.close(handle)
    sigmas = {task.image.levels[0]: list(task.sigmas) for task in tasks}
    return Done(len(journal.done), found, sigmas)


def _task(source: Path, working: Path, image: Image, settings: Settings, sigma: float | None, journal: Journal) -> Task:
    array = stores.open_node(source, image.levels[0])
    blocks.check_local(_pipeline(settings, array.shape[-2:], array.dtype.kind == "f", image.in_colour))
    name, scale = image.levels[0], f"white of {image.levels[0]}"
    if scale not in journal.noted:  # else an earlier run found it
        full, sigmas, in_colour = settings.white, [sigma], image.in_colour
        if full is None:
            given = None if sigma is None else np.array(sigma)
            planes = _squares(source, image, by_channel=in_colour)  # of every colour, or of all planes, as in memory
            full = blocks.full_scale_of_squares(planes, given, type_white(np.zeros((1, 1), array.dtype)))
        if sigma is None:
            reports = blocks.noise_of_squares(_squares(source, image), "auto", None, full, in_colour=in_colour)
            sigmas = [float(report.sigma.flat[0]) for report in reports]
        journal.note(**{scale: full, name: sigmas})
    white, rules = journal.noted[scale], tuple[Rule, ...]()
    if not settings.keep_outliers:
        own = _squares(source, image, places_of_rule, by_channel=image.in_colour)
        rules = tuple(rule_of_squares(one, white, array.shape[-2] * array.shape[-1]) for one in own)
    return Task(source, working, image, settings, white, tuple(journal.noted[name]), rules)


def _squares(
    source: Path, image: Image, places: Callable[..., list[Places]] = squares, *, by_channel: bool = True
) -> list[list[np.ndarray[Any, Any]]]:
    """Of every channel, or of all together, what stands at these places of it."""
    shape, channel = stores.open_node(source, image.levels[0]).shape, image.channel_axis if by_channel else None
    return [
        [stores.read(source, image.levels[0], place) for place in blocks.squares_of_channel(shape, channel, c, places)]
        for c in range(1 if channel is None else shape[channel])
    ]


def _run_all(pool: Pool, tasks: list[Task], journal: Journal, report: Report) -> int:
    """Run all blocks level by level: one is complete before the next begins."""
    plan = [(task, level) for task in tasks for level in range(len(task.image.levels))]
    count, found = sum(prod(len(starts) for starts in _divide(*each)[0]) for each in plan), len(journal.done)
    report(found, count)

    def done(name: str) -> None:
        journal.mark(name)
        report(len(journal.done), count)

    for task, level in plan:
        run(pool, write_block, _list_remaining(task, level, journal.done), done)
    return found


def _list_remaining(task: Task, level: int, done: set[str]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """List the blocks of a level that are still to be done, by name, in the order of the array, one at a time."""
    starts, shape = _divide(task, level)
    for number, corner in enumerate(product(*starts)):
        if (name := f"{task.image.levels[level]} {number}") not in done:
            ends = (min(first + along.step, n) for first, along, n in zip(corner, starts, shape, strict=True))
            yield name, (task, level, tuple(map(slice, corner, ends)))


def _divide(task: Task, level: int) -> tuple[list[range], tuple[int, ...]]:
    """Divide a level into blocks of whole chunks or shards, of about AREA pixels: where they begin along each axis."""
    array = stores.open_node(task.target, task.image.levels[level], "r+")
    unit, shape = array.shards or array.chunks, array.shape
    channel = task.image.channel_axis if task.image.in_colour else None
    lengths = [min(n, length) for n, length in zip(unit, shape, strict=True)]
    if channel is not None:
        lengths[channel] = shape[channel]
    planes = int(np.prod(lengths[:-2]))
    columns = min(WIDEST, MOST // (planes * lengths[-2]))
    lengths[-1] = min(shape[-1], max(1, columns // unit[-1]) * unit[-1])
    lengths[-2] = min(shape[-2], max(1, AREA // (planes * lengths[-1] * unit[-2])) * unit[-2])
    return [range(0, length, step) for length, step in zip(shape, lengths, strict=True)], shape


def write_block(task: Task, level: int, block: Block) -> None:
    """Write one block of one level; this is what a worker does."""
    levels = task.image.levels
    array = stores.open_node(task.target, levels[level], "r+")
    pixels = stores.read_smaller(task.target, levels[level - 1], array.shape, block) if level else _denoise(task, block)
    with explain_write_errors(task.target):
        array[block] = pixels


def _denoise(task: Task, block: Block) -> np.ndarray[Any, Any]:
    """Denoise a block of the finest level."""
    array = stores.open_node(task.source, task.image.levels[0])
    settings, channel = task.settings, task.image.channel_axis
    pipeline = _pipeline(settings, array.shape[-2:], array.dtype.kind == "f", task.image.in_colour)
    wanted = (block[-2], block[-1])
    crop = stores.read(task.source, task.image.levels[0], (*block[:-2], *blocks.reads_of_block(pipeline, wanted)))
    sigmas = np.asarray(task.sigmas)
    if channel is not None and len(sigmas) > 1:
        sigmas = sigmas[block[channel]]
    shared: dict[str, Any] = {"white": task.white, "rules": task.rules}
    if task.image.in_colour and channel is not None:
        levels = blocks.Levels(sigmas[:, None, None])
        clean = blocks.denoise_block(np.moveaxis(crop, channel, -3), levels, pipeline, wanted, in_colour=True, **shared)
        return np.moveaxis(clean, -3, channel)
    levels = blocks.Levels(sigmas.reshape([*(-1 if axis == channel else 1 for axis in range(crop.ndim - 2)), 1, 1, 1]))
    return blocks.denoise_block(crop[..., None, :, :], levels, pipeline, wanted, **shared)[..., 0, :, :]


@lru_cache(maxsize=8)
def _pipeline(settings: Settings, shape: tuple[int, int], is_float: bool, in_colour: bool) -> Pipeline:
    return settings.pipeline(settings.find_prior(), shape, has_gaps=is_float, in_colour=in_colour)


def warm_up(settings: Settings) -> None:
    """Compile, or load from the cache, what the first block would otherwise wait for."""
    side = 256  # which holds some scales
    pipeline = settings.pipeline(settings.find_prior(), (side, side))
    noisy = np.random.default_rng(0).normal(0.5, 0.1, (1, side, side)).astype(np.float32)
    with limit_threads(1):
        blocks.denoise_block(
            noisy, blocks.Levels(np.asarray(0.1)), pipeline, (slice(0, side), slice(0, side)), white=1.0
        )


def _check_target(target: Path, *, force: bool) -> None:
    """Refuse what could not be written, and what may not be replaced: anything but a store of images, or nothing."""
    check_place(target)
    if target.suffix != ".zarr":
        raise InvalidInputError(f"{target} does not end in .zarr; stores are written as .zarr or .ome.zarr")
    if not os.path.lexists(target):
        return
    if target.is_symlink():
        raise OutputFileError(f"{target} is a link, and links are not replaced; give the place to which it leads")
    if not force:
        raise OutputFileError(f"{target} exists already; choose another name, or have it replaced (force)")
    if not target.is_dir():
        raise OutputFileError(f"{target} is a file, not a zarr store, and is not replaced; choose another name")
    if not any(target.iterdir()):
        return
    refusal = f"{target} holds something else than a zarr store of images and is not replaced"
    if stores.is_store(target) and (foreign := stores.find_foreign(target)) is not None:
        raise OutputFileError(f"{refusal}: {foreign}; move that away, or choose another name")
    try:
        stores.find_images(target)
    except ImageFileError as error:
        raise OutputFileError(f"{refusal}; choose another name") from error


def _put_in_place(folder: Path, target: Path) -> None:
    """Give the result its name; what stood there goes when the result is there."""
    if os.path.lexists(target):
        _clear(folder, OLD)
        target.rename(folder / OLD)
    (folder / WORKING).rename(target)


def _clear(folder: Path, *names: str) -> None:
    """Remove stores in a folder of our own."""
    for name in names:
        shutil.rmtree(folder / name, ignore_errors=True)


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
