"""Deblurring inside deepinv: its plug-and-play with our denoiser, its EPLL, its total variation; and `hp.restore`.

    make test-deepinv                                                       makes the environment
    .venv-deepinv/bin/python -m paper.evaluations.deepinv_deblurring [--data DIR] [--limit 3]

The first validation images, grey, [30:158, 30:158], blurred cyclically by kernels k1, k4, k6 of Levin et al. (2009) in
turn, noise 2.55/255 of seed 1000 + n: all on one thread in one run, in processor time. Steps and weights of
plug-and-play and of total variation are those of some that are best on the last two of the images with kernel k4, which
are not among the reported. deepinv's EPLL downloads its weights; here it gets the 200 Gaussians of our prior `epll`
instead, on 8×8 patches, and cut down to 6×6, the size of its own; brightness has a variance so large that it is left
as it is. It takes its own noise levels, or those of Zoran and Weiss for deblurring. Writes
records/deepinv_deblurring.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from tqdm import tqdm

import heatprior as hp
from heatprior.data.trials import psnr, with_noise
from heatprior.images import read_grey
from heatprior.kernels.threads import products_in_one_thread
from paper import RECORDS, bsds500, load
from paper.records import write_record

sys.path.append(str(Path(__file__).parents[2] / "tests" / "deepinv_bridge"))
from without_torchvision import import_deepinv

deepinv = import_deepinv()
import heatprior.deepinv as hd  # noqa: E402

SIGMA = 2.55 / 255
KERNELS = ("k1", "k4", "k6")
FIRST_LEVEL = 49 / 255  # of plug-and-play, as DPIR has it: levels fall geometrically to that of the noise
PLANS = [(steps, trust) for steps in (5, 8) for trust in (2.0, 4.0, 8.0)]  # steps, and weight of the data
TV_WEIGHTS = (4e-4, 8e-4, 1.6e-3)
BETAS = [50.0 * 2.0**k for k in range(8)]  # of Zoran and Weiss: one over the squared noise level of each step
BRIGHTNESS = 100.0  # variance of the mean of a patch, times its pixels: 25 full scales of deviation
FLOOR = 1e-7  # added to all variances: deepinv inverts the covariances in float32, also those that are singular there
AT_ONCE = 4096  # patches that EPLL does at a time
OURS, RESTORE = "HQS with our mixture", "hp.restore"
EPLLS = {
    "EPLL 6×6, its own levels": (6, None),
    "EPLL 6×6, Zoran and Weiss": (6, BETAS),
    "EPLL 8×8, Zoran and Weiss": (8, BETAS),
}
Method: TypeAlias = Callable[["Case"], Any]
RESULT = RECORDS / "deepinv_deblurring.json"


class Case(NamedTuple):
    """A picture, its blur, as an array and in deepinv, and what was observed of it, (H, W)."""

    name: str
    clean: Any
    kernel: Any
    physics: Any
    y: Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--limit", type=int, default=3, help="how many images")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    files = bsds500.validation(arguments.data)
    with products_in_one_thread(), torch.no_grad():
        chosen = choose([case_of(files, number, "k4") for number in (-2, -1)])
        methods = {name: entry["method"] for name, entry in chosen.items()}
        methods |= {
            name: partial(expected_patch_likelihood, epll_model(size), betas) for name, (size, betas) in EPLLS.items()
        }
        methods[RESTORE] = restore
        cases = [case_of(files, number, KERNELS[number % len(KERNELS)]) for number in range(arguments.limit)]
        found = {
            name: [measured(method, case) for case in tqdm(cases, name, disable=None)]
            for name, method in methods.items()
        }
    blurred = float(np.mean([psnr(case.y, case.clean) for case in cases]))
    report(found, blurred, {name: entry["setting"] for name, entry in chosen.items()}, [case.name for case in cases])


def case_of(files: list[Path], number: int, name: str) -> Case:
    """The image of this number among the files, blurred by the kernel of this name."""
    number %= len(files)
    kernel = np.load(files[number].parents[2] / "kernels" / "levin09.npz")[name]
    clean = (read_grey(files[number]) / np.float32(255))[30:158, 30:158]
    physics = deepinv.physics.BlurFFT((1, *clean.shape), filter=as_tensor(kernel))
    y = with_noise(physics.A(as_tensor(clean))[0, 0].numpy(), number, SIGMA)
    return Case(f"{files[number].stem} {name}", clean, kernel, physics, y)


def choose(cases: list[Case]) -> dict[str, dict[str, Any]]:
    """Of each family the method that is best on these, and how it is set."""
    denoiser = hd.Denoiser("mixture", 1)
    families: dict[str, dict[Any, Method]] = {
        OURS: {plan: partial(plug_and_play, denoiser, *plan) for plan in PLANS},
        "ADMM with total variation": {weight: partial(total_variation, weight) for weight in TV_WEIGHTS},
    }
    chosen = {}
    for name, family in families.items():
        decibels = {
            setting: np.mean([measured(method, case)[0] for case in cases])
            for setting, method in tqdm(family.items(), f"choosing for {name}", disable=None)
        }
        best = max(decibels, key=decibels.__getitem__)
        chosen[name] = {"method": family[best], "setting": best}
    return chosen


def measured(method: Method, case: Case) -> tuple[float, float]:
    """PSNR, and seconds of processor time."""
    begin = time.process_time()
    restored = method(case)
    elapsed = time.process_time() - begin
    return psnr(np.asarray(restored).reshape(case.clean.shape), case.clean), elapsed


def plug_and_play(denoiser: Any, steps: int, trust: float, case: Case) -> torch.Tensor:
    """deepinv's half-quadratic splitting; step sizes are `trust` times (level / SIGMA)²."""
    levels = np.geomspace(FIRST_LEVEL, SIGMA, steps)
    model = deepinv.optim.HQS(
        data_fidelity=deepinv.optim.L2(),
        prior=deepinv.optim.PnP(denoiser=denoiser),
        max_iter=steps,
        g_param=levels.tolist(),
        stepsize=(trust * (levels / SIGMA) ** 2).tolist(),
    )
    return model(as_tensor(case.y), case.physics)


