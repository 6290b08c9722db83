"""A run of tuning: Adam on the shapes, weights, contrasts and schedules of a mixture, for the error of denoised crops.

The loss of a step is the logarithm of the mean root mean square error of its crops, so that every noise level counts
the same, in dB, and smooth crops count more than by their squared errors. Shapes turn by angles, so that axes stay
orthonormal: what comes out is a mixture of Gaussians like any other, known exactly at every noise level. A step depends
on the seed and on its number alone, so a run goes on from its state with the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource
from heatprior.errors import InvalidInputError
from heatprior.learning.patch_training import BETA_MEAN, BETA_SQUARE, EPSILON
from heatprior.learning.training import StepByStep, check_sizes
from heatprior.noise_value import Noise
from heatprior.priors.expectation_maximisation import FLOOR
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.mixture_step import CARD_ENTRY
from heatprior.restoration import pyramid
from paper.learning.cards import check_range, part_of_newest, tuned_card
from paper.tuning.soft_choice import MixtureTensors, Subspace
from paper.tuning.unrolled import STRIDE, Plan, denoised

NODES = tuple(level / 255 for level in (3.0, 7.5, 15.0, 25.0, 50.0, 100.0))  # noise levels with a schedule of their own
FIRST = ((1.0, 0.4), (0.3, 0.02))  # levels and weights of the steps
FIRST_BETWEEN = pyramid.Crossover(0.3, 0.06)  # after the first step
CANDIDATES = 5  # that the library hands on; 6 gain 0.006 to 0.01 dB on validation crops and take an eighth longer
RIVAL = 0.6  # how likely other shapes must be to take part; 0.3 gains 0.004 dB there and takes a tenth longer
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples fill an interval evenly
BLOCKS = (
    *("axes", "log_variances", "log_contrasts", "logits", "log_confidences"),  # of the mixture
    *("log_levels", "logit_weights", "crossover", "between", "log_window"),  # of the plan
)


@dataclass(frozen=True)
class TuningConfig:
    """How many steps, on how many crops of which side, at how many scales, noise levels from … to, and rates of Adam.

    `angle_rate` is in radians; `spectrum_rate` is of logarithms of variances, contrasts and weights; `plan_rate` of the
    schedules and of how patches are averaged. They rise in the first `warm_up` steps and fall to zero in the last part
    of the run after `constant`.
    """

    steps: int = 2000
    crops: int = 6
    side: int = 64
    scales: int = 3
    sigma_min: float = 5.0 / 255
    sigma_max: float = 115.0 / 255
    angle_rate: float = 0.003
    spectrum_rate: float = 0.02
    plan_rate: float = 0.01
    warm_up: int = 20
    constant: float = 0.4
    averaged: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.steps, self.crops, self.scales) < 1:
            raise InvalidInputError("steps, crops and scales must be at least 1")
        if self.side % 2 ** (self.scales - 1) or self.side >> (self.scales - 1) < 16:
            raise InvalidInputError(
                f"crops of side {self.side} cannot be halved {self.scales - 1} times to at least 16 pixels; give 64"
            )
        check_range(self.sigma_min, self.sigma_max)


class Tuning(StepByStep):
    """A run: its parameters, their average over the last steps, the moments of Adam, and how far it is."""

    def __init__(self, config: TuningConfig, prior: GaussianMixturePrior, source: PatchSource) -> None:
        """`source` cuts the crops."""
        super().__init__(source, config.side, config.steps)
        self.config, self._card, self._basis = config, dict(prior.card), torch.tensor(prior.basis).float()
        values = (
            prior.axes,
            np.log(prior.variances),
            np.log(prior.contrasts),
            prior.log_weights,
            np.log(prior.step_settings.confidences),
            *first_plan(prior),
        )
        self.point = [torch.tensor(value, dtype=torch.float32) for value in values]
        self._average = [block.clone() for block in self.point]
        shapes, dimension = prior.variances.shape
        like = [torch.zeros(shapes, dimension, dimension), *(torch.zeros_like(block) for block in self.point[1:])]
        self._moments = [(block.clone(), block.clone()) for block in like]  # of angles instead of axes

    def _step(self) -> float:
        clean, noisy, sigma = self._batch(self.done)
        leaves = [block.detach().requires_grad_() for block in self.point]
        mixture, plan = parts_of(leaves)
        estimate = denoised(noisy, sigma, mixture, Subspace.of(mixture), plan, self.config.scales)
        errors = (estimate - clean).square().mean((1, 2)).sqrt()
        loss = 20.0 / math.log(10.0) * errors.mean().log()  # minus PSNR, in dB
        loss.backward()
        self.done += 1
        self._move([leaf.grad.detach() for leaf in leaves])
        part = part_of_newest(self.config.averaged, self.done)
        for old, new in zip(self._average, self.point, strict=True):
            old.lerp_(new, part)
        return float(loss.detach())

    def _move(self, gradients: list[Tensor]) -> None:
        config, (of_axes, *others) = self.config, gradients
        left = (config.steps - self.done + 1) / config.steps
        pace = min(1.0, self.done / config.warm_up, left / (1.0 - config.constant))
        rates = [config.angle_rate, *[config.spectrum_rate] * 3, *[config.plan_rate] * (len(BLOCKS) - 4)]
        turn = of_axes @ self.point[0].mT
        steps = [
            pace * rate * self._adam(block, gradient)
            for block, (rate, gradient) in enumerate(zip(rates, [turn - turn.mT, *others], strict=True))
        ]
        self.point[0] = orthonormal(torch.linalg.matrix_exp(-steps[0]) @ self.point[0])
        for number, step in enumerate(steps[1:], 1):
            self.point[number] -= step

    def _adam(self, block: int, gradient: Tensor) -> Tensor:
        mean, square = self._moments[block]
        mean.lerp_(gradient, 1.0 - BETA_MEAN)
        square.lerp_(gradient.square(), 1.0 - BETA_SQUARE)
        return (mean / (1.0 - BETA_MEAN**self.done)) / ((square / (1.0 - BETA_SQUARE**self.done)).sqrt() + EPSILON)

    def _batch(self, step: int) -> tuple[Tensor, Tensor, float]:
        """Clean and noisy crops (N, side, side) of one noise level; successive steps fill the range of log sigma."""
        config = self.config
        rng = np.random.default_rng([config.seed, step])
        clean = self.source.draw(config.crops, rng).T.reshape(-1, config.side, config.side)
        sigma = config.sigma_min * (config.sigma_max / config.sigma_min) ** ((step * GOLDEN) % 1.0)
        noisy = clean + sigma * rng.standard_normal(clean.shape)
        return torch.from_numpy(clean).float(), torch.from_numpy(noisy).float(), sigma

    def prior(self, card: Mapping[str, Any] | None = None) -> GaussianMixturePrior:
        """The average of the last iterates as a prior, with its schedules on the card."""
        mixture, plan = parts_of(self._average)
        axes = orthonormal(orthonormal(mixture.axes)) @ self._basis.mT
        turns = np.linalg.qr(axes.double().numpy().swapaxes(1, 2))[0]  # (K, d, d), axes as columns
        variances = mixture.log_variances.double().exp().clamp_min(FLOOR).numpy()
        covariances = (turns * variances[:, None, :]) @ turns.swapaxes(1, 2)
        known = tuned_card(self._card, "tuning", self.config, self.done)
        return GaussianMixturePrior(
            covariances,
            mixture.log_weights.double().numpy(),
            mixture.log_contrasts.double().exp().numpy(),
            {**known, **entries_of(mixture, plan), **(card or {})},
        )

    def state(self) -> dict[str, Tensor]:
        """Everything needed to go on."""
        named = {"done": torch.tensor([self.done])}
        for number, name in enumerate(BLOCKS):
            named[name], named[f"average.{name}"] = self.point[number], self._average[number]
            named[f"mean.{name}"], named[f"square.{name}"] = self._moments[number]
        return named

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from `state`, of a run with the same settings, prior and images."""
        check_sizes(state, zip(BLOCKS, self.point, strict=True))
        self.done = int(state["done"])
        self.point = [state[name].clone() for name in BLOCKS]
        self._average = [state[f"average.{name}"].clone() for name in BLOCKS]
        self._moments = [(state[f"mean.{name}"].clone(), state[f"square.{name}"].clone()) for name in BLOCKS]


