"""Mixtures of Gaussians on one picture, sigma 25/255: seconds per megapixel and PSNR, all on one core in one run.

Also: one step against a plain numpy evaluation of the same prior, what each short cut costs in decibels, and two cores
against one. With --side the picture is another: a trial, which writes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from bench_denoising import CORES, SEED, SIGMA, on_cores, picture
from measure import denoise_at, prior_called, seconds, write_result
from numpy.typing import ArrayLike

from heatprior import GaussianMixturePrior, InvalidInputError, denoise, load
from heatprior.arrays import FloatArray
from heatprior.data.trials import psnr
from heatprior.kernels.candidates import CANDIDATES
from heatprior.kernels.patches import average, extract
from heatprior.kernels.threads import products_in_one_thread
from heatprior.noise_value import Noise
from heatprior.priors.mixture_step import COMPARED, NEGLIGIBLE, step_of_mixture

SIDE = 512
CROP = 256  # pixels of a side of what the plain evaluation gets: it is slow
CHUNK = 1024  # patches that the plain evaluation does at a time: as fast as 256, and a fifth faster than 8192
PRIORS = ("mixture", "epll")
RECIPES: dict[str, dict[str, Any]] = {  # scales are none for one step
    "mixture, one step": {"prior": "mixture", "scales": 0},
    "mixture": {"prior": "mixture", "scales": 1},
    "mixture, two scales": {"prior": "mixture", "scales": 2},
    "mixture, adapted": {"prior": "mixture", "scales": 1, "adapted": True},
    "mixture, adapted, two scales": {"prior": "mixture", "scales": 2, "adapted": True},
    "epll, one step": {"prior": "epll", "scales": 0},
    "epll, HQS": {"prior": "epll", "scales": 1},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=SIDE, help="of the picture, in pixels")
    side = parser.parse_args().side
    priors = {name: mixture(name) for name in PRIORS}
    with products_in_one_thread():
        result = {
            "seed": SEED,
            "sigma": SIGMA,
            "side": side,
            "one_core": one_core(priors, side),
            "exact": {name: against_exact(name, prior, min(CROP, side)) for name, prior in priors.items()},
            "two_cores": two_cores(priors["mixture"], 2 * side),
        }
    if side == SIDE:
        write_result("bench_mixture", result)


def mixture(name: str) -> GaussianMixturePrior:
    prior = load(prior_called(name))
    if not isinstance(prior, GaussianMixturePrior):
        raise InvalidInputError(f"{name} is a {type(prior).__name__}; expected a mixture")
    return prior


def one_core(priors: Mapping[str, GaussianMixturePrior], side: int) -> dict[str, dict[str, float]]:
    on_cores(1)
    clean, noisy = picture(side, side)
    rows = {}
    print(f"{f'one core, {side}×{side}':42} s/Mpx     PSNR")
    for name, options in RECIPES.items():
        job = partial(denoise_at, noisy, SIGMA, **{**options, "prior": priors[options["prior"]]})
        time, denoised = measured(job)
        rows[name] = {"seconds_per_megapixel": time / (clean.size / 1e6), "psnr": psnr(denoised, clean)}
        print(f"{name:40} {rows[name]['seconds_per_megapixel']:7.3f} {rows[name]['psnr']:8.3f}", flush=True)
    return rows


def measured(job: Callable[[], FloatArray], repeats: int = 3) -> tuple[float, FloatArray]:
    """The shortest time, and the result, which is the same every time."""
    result = job()  # compiles
    return seconds(job, repeats), result


def posterior_means(prior: GaussianMixturePrior, patches: FloatArray, sigma: float) -> FloatArray:
    """E[X | Y] of patches (n, a) over all components, as anyone would write it with numpy, in float32."""
    variances = prior.variances_at(sigma)  # (K, G, d)
    axes = prior.axes.astype(np.float32)  # (K, d, a)
    precisions = (-0.5 / variances.swapaxes(1, 2)).astype(np.float32)
    constants = (prior.log_weights - 0.5 * np.log(variances).sum(axis=-1)).astype(np.float32)
    keeps = (1.0 - sigma**2 / variances).astype(np.float32)
    means = np.empty(patches.shape, np.float32)
    for start in range(0, len(patches), CHUNK):
        y = patches[start : start + CHUNK].astype(np.float32)
        brightness = y.mean(axis=1, keepdims=True)
        responses = [(y - brightness) @ own.T for own in axes]
        parts = np.stack([u**2 @ p + c for u, p, c in zip(responses, precisions, constants, strict=True)])  # (K, n, G)
        parts -= parts.max(axis=(0, 2), keepdims=True)
        np.exp(parts, out=parts)
        parts /= parts.sum(axis=(0, 2), keepdims=True)
        total = np.repeat(brightness, y.shape[1], axis=1)
        for u, part, keep, own in zip(responses, parts, keeps, axes, strict=True):
            total += (u * (part @ keep)) @ own
        means[start : start + CHUNK] = total
    return means


@dataclass(frozen=True)
class Exact:
    """The same prior, known by its score alone: denoising then takes no short cut."""

    prior: GaussianMixturePrior

    @property
    def card(self) -> Mapping[str, Any]:
        """With the schedules."""
        return self.prior.card

    def log_prob(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """As the prior has it."""
        return self.prior.log_prob(y, sigma)

    def score(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """(E[X | Y] − Y) / sigma², so that Tweedie's formula gives back the mean."""
        level = float(np.asarray(sigma).flat[0])  # it is the same for all patches here
        return np.asarray((posterior_means(self.prior, y, level) - y) / level**2)

    def sample(self, count: int, sigma: ArrayLike = 0.0, *, rng: np.random.Generator) -> FloatArray:
        """As the prior has it."""
        return self.prior.sample(count, sigma, rng=rng)


