"""heatprior.torch on one core: time of `denoise` beside the library, and memory with and without gradients.

Time is processor time, the shortest of some runs that take turns. Memory is by how much the resident size of a fresh
process rises at most (Linux counts it) above what it was after the same job on a small picture, image and result
included: without gradients on four times as many pixels, since it needs so little. With --side the picture is another:
a trial, which writes nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from bench_denoising import SEED, SIGMA, on_cores, picture
from bench_patch_prior import MEGABYTE, memory_now
from measure import prior_called, write_result

import heatprior.torch as ht
from heatprior import denoise, load

SIDE, SMALL = 512, 64
REPEATS = 3
PRIORS = ("patch7", "mixture", "wavelet")
WITH_GRADIENTS = ("patch7", "mixture")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=SIDE, help="of the picture, in pixels")
    parser.add_argument("--peak", nargs=2, metavar=("PRIOR", "HOW"), help=argparse.SUPPRESS)  # in a fresh process
    arguments = parser.parse_args()
    on_cores(1)
    torch.set_num_threads(1)
    if arguments.peak:
        name, how = arguments.peak
        print(json.dumps(peak(name, how, arguments.side)))
        return
    side = arguments.side
    times = {name: beside_the_library(name, side) for name in PRIORS}
    memory = {name: {how: per_megapixel(name, how, side) for how in ("without", "with")} for name in WITH_GRADIENTS}
    if side == SIDE:
        write_result("bench_torch", {"seed": SEED, "sigma": SIGMA, "side": side, "times": times, "megabytes": memory})


def beside_the_library(name: str, side: int) -> dict[str, float]:
    prior, (_, noisy) = load(prior_called(name)), picture(side, side)
    module, x = ht.from_prior(prior), torch.from_numpy(noisy)[None, None]
    jobs: dict[str, Callable[[], object]] = {
        "library": lambda: denoise(noisy, SIGMA, prior=prior),
        "torch": lambda: module.denoise(x, SIGMA),
    }
    shortest = dict.fromkeys(jobs, float("inf"))
    for turn in range(REPEATS + 1):
        for which, job in jobs.items():
            begin = time.process_time()
            job()
            if turn:  # the first compiles
                shortest[which] = min(shortest[which], time.process_time() - begin)
    ratio = shortest["torch"] / shortest["library"]
    print(f"{name:10} library {shortest['library']:.3f} s, torch {shortest['torch']:.3f} s: {ratio:.3f}", flush=True)
    return {**shortest, "ratio": ratio}


def per_megapixel(name: str, how: str, side: int) -> dict[str, float]:
    length = side if how == "with" else 2 * side
    command = [sys.executable, __file__, "--peak", name, how, "--side", str(length)]
    rise = float(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    found = {"side": length, "rise": rise, "per_megapixel": rise / (length**2 / 1e6)}
    print(
        f"{name:10} {how:7} gradients {found['per_megapixel']:8.0f} MB per megapixel; {rise:.0f} MB in all", flush=True
    )
    return found


def peak(name: str, how: str, side: int) -> float:
    """By how much memory rises at most, in megabytes, in one step on a picture; with gradients in the image."""
    module = ht.load(prior_called(name))
    pictures = [torch.from_numpy(picture(n, n)[1])[None, None] for n in (SMALL, side)]
    before = 0.0
    for x in pictures:
        before = memory_now()
        Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
        clean = module.denoise(x.requires_grad_(how == "with"), SIGMA, 1)
        if how == "with":
            clean.square().sum().backward()
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / MEGABYTE for line in lines if line.startswith("VmHWM")) - before


if __name__ == "__main__":
    main()
