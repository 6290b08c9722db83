"""Find the schedules of half-quadratic splitting for a shipped prior, and put them on its card.

    python -m paper.weights.tune_schedules NAME [--steps 8] [--start PRIOR] [--images 8] [--iterations 25] [--data DIR]

The noise level and the weight of the noisy image are free in every step. They are found for each noise level of the
protocol by L-BFGS on the mean PSNR of crops of validation images, with gradients by differences; BSD68 plays no role.
With --start the search begins at the schedules of another prior, whose number of steps it keeps.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from heatprior import PatchPrior
from heatprior.arrays import FloatArray
from heatprior.data.trials import LEVELS, psnr, with_noise
from heatprior.images import read_grey
from heatprior.priors.schedules import CARD_ENTRY
from paper import RECORDS, bsds500, load_patch_prior, prior_file
from paper.methods import empirical_bayes
from paper.records import write_record

CROP = slice(80, 240)
FIRST = (0.45, 0.3), (0.25, 0.05)  # levels and weights of the search's start, geometric between these
BOUNDS = (-3.0, 0.7), (-6.0, 3.0)  # of log level and of logit weight
DIFFERENCE = 1e-2
Images = list[FloatArray]


@dataclass(frozen=True)
class Task:
    """Denoise these noisy crops, mirrored beyond their edges, at one noise level."""

    prior: PatchPrior
    clean: Images
    noisy: Images
    sigma: float

    @classmethod
    def of(cls, prior: PatchPrior, clean: Images, sigma: float) -> Task:
        """With the noise of the protocol."""
        margin = prior.filters.size - 1
        noisy = [np.pad(with_noise(x, i, sigma), margin, "reflect") for i, x in enumerate(clean)]
        return cls(prior, clean, noisy, sigma)

    def states(self, levels: FloatArray, weights: FloatArray, state: Images) -> list[Images]:
        """The images after each step, from `state` on."""
        states = []
        for level, weight in zip(levels, weights, strict=True):
            means = [empirical_bayes(x, level * self.sigma, self.prior) for x in state]
            state = [np.float32(weight) * (y - z) + z for y, z in zip(self.noisy, means, strict=True)]
            states.append(state)
        return states

    def psnr(self, state: Images) -> float:
        """The mean over the crops, in dB."""
        margin = self.prior.filters.size - 1
        inside = slice(margin, -margin)
        results = [psnr(z[inside, inside], x) for z, x in zip(state, self.clean, strict=True)]
        return float(np.mean(results))

    def negative_psnr(self, point: FloatArray) -> tuple[float, FloatArray]:
        """And its gradient by differences, each of which needs only the steps from the changed one on."""
        states = [self.noisy, *self.states(*unpack(point), self.noisy)]
        value, gradient = self.psnr(states[-1]), np.empty_like(point)
        for entry in range(point.size):
            step, moved = entry % (point.size // 2), point.copy()
            moved[entry] += DIFFERENCE
            levels, weights = unpack(moved)
            after = self.states(levels[step:], weights[step:], states[step])[-1]
            gradient[entry] = (self.psnr(after) - value) / DIFFERENCE
        return -value, -gradient


def unpack(point: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log levels and logit weights → levels and weights."""
    logs, logits = np.split(point, 2)
    return np.exp(logs), expit(logits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--start", metavar="PRIOR")
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--iterations", type=int, default=25)
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    prior = load_patch_prior(options.name)
    files = bsds500.validation(options.data)[: options.images]
    clean = [(read_grey(file)[CROP, CROP] / 255).astype(np.float32) for file in files]
    begun = load_patch_prior(options.start).schedules if options.start else None
    steps = begun.steps if begun else options.steps
    point = np.concatenate([np.log(np.geomspace(*FIRST[0], steps)), logit(np.geomspace(*FIRST[1], steps))])
    rows = []
    for level in LEVELS:
        task = Task.of(prior, clean, level / 255)
        if begun:
            parts = [(begun.level(k, level / 255), begun.weight(k, level / 255)) for k in range(steps)]
            first, second = np.array(parts).T
            point = np.concatenate([np.log(first), np.clip(logit(second), *BOUNDS[1])])
        once = task.psnr(task.states(np.ones(1), np.zeros(1), task.noisy)[-1])
        found = minimize(
            task.negative_psnr,
            point,
            jac=True,
            method="L-BFGS-B",
            bounds=[BOUNDS[0]] * steps + [BOUNDS[1]] * steps,
            options={"maxiter": options.iterations, "maxfun": options.iterations + 5},
        )
        point = found.x
        levels, weights = (np.round(x, 4).tolist() for x in unpack(point))
        rows.append({"level": level, "one_step": once, "psnr": -found.fun, "levels": levels, "weights": weights})
        print(
            f"255 sigma = {level}: one step {once:.3f} dB, {steps} steps {-found.fun:.3f} dB",
            levels,
            weights,
            flush=True,
        )
    entry = {
        "sigmas": [level / 255 for level in LEVELS],
        "levels": [row["levels"] for row in rows],
        "weights": [row["weights"] for row in rows],
    }
    PatchPrior(prior.filters, prior.experts, {**prior.card, CARD_ENTRY: entry}).save(prior_file(options.name))
    settings = {name: value for name, value in vars(options).items() if name != "data"} | {"steps": steps}
    write_record(RECORDS / f"schedules-{options.name}.json", {"settings": settings, "rows": rows})


if __name__ == "__main__":
    main()