def against_exact(name: str, prior: GaussianMixturePrior, side: int) -> dict[str, Any]:
    """How many times faster one step is than a plain evaluation, and what it costs in PSNR, of each short cut too."""
    on_cores(1)
    middle = slice((SIDE - side) // 2, (SIDE + side) // 2)
    clean, noisy = (image[middle, middle].copy() for image in picture(SIDE, SIDE))
    megapixels = clean.size / 1e6

    def plain() -> FloatArray:
        means = posterior_means(prior, extract(noisy, prior.size), SIGMA)
        return average(means, (side, side), prior.size)

    fast_time, fast = measured(partial(denoise, noisy, SIGMA, prior=prior, steps=1))
    plain_time, exact = measured(plain, 1)
    shapes, axes = len(prior.covariances), prior.size**2
    best = psnr(one_step(prior, noisy, shapes, 0.0, axes), clean)
    truncated = psnr(one_step(prior, noisy, shapes, NEGLIGIBLE, axes), clean)
    along_main_axes = psnr(one_step(prior, noisy, shapes, 0.0, COMPARED), clean)
    guided = psnr(one_step(prior, noisy, CANDIDATES, 0.0, axes), clean)
    splitting = {
        way: psnr(denoise_at(noisy, SIGMA, model, 1), clean)
        for way, model in (("fast", prior), ("exact", Exact(prior)))
    }
    lost = {
        "all short cuts": psnr(exact, clean) - psnr(fast, clean),
        "best shape only": psnr(exact, clean) - best,
        "axes left out, on top": best - truncated,
        "compared along main axes, on top": best - along_main_axes,
        "candidates from the grid, on top": best - guided,
    }
    row = {
        "side": side,
        "seconds_per_megapixel": {"fast": fast_time / megapixels, "plain_numpy": plain_time / megapixels},
        "times_faster": plain_time / fast_time,
        "psnr_of_one_step": {"fast": psnr(fast, clean), "exact": psnr(exact, clean)},
        "psnr_of_splitting": splitting,
        "decibels_lost_of_one_step": lost,
        "decibels_lost_of_splitting": splitting["exact"] - splitting["fast"],
    }
    print(f"{name}, {side}×{side}: one step {fast_time / megapixels:.3f} s/Mpx,", end=" ")
    print(f"plain numpy {plain_time / megapixels:.2f}, {row['times_faster']:.1f} times as long")
    for what, loss in lost.items():
        print(f"  dB lost in one step, {what:34} {loss:8.4f}")
    print(f"  dB lost in splitting, all short cuts {'':18} {row['decibels_lost_of_splitting']:8.4f}", flush=True)
    return row


def one_step(
    prior: GaussianMixturePrior, noisy: FloatArray, candidates: int, negligible: float, compared: int
) -> FloatArray:
    """With these short cuts."""
    noise = Noise.constant(SIGMA)
    return step_of_mixture(prior, noisy, noise, candidates=candidates, negligible=negligible, compared=compared)


def two_cores(prior: GaussianMixturePrior, side: int) -> dict[str, float]:
    """How many times faster two cores are than one."""
    if len(CORES) < 2:
        return {}
    _, noisy = picture(side, side)
    jobs: dict[str, dict[str, Any]] = {
        "one step": {"scales": 0},
        "splitting": {"scales": 1},
        "adapted, two scales": {"scales": 2, "adapted": True},
    }
    rows = {}
    for name, options in jobs.items():
        times = []
        for cores in (1, 2):
            on_cores(cores)
            times.append(seconds(partial(denoise_at, noisy, SIGMA, prior, **options)))
        rows[name] = times[0] / times[1]
        print(f"{name}: two cores are {rows[name]:.2f} times as fast as one")
    return rows


if __name__ == "__main__":
    main()