def total_variation(weight: float, case: Case) -> torch.Tensor:
    """deepinv's ADMM with its total variation, 50 steps."""
    model = deepinv.optim.ADMM(
        data_fidelity=deepinv.optim.L2(),
        prior=deepinv.optim.TVPrior(def_crit=1e-5, n_it_max=20),
        max_iter=50,
        stepsize=50.0,
        lambda_reg=weight,
    )
    return model(as_tensor(case.y), case.physics)


def expected_patch_likelihood(model: Any, betas: list[float] | None, case: Case) -> torch.Tensor:
    return model(as_tensor(case.y), case.physics, sigma=SIGMA, betas=betas, batch_size=AT_ONCE)


def restore(case: Case) -> Any:
    return hp.restore(case.y, hp.operators.Blur(case.kernel, edges="cyclic"), SIGMA, white=1.0)


def epll_model(size: int) -> Any:
    """deepinv's EPLL with the Gaussians of our prior: what they say of the first size×size pixels of their patches."""
    prior: Any = load("epll")
    inside = np.arange(prior.size**2).reshape(prior.size, prior.size)[:size, :size].ravel()
    covariances = np.einsum("da,kde,eb->kab", prior.basis[:, inside], prior.covariances, prior.basis[:, inside])
    covariances += BRIGHTNESS / prior.size**2 + FLOOR * np.eye(size**2)
    mixture = deepinv.optim.utils.GaussianMixtureModel(len(covariances), size**2)
    mixture.set_cov(torch.tensor(covariances))
    mixture.set_weights(torch.tensor(np.exp(prior.log_weights[:, 0])))
    return deepinv.optim.EPLL(mixture, pretrained=None, patch_size=size)


def as_tensor(values: Any) -> torch.Tensor:
    return torch.tensor(np.asarray(values), dtype=torch.float32)[None, None]


def report(
    found: Mapping[str, list[tuple[float, float]]], blurred: float, settings: Mapping[str, Any], cases: list[str]
) -> None:
    rows: dict[str, dict[str, float]] = {}
    for name, values in found.items():
        decibels, seconds = np.transpose(values)
        rows[name] = {"psnr": float(np.mean(decibels)), "seconds": float(np.median(seconds))}
        print(f"{name:28} {rows[name]['psnr']:6.2f} dB {rows[name]['seconds']:8.2f} s")
    speed = {name: rows[name]["seconds"] / rows[OURS]["seconds"] for name in EPLLS}
    print(*(f"{name}: {ratio:.1f} times the time of ours" for name, ratio in speed.items()), sep="\n")
    about = {"cases": cases, "sigma": SIGMA, "chosen": settings, "blurred": blurred}
    write_record(RESULT, {**about, "rows": rows, "each": found, "seconds_over_ours": speed})


if __name__ == "__main__":
    main()
