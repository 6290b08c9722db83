"""An OME-Zarr of gigapixels denoised with `--fast`: time per megapixel, memory of a process, two workers against one.

    python benchmarks/bench_large.py FOLDER --side 65536

makes a 16-bit image of that side (1,024² chunks; noise everywhere, a photograph in one chunk of eight), denoises it on
two workers, smaller ones on one worker and on two, hands out tasks that do nothing, and writes a JSON. With
`--slice 240` it stops after about 240 seconds (exit code 3), and the same command goes on, as a store does, until the
JSON is there. The machine should be doing nothing else meanwhile. `--make` makes the images and no more.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, cast

import numpy as np
from measure import write_result

CHUNK = 1024
SIGMA = 900.0
KINDS = 8  # different chunks with a photograph, and without; the noise of each is its own
REPEATS = 3
LEAST = 45  # seconds that are worth beginning
MORE_IS_LEFT = 3  # exit code


def make(path: Path, side: int, seed: int = 0) -> None:
    """A store of side×side pixels, 16 bits, with its pyramid still to be filled."""
    import zarr
    from skimage import data

    from heatprior.large.ngff import attributes_of_image
    from heatprior.large.pyramid import shapes_of_levels

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
    group = zarr.create_group(unfinished, attributes=attributes_of_image("large", "yx", units, scales))
    for number, shape in enumerate(shapes):
        group.create_array(str(number), shape=shape, dtype="uint16", chunks=(CHUNK, CHUNK))
    for row in range(0, side, CHUNK):
        for column in range(0, side, CHUNK):
            group["0"][row : row + CHUNK, column : column + CHUNK] = noisy[int(rng.integers(8) == 0)][
                rng.integers(KINDS)
            ]
    unfinished.rename(path)


def children(pid: int) -> Iterator[int]:
    """All processes below one."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(process.joinpath("stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if parent == pid:
            yield int(process.name)
            yield from children(int(process.name))


def peak_memory(pid: int) -> float:
    """Megabytes that one of the processes below this one, or itself, has had at most."""
    peaks = [0.0]
    for process in [pid, *children(pid)]:
        try:
            status = Path(f"/proc/{process}/status").read_text()
        except OSError:
            continue
        peaks += [int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")]
    return max(peaks)


class TimeIsUpError(Exception):
    """The slice is over."""


def denoise_once(source: Path, target: Path, workers: int, longest: float) -> None:
    """Print seconds, from the first block to the last, blocks, and whether all is done.

    When the first block is begun workers are there, and have compiled; what is interrupted at the end of a slice is
    done again in the next, and counts as time.
    """
    from heatprior.large.files import Settings, denoise_store
    from heatprior.restoration.qualities import prior_name

    told: list[tuple[float, int]] = []

    def note(done: int, _: int) -> None:
        told.append((time.perf_counter(), done))
        if told[-1][0] - told[0][0] > longest:
            raise TimeIsUpError

    finished = True
    try:
        denoise_store(source, target, Settings(prior_name("fast")), workers=workers, told=note)
    except TimeIsUpError:
        finished = False
    (begin, before), (end, after) = told[0], told[-1]
    print(json.dumps({"seconds": end - begin, "blocks": after - before, "finished": finished}))


def measure(folder: Path, side: int, workers: int, longest: float = float("inf")) -> dict[str, Any]:
    """One run or a slice of one, in a process of its own, of which each worker is a child."""
    source, target = folder / f"{side}.ome.zarr", folder / f"{side}-clean.ome.zarr"
    make(source, side)
    command = [sys.executable, __file__, str(folder), "--once", str(source), str(target), str(workers), str(longest)]
    peak = 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, peak_memory(process.pid))
            time.sleep(0.3)
        said = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(process.returncode)
    sizes = {"megabytes_in": megabytes(source), "megabytes_out": megabytes(target)}
    shutil.rmtree(target, ignore_errors=True)
    found = json.loads(said.splitlines()[-1])
    return {"side": side, "workers": workers, **found, "peak_megabytes": round(peak), **sizes}


def megabytes(folder: Path) -> float:
    """What is in a folder."""
    return round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6, 1)


