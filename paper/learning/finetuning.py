"""Fine-tuning: a trained prior, and the schedules of its splitting, made to denoise images rather than single patches.

The prior stays what it is, a product of mixtures that is known at every noise level, with orthogonal filters; its
weights move from where the density of patches wants them to where the denoised image has the least error
(`learning/denoising.py`). First through one averaging step, which costs little, then through all steps of the splitting
as well, and last, if wanted, through one step again with more weight on strong noise, which splitting neglects. Like a
training, it is a function of its seed, and goes on from its state with the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource
from heatprior.data.trials import LEVELS
from heatprior.errors import InvalidInputError
from heatprior.kernels.threads import for_each
from heatprior.learning.patch_training import BETA_MEAN, BETA_SQUARE, EPSILON, OrthogonalAdam, Point, project_orthogonal
from heatprior.learning.training import StepByStep, check_sizes
from heatprior.priors.experts import Experts
from heatprior.priors.filters import FilterBank
from heatprior.priors.patch import PatchPrior
from paper.learning.cards import check_range, part_of_newest, tuned_card
from paper.learning.denoising_loss import SIGMA_EXPONENT, Denoising, NoisyCrops

SIGMAS = tuple(level / 255 for level in LEVELS)  # noise levels of which each has its schedule
LOG_LEVEL_BOUNDS, LOGIT_WEIGHT_BOUNDS = (-3.0, 0.7), (-6.0, 3.0)  # bounds
CONSTANT_RATE_FRACTION = 0.4  # of each phase; then the rates fall linearly to zero


@dataclass(frozen=True)
class FineTuningConfig:
    """How many steps through one averaging step and through all of the splitting, on how many crops, and how fast.

    A step of the first and the last phase takes `levels` noise levels with `crops` crops each, one of the second phase
    half as many levels. The last phase divides squared errors by sigma^`last_exponent`.
    """

    averaging_steps: int = 2000
    splitting_steps: int = 400
    last_steps: int = 0
    side: int = 48
    levels: int = 4
    crops: int = 4
    sigma_min: float = 0.04
    sigma_max: float = 0.45
    last_exponent: float = -0.2
    filter_rate: float = 0.003
    logit_rate: float = 0.02
    schedule_rate: float = 0.02
    averaged: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or min(self.averaging_steps, self.splitting_steps, self.last_steps) < 0:
            raise InvalidInputError("the numbers of steps must not be negative, nor all zero")
        if self.levels < 2 or self.crops < 1:
            raise InvalidInputError(f"levels is {self.levels} and crops {self.crops}; expected at least 2 and 1")
        check_range(self.sigma_min, self.sigma_max)

    @property
    def steps(self) -> int:
        """Of all phases."""
        return self.averaging_steps + self.splitting_steps + self.last_steps

    def phase(self, done: int) -> Phase:
        """That of the step after `done` ones."""
        first, second = self.averaging_steps, self.averaging_steps + self.splitting_steps
        if done < first:
            return Phase(0, first, False, SIGMA_EXPONENT)
        if done < second:
            return Phase(first, self.splitting_steps, True, SIGMA_EXPONENT)
        return Phase(second, self.last_steps, False, self.last_exponent)


class Phase(NamedTuple):
    """After how many steps it begins, how many it has, whether they go through the splitting, weighting of errors."""

    begun: int
    length: int
    splitting: bool
    exponent: float


class FineTuning(StepByStep):
    """A run: the prior, its schedules (2, sigmas, steps) as log levels and logit weights, and how far it is."""

    def __init__(
        self,
        config: FineTuningConfig,
        prior: PatchPrior,
        source: PatchSource,
        levels: Sequence[Sequence[float]],
        weights: Sequence[Sequence[float]],
    ) -> None:
        """`source` cuts crops; `levels` and `weights` are the first schedules, (sigmas, steps)."""
        super().__init__(source, config.side, config.steps)
        if config.side < 3 * prior.filters.size:
            raise InvalidInputError(
                f"crops of side {config.side} have too few pixels inside for patches of side {prior.filters.size}; "
                f"give at least {3 * prior.filters.size}"
            )
        self.config = config
        self._prior = prior
        schedules = np.stack([np.log(levels), np.clip(logit(weights), *LOGIT_WEIGHT_BOUNDS)])
        self.point: Point = [np.array(prior.filters.matrix), np.array(prior.experts.logits), schedules]
        self._average: Point = [block.copy() for block in self.point]
        self._optimizer = OrthogonalAdam.begin(self.point[:2])
        self._moments = np.zeros((2, *schedules.shape))  # of the gradient in the schedules, and of its square

    def _step(self) -> float:
        config = self.config
        begun, length, splitting, exponent = config.phase(self.done)
        pace = min(1.0, (1.0 - (self.done - begun) / length) / (1.0 - CONSTANT_RATE_FRACTION))
        batch = self._batch(self.done, config.levels // 2 if splitting else config.levels)
        schedules = np.stack([np.exp(self.point[2][0]), expit(self.point[2][1])])  # (2, sigmas, steps)
        weights = [schedule_weights(crops.sigma) for crops in batch]
        mixed = [np.tensordot(parts, schedules, axes=(0, 1))[:, : None if splitting else 0] for parts in weights]
        loss = Denoising(batch, self._prior.experts.reach, exponent=exponent)
        in_schedules: list[FloatArray] = []

        def gradient(point: Point) -> tuple[float, Point]:
            value, in_prior, found = loss.gradient(point, mixed)
            in_schedules.extend(found)
            return value, in_prior

        rates = (pace * config.filter_rate, pace * config.logit_rate)
        value, prior = self._optimizer.step(self.point[:2], gradient, rates)
        self.point = [*prior, self.point[2]]
        self.done += 1
        if splitting:
            in_all = sum(parts[:, None] * found[:, None] for parts, found in zip(weights, in_schedules, strict=True))
            slopes = np.stack(
                [schedules[0], schedules[1] * (1.0 - schedules[1])]
            )  # of exp and of the logistic function
            self._move_schedules(slopes * in_all, pace * config.schedule_rate, self.done - begun)
        new = part_of_newest(config.averaged, self.done - begun)
        self._average = [(1.0 - new) * old + new * now for old, now in zip(self._average, self.point, strict=True)]
        return value

    def _move_schedules(self, gradient: FloatArray, rate: float, steps: int) -> None:
        """One step of Adam; levels, being logarithms, move less than weights."""
        mean, square = self._moments
        mean += (1.0 - BETA_MEAN) * (gradient - mean)
        square += (1.0 - BETA_SQUARE) * (gradient**2 - square)
        step = mean / (1.0 - BETA_MEAN**steps) / (np.sqrt(square / (1.0 - BETA_SQUARE**steps)) + EPSILON)
        moved = self.point[2] - rate * np.array([0.3, 1.0])[:, None, None] * step
        bounds = np.array([LOG_LEVEL_BOUNDS, LOGIT_WEIGHT_BOUNDS])[:, :, None, None]
        self.point[2] = np.clip(moved, bounds[:, 0], bounds[:, 1])

    def _batch(self, step: int, levels: int) -> list[NoisyCrops]:
        """Crops with one noise level in each of `levels` equal parts of the range of log sigma."""
        config = self.config

        def piece(number: int) -> NoisyCrops:
            rng = np.random.default_rng([config.seed, step, number])
            clean = self.source.draw(config.crops, rng).T.reshape(-1, config.side, config.side)
            place = (number + rng.random()) / levels
            sigma = config.sigma_min * (config.sigma_max / config.sigma_min) ** place
            return NoisyCrops(clean, rng.standard_normal(clean.shape), sigma)

        return for_each(piece, range(levels))

    def schedules(self) -> dict[str, Any]:
        """The average of the last schedules, as a card has them; in the last phase they stay where they were last."""
        logs, logits = self._average[2]
        return {
            "sigmas": list(SIGMAS),
            "levels": np.round(np.exp(logs), 4).tolist(),
            "weights": np.round(expit(logits), 4).tolist(),
        }

    def prior(self, card: dict[str, Any] | None = None) -> PatchPrior:
        """The average of the last iterates as a prior, its filters sorted by norm."""
        filters, logits = project_orthogonal(self._average[0], steps=None), self._average[1]
        order = np.argsort(np.linalg.norm(filters, axis=1))
        known = tuned_card(self._prior.card, "fine-tuning", self.config, self.done)
        return PatchPrior(
            FilterBank(filters[order]),
            Experts(logits[order], self._prior.experts.reach),
            {**known, "hqs": self.schedules(), **(card or {})},
        )

    def state(self) -> dict[str, FloatArray]:
        """Everything needed to go on."""
        blocks = ("filters", "logits", "schedules")
        return {
            **dict(zip(blocks, self.point, strict=True)),
            **{f"average.{name}": block for name, block in zip(blocks, self._average, strict=True)},
            "moments": self._moments,
            "done": np.array([self.done], dtype=np.float64),
            **{f"optimizer.{name}": array for name, array in self._optimizer.state().items()},
        }

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Go on from `state`, of a run with the same configuration, prior and images."""
        blocks = ("filters", "logits", "schedules")
        check_sizes(state, zip(blocks, self.point, strict=True))
        self.point = [state[name].copy() for name in blocks]
        self._average = [state[f"average.{name}"].copy() for name in blocks]
        self._moments = state["moments"].copy()
        self.done = int(state["done"][0])
        optimizer = {name.removeprefix("optimizer."): x for name, x in state.items() if name.startswith("optimizer.")}
        self._optimizer = OrthogonalAdam.from_state(optimizer)


def schedule_weights(sigma: float) -> FloatArray:
    """The weight of the schedule of each of SIGMAS at a noise level: linear in log sigma, constant beyond the ends."""
    logs = np.log(SIGMAS)
    return np.array([np.interp(np.log(sigma), logs, unit) for unit in np.eye(len(logs))])
