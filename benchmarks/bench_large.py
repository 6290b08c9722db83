"""An OME-Zarr of gigapixels denoised on this machine: time per megapixel, memory of a worker, workers against one.

    python benchmarks/bench_large.py /somewhere/with/room --side 65536

makes a 16-bit image of that side (1,024² chunks; noise everywhere, a photograph in one chunk of eight), denoises it
with `patch7` in one step on two workers, and one of 4,096² on one worker and on two, and writes a JSON. The machine
should be doing nothing else.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
from measure import write_result

CHUNK = 1024
SIGMA = 900.0
KINDS = 8  # different chunks with a photograph, and without; the noise of each is its own


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


def denoise_once(source: Path, target: Path, workers: int) -> None:
    """Print the seconds from the first block to the last: workers are there by then, and have compiled."""
    from heatprior.large.files import Settings, denoise_store

    times: list[float] = []
    shutil.rmtree(target, ignore_errors=True)
    settings = Settings("patch7", "eb", SIGMA)
    denoise_store(source, target, settings, workers=workers, told=lambda *_: times.append(time.perf_counter()))
    print(times[-1] - times[0])


def measure(folder: Path, side: int, workers: int) -> dict[str, Any]:
    """One run, in a process of its own, of which each worker is a child."""
    source, target = folder / f"{side}.ome.zarr", folder / f"{side}-clean.ome.zarr"
    make(source, side)
    command = [sys.executable, __file__, str(folder), "--once", str(source), str(target), str(workers)]
    peak = 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, peak_memory(process.pid))
            time.sleep(0.3)
        said = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(process.returncode)
    shutil.rmtree(target)
    return {
        "side": side,
        "workers": workers,
        "seconds": round(float(said.split()[-1]), 1),
        "seconds_per_megapixel": round(float(said.split()[-1]) / (side * side / 1e6), 4),
        "peak_megabytes_of_a_process": round(peak),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--side", type=int, default=65536)
    parser.add_argument("--small", type=int, default=4096)
    parser.add_argument("--result", default="large")
    parser.add_argument("--once", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        denoise_once(Path(arguments.once[0]), Path(arguments.once[1]), int(arguments.once[2]))
        return
    arguments.folder.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    runs = [measure(arguments.folder, arguments.small, workers) for workers in (2, 1, 2)][1:]  # the first one compiles
    runs.append(measure(arguments.folder, arguments.side, 2))
    cost = [run["seconds_per_megapixel"] for run in runs]
    record = {
        "seed": 0,
        "load_before": round(load, 1),
        "cores": os.cpu_count(),
        "runs": runs,
        "cost_large_over_small": round(cost[2] / cost[1], 3),
        "two_workers_over_one": round(cost[0] / cost[1], 3),
        "peak_megabytes_of_a_process": max(run["peak_megabytes_of_a_process"] for run in runs),
    }
    write_result(arguments.result, record)


if __name__ == "__main__":
    main()
