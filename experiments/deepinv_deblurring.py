"""Deblurring inside deepinv: its plug-and-play with our denoiser, its EPLL, its total variation; and `hp.restore`.

    make test-deepinv                                                       makes the environment
    .venv-deepinv/bin/python experiments/deepinv_deblurring.py [--data DIR] [--limit 2] [--kernels k1 k6]

Validation images, grey, [30:286, 30:286], blurred cyclically by kernels of Levin et al. (2009), noise 2.55/255 of seed
1000 + n: all on one thread in one run, in processor time. deepinv's EPLL downloads its weights; here it gets the 200
Gaussians of our prior `epll` instead, on 8×8 patches, with a variance of brightness so large that it is left as it is,
and its own schedule as well as that of Zoran and Weiss for deblurring. Total variation gets, of some weights, the one
that is best on these very images. Writes experiments/results/deepinv_deblurring.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from tqdm import tqdm

import heatprior as hp
from heatprior.data import bsds500
from heatprior.data.trials import psnr, with_noise
from heatprior.images import read_grey
from heatprior.kernels.threads import products_in_one_thread
from heatprior.records import write_record

sys.path.append(str(Path(__file__).parents[1] / "tests" / "deepinv_bridge"))
from without_torchvision import import_deepinv  # type: ignore[import-not-found]

deepinv = import_deepinv()
import heatprior.deepinv as hd  # noqa: E402

SIGMA = 2.55 / 255
FIRST_LEVEL, STEPS = 49 / 255, 8  # of plug-and-play, as DPIR does: levels fall geometrically to that of the noise
TRUST = 4.0  # weight of the data: noise level of a step over that of the noise, squared, times this is its step size
BRIGHTNESS = 100.0  # variance of the mean of a patch, times its pixels: 25 full scales of deviation
FLOOR = 1e-7  # added to all variances: deepinv inverts the covariances in float32, also those that are singular there
AT_ONCE = 4096  # patches that EPLL does at a time
TV_WEIGHTS = (4e-4, 8e-4, 1.6e-3)
BETAS = [50.0 * 2.0**k for k in range(8)]  # one over the squared noise level of each step
OURS, EPLL, RESTORE = "deepinv HQS, our mixture", "deepinv EPLL, Zoran and Weiss", "hp.restore, our mixture"
Method: TypeAlias = Callable[[torch.Tensor, Any], torch.Tensor]
RESULT = Path(__file__).parent / "results" / "deepinv_deblurring.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--limit", type=int, default=2, help="how many images")
    parser.add_argument("--kernels", nargs="+", default=["k1", "k6"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    files = bsds500.validation(arguments.data)[: arguments.limit]
    kernels = np.load(files[0].parents[2] / "kernels" / "levin09.npz")
    methods = methods_by_name()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ["blurred", *methods, RESTORE]}
    cases = [(number, file, kernel) for number, file in enumerate(files) for kernel in arguments.kernels]
    with products_in_one_thread(), torch.no_grad():
        for number, file, kernel in tqdm(cases, disable=None):
            clean = grey(file)
            physics = deepinv.physics.BlurFFT((1, *clean.shape), filter=as_tensor(kernels[kernel]))
            y = with_noise(physics.A(as_tensor(clean))[0, 0].numpy(), number, SIGMA)
            found["blurred"].append((psnr(y, clean), 0.0))
            for name, method in methods.items():
                begin = time.process_time()
                restored = method(as_tensor(y), physics)
                elapsed = time.process_time() - begin
                found[name].append((psnr(restored[0, 0].numpy(), clean), elapsed))
            begin = time.process_time()
            alone = hp.restore(y, hp.Blur(kernels[kernel], edges="cyclic"), SIGMA, white=1.0)
            found[RESTORE].append((psnr(alone, clean), time.process_time() - begin))
    report(found, [f"{file.stem} {kernel}" for _, file, kernel in cases])


def methods_by_name() -> dict[str, Method]:
    denoiser = hd.Denoiser("mixture", "eb")
    model = epll_model()
    warm = torch.rand(1, 1, 64, 64)
    denoiser(warm, 0.1)
    methods: dict[str, Method] = {OURS: partial(plug_and_play, denoiser)}
    methods["deepinv EPLL, its schedule"] = partial(expected_patch_likelihood, model, None)
    methods[EPLL] = partial(expected_patch_likelihood, model, BETAS)
    return methods | {f"deepinv TV, {weight:g}": partial(total_variation, weight) for weight in TV_WEIGHTS}


def expected_patch_likelihood(model: Any, betas: list[float] | None, y: torch.Tensor, physics: Any) -> torch.Tensor:
    return model(y, physics, sigma=SIGMA, betas=betas, batch_size=AT_ONCE)


def plug_and_play(denoiser: Any, y: torch.Tensor, physics: Any) -> torch.Tensor:
    """deepinv's half-quadratic splitting with falling noise levels."""
    levels = np.geomspace(FIRST_LEVEL, SIGMA, STEPS)
    model = deepinv.optim.HQS(
        data_fidelity=deepinv.optim.L2(),
        prior=deepinv.optim.PnP(denoiser=denoiser),
        max_iter=STEPS,
        g_param=levels.tolist(),
        stepsize=(TRUST * (levels / SIGMA) ** 2).tolist(),
    )
    return model(y, physics)


def total_variation(weight: float, y: torch.Tensor, physics: Any) -> torch.Tensor:
    """deepinv's ADMM with its total variation, 50 steps."""
    model = deepinv.optim.ADMM(
        data_fidelity=deepinv.optim.L2(),
        prior=deepinv.optim.TVPrior(def_crit=1e-5, n_it_max=20),
        max_iter=50,
        stepsize=50.0,
        lambda_reg=weight,
    )
    return model(y, physics)


def epll_model() -> Any:
    """deepinv's EPLL with the Gaussians of our prior."""
    prior: Any = hp.load("epll")
    shape = len(prior.covariances), prior.size**2
    covariances = np.einsum("da,kde,eb->kab", prior.basis, prior.covariances, prior.basis)
    covariances += BRIGHTNESS / shape[1] + FLOOR * np.eye(shape[1])
    mixture = deepinv.optim.utils.GaussianMixtureModel(*shape)
    mixture.set_cov(torch.tensor(covariances))
    mixture.set_weights(torch.tensor(np.exp(prior.log_weights[:, 0])))
    return deepinv.optim.EPLL(mixture, pretrained=None, patch_size=prior.size)


def grey(file: Path) -> Any:
    return (read_grey(file) / np.float32(255))[30:286, 30:286]


def as_tensor(values: Any) -> torch.Tensor:
    return torch.tensor(np.asarray(values), dtype=torch.float32)[None, None]


def report(found: dict[str, list[tuple[float, float]]], cases: list[str]) -> None:
    rows = {}
    for name, values in found.items():
        decibels, seconds = zip(*values, strict=True)
        rows[name] = {"psnr": float(np.mean(decibels)), "seconds": float(np.median(seconds))}
        print(f"{name:28} {rows[name]['psnr']:6.2f} dB {rows[name]['seconds']:8.2f} s")
    best = max((name for name in rows if "TV" in name), key=lambda name: rows[name]["psnr"])
    speed = rows[EPLL]["seconds"] / rows[OURS]["seconds"]
    print(f"best total variation: {best}; our mixture is {speed:.1f} times as fast as deepinv's EPLL")
    write_record(RESULT, {"cases": cases, "sigma": SIGMA, "rows": rows, "times_as_fast_as_epll": speed})


if __name__ == "__main__":
    main()
