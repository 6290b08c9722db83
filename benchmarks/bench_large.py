"""An OME-Zarr of gigapixels denoised with `--fast`: cost per megapixel, memory of a process, two workers against one.

    python benchmarks/bench_large.py FOLDER --side 65536

makes a 16-bit image of that side (1,024² chunks; noise everywhere, a photograph in one chunk of eight), denoises it on
two workers, then a 16-megapixel one, and writes a JSON. With `--slice 60` it stops after about 60 seconds (exit code
3), and the same command goes on, as a store does; the JSON is of what is done. Some slices may be of `--workers 1`; on
an `--idle` machine blocks per second are compared too. `--tasks` counts tasks that do nothing. So, on an idle machine:

    python benchmarks/bench_large.py FOLDER --make
    python benchmarks/bench_large.py FOLDER
    for workers in 1 2 1 2; do
        python benchmarks/bench_large.py FOLDER --side 16384 --idle --workers $workers --result bench_large-workers
    done
    python benchmarks/bench_large.py FOLDER --side 16384 --tasks --result bench_large-workers

Costs are compared in processor time, between the first block and the last, which other work on the machine disturbs
less; it still does, so each slice of the large image is followed by the small one, in the same company.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
from measure import write_result

CHUNK = 1024
SIGMA = 900.0
KINDS = 8  # different chunks with a photograph, and without; the noise of each is its own
SMALL = 4096  # side
WINDOW = 6  # blocks in a row, whose time tells a rate: the median of all such times, and the shortest
MORE_IS_LEFT = 3  # exit code


def make(path: Path, side: int, seed: int = 0) -> None:
    """A store of side×side pixels, 16 bits, with its pyramid still to be filled."""
    import zarr
    from skimage import data

    from heatprior.large.stores import attributes_of_image, shapes_of_levels

    if path.exists():
        return
    rng = np.random.default_rng(seed)
    photograph = np.tile(cast(Any, data).camera().astype(np.float32) * 200.0, (2, 2))
    clean = [np.full((CHUNK, CHUNK), 4000.0, np.float32), photograph]
    noisy = [
        [
            np.clip(x + SIGMA * rng.standard_normal(x.shape, np.float32), 0, 65535).astype(np.uint16)
            for _ in range(KINDS)
        ]
        for x in clean
    ]
    shapes = shapes_of_levels((side, side))
    scales = [[0.25 * side / shape[0]] * 2 for shape in shapes]
    unfinished = path.with_name(f"{path.name}.making")
    shutil.rmtree(unfinished, ignore_errors=True)
    units = {"y": "micrometer", "x": "micrometer"}
    group = zarr.create_group(unfinished, attributes=attributes_of_image("large", "yx", units, scales, []))
    for number, shape in enumerate(shapes):
        group.create_array(str(number), shape=shape, dtype="uint16", chunks=(CHUNK, CHUNK))
    first: dict[tuple[int, int], Path] = {}  # each different chunk is compressed once, and copied
    for row in range(side // CHUNK):
        for column in range(side // CHUNK):
            kind = (int(rng.integers(8) == 0), int(rng.integers(KINDS)))
            chunk = unfinished / "0" / "c" / str(row) / str(column)
            if kind in first:
                chunk.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(first[kind], chunk)
            else:
                places = tuple(slice(number * CHUNK, (number + 1) * CHUNK) for number in (row, column))
                group["0"][places] = noisy[kind[0]][kind[1]]
                first[kind] = chunk
    unfinished.rename(path)


def with_children(pid: int) -> list[int]:
    """A process and all below it: found in one pass over all processes, since what measures takes time as well."""
    below: dict[int, list[int]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(process.joinpath("stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        below.setdefault(parent, []).append(int(process.name))
    found = [pid]
    for parent in found:  # which grows meanwhile
        found += below.get(parent, [])
    return found


def peak_memory(pid: int) -> float:
    """Megabytes that one of the processes below this one, or itself, has had at most."""
    peaks = [0.0]
    for process in with_children(pid):
        try:
            status = Path(f"/proc/{process}/status").read_text()
        except OSError:
            continue
        peaks += [int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")]
    return max(peaks)


class TimeIsUpError(Exception):
    """The slice is over."""


def denoise_once(source: Path, target: Path, workers: int, longest: float) -> None:
    """Print seconds and processor seconds, from the first block to the last, and how many blocks were done.

    When the first block is begun workers are there, and have compiled; what is interrupted at the end of a slice is
    done again in the next, and counts as time.
    """
    from heatprior.large.files import denoise_store
    from heatprior.large.stores import open_node
    from heatprior.restoration.denoising import Settings

    side = int(open_node(source, "0").shape[0])
    told: list[tuple[float, float, int]] = []

    def note(done: int, _: int) -> None:
        told.append((time.perf_counter(), processor_seconds(), done))
        if told[-1][0] - told[0][0] > longest:
            raise TimeIsUpError

    finished = True
    try:
        denoise_store(source, target, Settings(quality="fast"), workers=workers, report=note)
    except TimeIsUpError:
        finished = False
    seconds, processor, blocks = (last - first for first, last in zip(told[0], told[-1], strict=True))
    found = {"seconds": seconds, "processor_seconds": processor, "blocks": blocks, "finished": finished}
    finest = blocks_of_finest(side)
    ends = [moment for moment, _, done in told[1:] if done <= finest]  # two workers begin together: not from then on
    if len(ends) > WINDOW:
        times = [b - a for a, b in zip(ends, ends[WINDOW:], strict=False)]
        found |= {"blocks_per_second": WINDOW / float(np.median(times)), "at_best": WINDOW / min(times)}
    print(json.dumps(found))


def processor_seconds() -> float:
    """Of all processes below this one, and of itself."""
    ticks = 0
    for process in with_children(os.getpid()):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(folder: Path, side: int, workers: int, longest: float = float("inf")) -> dict[str, Any]:
    """One run or a slice of one, in a process of its own, of which each worker is a child."""
    source, target = folder / f"{side}.ome.zarr", folder / f"{side}-clean.ome.zarr"
    make(source, side)
    command = [sys.executable, __file__, str(folder), "--once", str(source), str(target), str(workers), str(longest)]
    load, peak = round(os.getloadavg()[0], 1), 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, peak_memory(process.pid))  # the system keeps the peak, so it is not asked often
            time.sleep(2.0)
        said = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(process.returncode)
    sizes = {"megabytes_in": megabytes(source), "megabytes_out": megabytes(target)}
    shutil.rmtree(target, ignore_errors=True)
    found = json.loads(said.splitlines()[-1])
    return {"side": side, "workers": workers, **found, "load_before": load, "peak_megabytes": round(peak), **sizes}


def megabytes(folder: Path) -> float:
    """What is in a folder."""
    return round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6, 1)


def tasks_per_second(count: int = 4000, in_flight: int = 1000) -> float:
    """Tasks that do nothing, handed out as blocks are, through a scheduler to two workers on the same cores."""
    from heatprior.large.files import AHEAD, pool_of, run

    with pool_of(None, 2, _nothing) as pool:
        begin = time.perf_counter()
        tasks = ((str(number), ("block", number)) for number in range(count))
        run(pool._replace(width=lambda: in_flight // AHEAD), _nothing, tasks, lambda name: None)  # noqa: ARG005
        return round(count / (time.perf_counter() - begin))


def _nothing(*_: object) -> None:
    pass


def blocks_of_finest(side: int) -> int:
    """They come first; each has one row of chunks, and as many columns as a block may."""
    from heatprior.large.files import WIDEST

    return side // CHUNK * -(-side // WIDEST)


def megapixels_done(slices: list[dict[str, Any]]) -> float:
    """Of the finest level, in slices of one image or in several runs of it."""
    side: int = slices[0]["large"]["side"]
    finest = blocks_of_finest(side)
    done, of_this = 0, 0
    for each in slices:
        of_this += each["large"]["blocks"]
        if each["large"]["finished"]:
            done, of_this = done + min(of_this, finest), 0
    return (done + min(of_this, finest)) / finest * side**2 / 1e6


def costs_of(slices: list[dict[str, Any]]) -> list[float]:
    """Processor seconds per megapixel of the large image, and of the small one beside its slices."""
    blocks = sum(each["large"]["blocks"] for each in slices)
    large = sum(each["large"]["processor_seconds"] for each in slices)
    small = sum(each["large"]["blocks"] * each["small"]["processor_seconds"] for each in slices) / blocks
    return [large / megapixels_done(slices), small / (SMALL**2 / 1e6)]


def petabyte(cost: float, workers: int = 1000, shard: int = 8192) -> dict[str, float]:
    """On paper: 16-bit pixels in shards, at `cost` processor seconds per megapixel, on workers of one core."""
    size = 5e8  # megapixels
    seconds, tasks = size * cost / workers, size * 1e6 / shard**2
    return {
        "hours": round(seconds / 3600, 1),
        "million_tasks": round(tasks / 1e6, 2),
        "tasks_per_second": round(tasks / seconds, 1),
        "gigabytes_read_per_second": round(1.5e6 / seconds, 1),  # once, and half as much again around every shard
        "gigabytes_written_per_second": round(4e6 / 3 / seconds, 1),  # with the pyramid
    }


def record_of(slices: list[dict[str, Any]], tasks: int | None) -> dict[str, Any]:
    """Sums over the slices of the large image, and ratios."""
    costs, last = costs_of(slices), slices[-1]["large"]
    record: dict[str, Any] = {
        "seed": 0,
        "cores": os.cpu_count(),
        "side": last["side"],
        "finished": last["finished"],
        "megapixels_done": round(megapixels_done(slices)),
        "processor_seconds_per_megapixel": {"large": round(costs[0], 4), "small": round(costs[1], 4)},
        "cost_large_over_small": round(costs[0] / costs[1], 3),
        "minutes": round(sum(each["large"]["seconds"] for each in slices) / 60, 1),
        "petabyte": petabyte(costs[0]),
        "peak_megabytes_of_a_process": max(each[name]["peak_megabytes"] for each in slices for name in each),
        "megabytes_in": last["megabytes_in"],
        "megabytes_out": last["megabytes_out"],
    }
    idle = [each["large"] for each in slices if each["large"]["idle"]]
    rates = [[run.get("blocks_per_second", 0.0) for run in idle if run["workers"] == count] for count in (1, 2)]
    if idle:
        cost, small = costs_of([each for each in slices if each["large"]["idle"]])
        record["idle_processor_seconds_per_megapixel"] = {"large": round(cost, 4), "small": round(small, 4)}
        record["idle_cost_large_over_small"] = round(cost / small, 3)
        record["idle_cores_busy"] = {
            f"{count} workers": round(
                sum(run["processor_seconds"] for run in idle if run["workers"] == count)
                / sum(run["seconds"] for run in idle if run["workers"] == count),
                2,
            )
            for count in sorted({run["workers"] for run in idle})
        }
    if all(rates):
        one, two = map(max, rates)
        record |= {"blocks_per_second": {"one worker": round(one, 4), "two workers": round(two, 4)}}
        record["two_workers_over_one"] = round(two / one, 3)
    return {**record, "tasks_per_second": tasks, "slices": slices}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--side", type=int, default=65536)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--slice", type=float, default=float("inf"), help="seconds of the large image at a time")
    parser.add_argument("--idle", action="store_true", help="nothing else runs: compare blocks per second")
    parser.add_argument("--make", action="store_true", help="make the images and no more")
    parser.add_argument("--tasks", action="store_true", help="count tasks that do nothing, and no more")
    parser.add_argument("--record", action="store_true", help="write the JSON of what was measured, and no more")
    parser.add_argument("--result", default="bench_large")
    parser.add_argument("--once", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        source, target, workers, longest = arguments.once
        denoise_once(Path(source), Path(target), int(workers), float(longest))
        return
    folder, side = arguments.folder, arguments.side
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.make:
        for length in (SMALL, side):
            make(folder / f"{length}.ome.zarr", length)
        return
    kept = folder / f"{side}-slices.json"
    state = json.loads(kept.read_text()) if kept.exists() else {"slices": [], "tasks": None}
    if arguments.tasks:
        state["tasks"] = tasks_per_second()
    elif not arguments.record:
        large = measure(folder, side, arguments.workers, arguments.slice) | {"idle": arguments.idle}
        state["slices"].append({"large": large, "small": measure(folder, SMALL, arguments.workers)})
    kept.write_text(json.dumps(state))
    if state["slices"]:
        write_result(arguments.result, record_of(state["slices"], state["tasks"]))
    if not (state["slices"] and state["slices"][-1]["large"]["finished"]):
        raise SystemExit(MORE_IS_LEFT)


if __name__ == "__main__":
    main()
