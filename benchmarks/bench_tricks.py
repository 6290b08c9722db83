"""What each compiler trick of kernels/compiler.py gains: CPU seconds without it over CPU seconds with all, one thread.

    python benchmarks/bench_tricks.py

Every variant runs in a process of its own, in turns, and the shortest of some turns counts; its clock is CPU time, so
that other programs disturb little. The start is all that such a process does until its first step is done, its code
being in the cache. Scores of patches do not use `alias`: that ratio shows the error of the measurement.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from measure import write_result

from heatprior import load
from heatprior.kernels.compiler import TRICKS
from heatprior.noise_value import as_noise
from heatprior.priors.protocol import Prior

SIDE = 384  # pixels of the image
SIGMA = 25 / 255
PATCHES = 6000
TURNS = 8
REPEATS = 3


def jobs() -> dict[str, Callable[[], object]]:
    """Denoising steps of both patch priors, and scores of patches: what the tricks are for."""
    rng = np.random.default_rng(0)
    image = rng.random((SIDE, SIDE), np.float32)
    patch7, patch15 = load("patch7"), load("patch15")
    patches = rng.random((PATCHES, 49))
    return {
        "step of patch7": lambda: _step(patch7, image),
        "step of patch15": lambda: _step(patch15, image[: SIDE // 2, : SIDE // 2]),
        "scores of patches": lambda: patch7.score(patches, 0.1),
    }


def _step(prior: Prior, image: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> None:
    prior.denoise_step(image, as_noise(SIGMA))


def measured() -> dict[str, float]:
    """Shortest CPU time of each job, in this process."""
    times: dict[str, float] = {}
    for name, job in jobs().items():
        job()
        times.setdefault("start", time.process_time())
        shortest = float("inf")
        for _ in range(REPEATS):
            begin = time.process_time()
            job()
            shortest = min(shortest, time.process_time() - begin)
        times[name] = shortest
    return times


def without(tricks: str) -> dict[str, float]:
    """The same in a process that does without some tricks."""
    threads = {"NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "HEATPRIOR_PLAIN_KERNELS": tricks}
    command = [sys.executable, __file__, "--measure"]
    done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def main() -> None:
    variants = {"all tricks": "", **{trick: trick for trick in TRICKS}}
    shortest: dict[str, dict[str, float]] = {name: {} for name in variants}
    for _ in range(TURNS):
        for name, tricks in variants.items():
            for job, seconds in without(tricks).items():
                shortest[name][job] = min(seconds, shortest[name].get(job, seconds))
    gains = {
        trick: {job: shortest[trick][job] / seconds for job, seconds in shortest["all tricks"].items()}
        for trick in TRICKS
    }
    for trick, gain in gains.items():
        print(f"{trick:<8}", ", ".join(f"{job} {value:.2f}" for job, value in gain.items()))
    write_result("bench_tricks", {"cpu_seconds": shortest["all tricks"], "times_slower_without": gains})


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        print(json.dumps(measured()))
    else:
        main()