def parts_of(blocks: list[Tensor]) -> tuple[MixtureTensors, Plan]:
    """The mixture, and the plan of its splitting."""
    return MixtureTensors(*blocks[:5]), Plan(torch.tensor(NODES).log(), *blocks[5:])


def first_plan(prior: GaussianMixturePrior) -> tuple[FloatArray, ...]:
    """As `Plan` has it: what an earlier run left on the card, or a usual one."""
    card, size = prior.card, prior.size
    if "tuning" in card:
        levels, weights = (np.array(card["hqs"][key]).T for key in ("levels", "weights"))
    else:
        levels, weights = (_at_all_nodes(first) for first in FIRST)
    last = pyramid.crossover_table(card)
    crossover = np.array([pyramid.crossover_at(last, Noise.constant(sigma))[:2] for sigma in NODES]).T  # (2, m)
    table = pyramid.read_crossovers(card, pyramid.BETWEEN)
    merging = [pyramid.crossover_at(table, Noise.constant(sigma)) if table else FIRST_BETWEEN for sigma in NODES]
    between = np.array(merging).T
    for merger in (crossover, between):
        merger[1] = np.log(merger[1])
    quarter = np.log(prior.step_settings.window.reshape(size, size))[: -(-size // 2), : -(-size // 2)]
    return np.log(levels), np.log(weights / (1.0 - weights)), crossover, between, quarter


def _at_all_nodes(values: tuple[float, ...]) -> FloatArray:
    return np.repeat(np.array(values)[:, None], len(NODES), 1)


def entries_of(mixture: MixtureTensors, plan: Plan) -> dict[str, Any]:
    """Schedules, cross-overs, and how patches are averaged, as a card has them."""
    levels, weights = plan.log_levels.exp().mT, plan.logit_weights.sigmoid().mT
    size = math.isqrt(mixture.axes.shape[-1])

    def rounded(values: Tensor) -> Any:
        return np.round(values.double().numpy(), 4).tolist()

    sigmas = [round(sigma, 6) for sigma in NODES]
    return {
        "hqs": {
            "sigmas": sigmas,
            "levels": rounded(levels),
            "weights": rounded(weights),
            "strides": [STRIDE] * levels.shape[1],
        },
        pyramid.CARD_ENTRY: {
            "sigmas": sigmas,
            "edges": rounded(plan.crossover[0]),
            "widths": rounded(plan.crossover[1].exp()),
        },
        pyramid.BETWEEN: {
            "sigmas": sigmas,
            "edges": rounded(plan.between[0]),
            "widths": rounded(plan.between[1].exp()),
            "heights": rounded(plan.between[2]),
        },
        CARD_ENTRY: {
            "window": rounded(plan.window(size).view(size, size)),
            "confidences": rounded(mixture.log_confidences.exp()),
            "rival": RIVAL,
            "candidates": CANDIDATES,
        },
    }


def orthonormal(axes: Tensor) -> Tensor:
    """Axes (K, d, a) nearer to orthonormal: one step of Newton and Schulz towards the polar factor."""
    return 1.5 * axes - 0.5 * (axes @ axes.mT) @ axes
