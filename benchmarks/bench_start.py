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
CASES = {"default": ["--sigma", "20"], "patch7 in one step": ["--sigma", "20", "--prior", "patch7", "--method", "eb"]}
WORK = """
import sys, time
from heatprior.cli import main
times = []
for _ in range(3):
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


def measure(source: Path, options: list[str]) -> dict[str, Any]:
    """First, second and the work itself, and how many kernels and signatures were compiled."""
    with tempfile.TemporaryDirectory() as folder:
        noisy, cache = Path(folder, "noisy.png"), Path(folder, "cache")
        picture(noisy)
        line = ["denoise", str(noisy), "-o", str(Path(folder, "clean.png")), "--force", *options]
        folders = {"PYTHONPATH": source, "NUMBA_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": Path(folder, "bytecode")}
        environment = {**os.environ, **{name: str(path) for name, path in folders.items()}, "NUMBA_NUM_THREADS": "1"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installation has its bytecode
        first, _ = run(["-m", "heatprior", *line], environment)
        compiled = {
            "kernels": len(list(cache.rglob("*.nbi"))),
            "signatures": len(list(cache.rglob("*.nbc"))),
        }
        runs = [run(["-m", "heatprior", *line], environment)[0] for _ in range(3)]
        _, said = run(["-c", WORK, *line], environment)
    second = {name: min(one[name] for one in runs) for name in first}
    clock, processor = (round(float(value), 2) for value in said.splitlines()[-1].split())
    beyond = round(second["processor"] - processor, 2)
    work = {"clock": clock, "processor": processor}
    return {"first": first, "second": second, "work": work, "second_beyond_work": beyond, "compiled": compiled}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="the src folder of another checkout, measured too")
    arguments = parser.parse_args()
    sources = {"before": arguments.before, "now": SOURCE} if arguments.before else {"now": SOURCE}
    record = {
        name: {case: measure(source.resolve(), options) for case, options in CASES.items()}
        for name, source in sources.items()
    }
    print(json.dumps(record, indent=2))
    write_result("start", record)


if __name__ == "__main__":
    main()
