"""Time to the first and to the second result of `heatprior denoise` on a 512×512 picture, and what was compiled for it.

The first run begins with an empty cache of compiled code, the second finds it; the work itself is the same denoising in
a process that has done it before. Seconds of the processor are given beside those of the clock, since a busy machine
stretches the latter. Run as `python benchmarks/bench_start.py --before OTHER/src`, which measures another checkout too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from measure import write_result
from PIL import Image

SOURCE = Path(__file__).parents[1] / "src"
CASES = {"blind": [], "default": ["--sigma", "20"], "fast": ["--sigma", "20", "--quality", "fast"]}
WORK = """
import sys, time
from heatprior.cli import main
times = []
for _ in range(2):
    start, clock = time.process_time(), time.perf_counter()
    main(sys.argv[1:])
    times.append((time.perf_counter() - clock, time.process_time() - start))
print(*min(times))
"""


def picture(path: Path) -> None:
    """Waves and noise, 8 bits."""
    y, x = np.mgrid[:512, :512]
    grey = 128 + 60 * np.sin(x / 17) * np.cos(y / 23) + np.random.default_rng(0).normal(0, 20, x.shape)
    Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8)).save(path)


def run(arguments: list[str], environment: dict[str, str]) -> tuple[dict[str, float], str]:
    """Seconds of a process, of the clock and of the processor, and what it says."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], env=environment, check=True, capture_output=True, text=True)
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"clock": round(clock, 2), "processor": round(processor, 2)}, done.stdout


class Checkout:
    """A checkout with a cache of compiled code of its own, and what was measured of it."""

    def __init__(self, source: Path, folder: Path, options: list[str]) -> None:
        folder.mkdir()
        noisy, self.cache = folder / "noisy.png", folder / "cache"
        picture(noisy)
        self.line = ["denoise", str(noisy), "-o", str(folder / "clean.png"), "--force", *options]
        folders = {"PYTHONPATH": source, "NUMBA_CACHE_DIR": self.cache, "PYTHONPYCACHEPREFIX": folder / "bytecode"}
        self.environment = {**os.environ, **{name: str(path) for name, path in folders.items()}}
        self.environment["NUMBA_NUM_THREADS"] = "1"
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installation has its bytecode
        self.first = self.run()
        self.later: list[dict[str, float]] = []
        self.works: list[dict[str, float]] = []

    def run(self) -> dict[str, float]:
        """Seconds of the command as a user runs it."""
        return run(["-m", "heatprior", *self.line], self.environment)[0]

    def repeat(self) -> None:
        """Once more as a user runs it, and in a process that has done it before."""
        self.later.append(self.run())
        _, said = run(["-c", WORK, *self.line], self.environment)
        clock, processor = (round(float(value), 2) for value in said.splitlines()[-1].split())
        self.works.append({"clock": clock, "processor": processor})

    def record(self) -> dict[str, Any]:
        """First, second and the work itself, the shortest each, and how many kernels and signatures were compiled."""
        second, work = (
            {name: min(one[name] for one in runs) for name in self.first} for runs in (self.later, self.works)
        )
        return {
            "first": self.first,
            "second": second,
            "work": work,
            "second_beyond_work": round(second["processor"] - work["processor"], 2),
            "compiled": {
                "kernels": len(list(self.cache.rglob("*.nbi"))),
                "signatures": len(list(self.cache.rglob("*.nbc"))),
            },
        }


def measure(sources: dict[str, Path], options: list[str], repeats: int) -> dict[str, Any]:
    """The record of each checkout, measured in turns."""
    with tempfile.TemporaryDirectory() as folder:
        checkouts = {name: Checkout(source.resolve(), Path(folder, name), options) for name, source in sources.items()}
        for _ in range(repeats):
            for checkout in checkouts.values():
                checkout.repeat()
        return {name: checkout.record() for name, checkout in checkouts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="the src folder of another checkout, measured in turns")
    parser.add_argument("--only", choices=CASES, nargs="*", default=list(CASES))
    parser.add_argument(
        "--repeats", type=int, default=7, help="of the second run and of the work, of which the shortest counts"
    )
    arguments = parser.parse_args()
    sources = {"before": arguments.before, "now": SOURCE} if arguments.before else {"now": SOURCE}
    record = {case: measure(sources, CASES[case], arguments.repeats) for case in arguments.only}
    print(json.dumps(record, indent=2))
    write_result("bench_start", record)


if __name__ == "__main__":
    main()