def tasks_per_second(count: int = 4000, in_flight: int = 1000) -> float:
    """Tasks that do nothing, handed out as blocks are, through a scheduler to two workers on the same cores."""
    from heatprior.large.workers import AHEAD, pool_of, run

    with pool_of(None, 2, _nothing) as pool:
        begin = time.perf_counter()
        tasks = ((str(number), ("block", number)) for number in range(count))
        run(pool._replace(width=lambda: in_flight // AHEAD), _nothing, tasks, lambda name: None)  # noqa: ARG005
        return round(count / (time.perf_counter() - begin))


def _nothing(*_: object) -> None:
    pass


def line_of(runs: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """One line of the record, of runs of one image, or slices of one run, that took so long."""
    side = runs[0]["side"]
    return {
        "side": side,
        "workers": runs[0]["workers"],
        "seconds": round(seconds, 2),
        "of": [{"seconds": round(run["seconds"], 2), "blocks": run["blocks"]} for run in runs],
        "seconds_per_megapixel": round(seconds / (side * side / 1e6), 4),
        "peak_megabytes_of_a_process": max(run["peak_megabytes"] for run in runs),
        "megabytes_in": runs[-1]["megabytes_in"],
        "megabytes_out": runs[-1]["megabytes_out"],
    }


def record_of(runs: list[dict[str, Any]], sides: tuple[int, int, int], load: float) -> dict[str, Any]:
    """Medians of the smaller images, the sum of the slices of the large one, and their ratios."""
    small, moderate, large = sides

    def repeated(side: int, workers: int) -> dict[str, Any]:
        same = [run for run in runs if (run["side"], run["workers"]) == (side, workers)]
        return line_of(same, median(run["seconds"] for run in same))

    slices = [run for run in runs if run["side"] == large]
    lines = [repeated(small, 2), repeated(moderate, 1), repeated(moderate, 2)]
    lines.append(line_of(slices, sum(run["seconds"] for run in slices)))
    cost = [line["seconds_per_megapixel"] for line in lines]
    return {
        "seed": 0,
        "load_before": load,
        "cores": os.cpu_count(),
        "lines": lines,
        "cost_large_over_small": round(cost[3] / cost[0], 3),
        "two_workers_over_one": round(cost[1] / cost[2], 3),
        "peak_megabytes_of_a_process": max(line["peak_megabytes_of_a_process"] for line in lines),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--side", type=int, default=65536)
    parser.add_argument("--moderate", type=int, default=8192)
    parser.add_argument("--small", type=int, default=4096)
    parser.add_argument("--slice", type=float, default=float("inf"), help="seconds after which to stop and be resumed")
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--result", default="large")
    parser.add_argument("--once", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        source, target, workers, longest = arguments.once
        denoise_once(Path(source), Path(target), int(workers), float(longest))
        return
    began, sides = time.monotonic(), (arguments.small, arguments.moderate, arguments.side)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.make:
        for side in sides:
            make(arguments.folder / f"{side}.ome.zarr", side)
        return
    kept = arguments.folder / f"{arguments.side}-runs.json"
    state = json.loads(kept.read_text()) if kept.exists() else {"load": round(os.getloadavg()[0], 1), "runs": []}
    planned = [(arguments.small, 2)] * REPEATS + [(arguments.moderate, workers) for workers in (1, 2) * REPEATS]
    if not state["runs"]:
        measure(arguments.folder, arguments.small, 2)  # compiles
    while not (state["runs"] and state["runs"][-1]["side"] == arguments.side and state["runs"][-1]["finished"]):
        done = len(state["runs"])
        side, workers = planned[done] if done < len(planned) else (arguments.side, 2)
        left = arguments.slice - (time.monotonic() - began)
        if left < LEAST:
            raise SystemExit(MORE_IS_LEFT)
        longest = left if side == arguments.side else float("inf")
        state["runs"].append(measure(arguments.folder, side, workers, longest))
        kept.write_text(json.dumps(state))
    record = {**record_of(state["runs"], sides, state["load"]), "tasks_per_second": tasks_per_second()}
    write_result(arguments.result, record)


if __name__ == "__main__":
    main()
