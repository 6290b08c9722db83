"""heatprior.torch on one core: time of `denoise` beside the library, and memory with and without gradients.

Time is processor time, the shortest of some runs that take turns. Memory is the growth of the peak resident size of a
fresh process over that of the same job on a small image, per megapixel more. With --side the picture is another: a
trial, which writes nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable

import torch
from bench_denoising import SEED, SIGMA, on_cores, picture
from bench_patch_prior import peak_memory
from measure import write_result

import heatprior.torch as ht
from heatprior import denoise, load

SIDE, SMALL = 512, 128
REPEATS = 5
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
        write_result("torch", {"seed": SEED, "sigma": SIGMA, "side": side, "times": times, "megabytes": memory})


def beside_the_library(name: str, side: int) -> dict[str, float]:
    prior, (_, noisy) = load(name), picture(side, side)
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


def per_megapixel(name: str, how: str, side: int) -> float:
    peaks = []
    for length in (SMALL, side):
        command = [sys.executable, __file__, "--peak", name, how, "--side", str(length)]
        peaks.append(float(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)))
    found = (peaks[1] - peaks[0]) / ((side**2 - SMALL**2) / 1e6)
    print(f"{name:10} {how:7} gradients {found:8.0f} MB per megapixel; {peaks[1]:.0f} MB in all", flush=True)
    return found


def peak(name: str, how: str, side: int) -> float:
    """Of one step on a picture, in megabytes; with gradients in the image."""
    x = torch.from_numpy(picture(side, side)[1])[None, None].requires_grad_(how == "with")
    clean = ht.load(name).denoise(x, SIGMA, "eb")
    if how == "with":
        clean.square().sum().backward()
    return peak_memory()


if __name__ == "__main__":
    main()
