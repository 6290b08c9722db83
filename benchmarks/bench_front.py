"""The choices of quality beside a network, priors and other methods: seconds per megapixel on one core, all in one run.

The network is FFDNet as published for grey images, 15 layers of 64 channels on the half-size grid, with random weights,
since only its time is of interest; in torch, on one thread. Times are of the processor, the shortest of some runs, so
that other work on the machine disturbs them less; the network and the two faster qualities run in turns, since a
processor's speed changes by the minute. paper/evaluations/speed_quality.py draws them. With --name the record is
another, for another processor; --side changes the picture: a trial, which writes nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from bench_denoising import SEED, SIGMA, on_cores, peers, picture
from measure import denoise_at, prior_called, write_result
from torch import nn

from heatprior import denoise, load
from heatprior.arrays import FloatArray
from heatprior.data.trials import psnr
from heatprior.kernels.threads import products_in_one_thread
from heatprior.presets import PRESETS

SIDE = 512
REPEATS, TURNS = 7, 20
NETWORK = "FFDNet's architecture"
LAYERS, CHANNELS = 15, 64
SLOW = ("bm3d", "heatprior patch15 hqs", "mixture, adapted, two scales", "best")  # timed once

# By the names in the records of their PSNR; at one scale, as those were measured, unless the name says otherwise.
# Scales are none for one step.
PRIORS: dict[str, dict[str, Any]] = {
    **{
        f"heatprior {prior} {method}": {"prior": prior, "scales": scales}
        for prior in ("patch7", "patch15", "wavelet", "wavelet-density", "conv")
        for method, scales in (("eb", 0), ("hqs", 1))
    },
    "mixture, one step": {"prior": "mixture", "scales": 0},
    "mixture": {"prior": "mixture", "scales": 1},
    "mixture, two scales": {"prior": "mixture", "scales": 2},
    "mixture, adapted, two scales": {"prior": "mixture", "scales": 2, "adapted": True},
    "epll, HQS": {"prior": "epll", "scales": 1},
}


def ffdnet() -> nn.Sequential:
    """Four half-size images and a noise map in, four images out."""
    widths = [5, *[CHANNELS] * (LAYERS - 1), 4]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).eval()


def through(network: nn.Sequential, noisy: FloatArray) -> Any:
    """The network on an image (H, W), with what FFDNet does around it."""
    with torch.inference_mode():
        parts = F.pixel_unshuffle(torch.from_numpy(noisy)[None, None], 2)
        level = torch.full_like(parts[:, :1], SIGMA)
        return F.pixel_shuffle(network(torch.cat([parts, level], 1)), 2)


def processor_seconds(*works: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """The shortest time on the processor of some runs of each, in turns, after one that compiles."""
    shortest = [float("inf")] * len(works)
    for turn in range(repeats + (repeats > 1)):
        for number, work in enumerate(works):
            begin = time.process_time()
            work()
            if turn or repeats == 1:
                shortest[number] = min(shortest[number], time.process_time() - begin)
    return shortest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=SIDE, help="of the picture, in pixels")
    parser.add_argument("--name", default="bench_front", help="of the record")
    given = parser.parse_args()
    side = given.side
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    on_cores(1)
    clean, noisy = picture(side, side)
    network, megapixels = ffdnet(), clean.size / 1e6
    with products_in_one_thread():
        jobs: dict[str, Callable[[], Any]] = {
            NETWORK: lambda: through(network, noisy),
            **{quality: partial(denoise, noisy, SIGMA, white=1.0, quality=quality) for quality in PRESETS},
            **{
                name: partial(denoise_at, noisy, SIGMA, **{**choice, "prior": load(prior_called(choice["prior"]))})
                for name, choice in PRIORS.items()
            },
            **peers(noisy),
        }
        in_turns = (NETWORK, "default", "fast")
        taken = dict(zip(in_turns, processor_seconds(*(jobs[name] for name in in_turns), repeats=TURNS), strict=True))
        for name in [name for name in jobs if name not in taken]:
            (taken[name],) = processor_seconds(jobs[name], repeats=1 if name in SLOW else REPEATS)
        rows = {name: {"seconds_per_megapixel": taken[name] / megapixels} for name in jobs}
        for name in PRESETS:
            rows[name]["psnr"] = psnr(jobs[name](), clean)
    of_network = rows[NETWORK]["seconds_per_megapixel"]
    for name, row in rows.items():
        row["over_ffdnet"] = row["seconds_per_megapixel"] / of_network
        print(f"{name:24} {row['seconds_per_megapixel']:7.3f} s/Mpx {row['over_ffdnet']:7.3f} of FFDNet's", flush=True)
    if side == SIDE:
        write_result(given.name, {"seed": SEED, "sigma": SIGMA, "side": side, "one_core": rows})


if __name__ == "__main__":
    main()
