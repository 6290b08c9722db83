"""The paper's training of a patch prior: iPALM with the projection of Algorithm 1, from its start (section 4.1).

All else is that of `hp.train`: `hp.train(images, PaperConfig())`. In a run folder, `paper.weights.train` can resume it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource
from heatprior.errors import InvalidInputError
from heatprior.learning.patch_training import BOTH, Loss, Point, Training, TrainingConfig, project_orthogonal
from heatprior.priors.experts import ALPHA, PAPER_COMPONENTS, Experts

CHECK_EVERY = 4  # steps between two checks of the bound
PROJECTION_STEPS = 3  # of Algorithm 1, after each step


@dataclass(frozen=True)
class Objective:
    """A smooth function of several blocks, and for each block the projection onto its constraint, or None.

    `value(point)` is the function; `gradient(point, block)` gives the value and the gradient in one block, or in all of
    them, as a list, for `block=None`.
    """

    value: Callable[[Point], float]
    gradient: Callable[[Point, int | None], tuple[float, Point]]
    projections: Sequence[Callable[[FloatArray], FloatArray] | None]

    @classmethod
    def of(cls, loss: Loss, projections: Sequence[Callable[[FloatArray], FloatArray] | None]) -> Objective:
        """That of a loss of filters and logits, such as score matching's."""

        def gradient(point: Point, block: int | None) -> tuple[float, Point]:
            return loss(point, BOTH if block is None else (block,))

        return cls(lambda point: loss(point, ())[0], gradient, projections)


# Of the bound, relative to f: near a minimum both sides agree to rounding, which must not stall the step. In float32
# rounding is larger, 1e-8, but random batches keep away from a minimum: there the bound has a margin of 1e-4 and more.
SLACK = 1e-9
MOST_BACKTRACKS = 60


@dataclass
class IPalm:
    """iPALM, the inertial proximal alternating linearised minimisation of Pock and Sabach (2016).

    For each block in turn: extrapolate, step against the gradient by 1/L, project. The Lipschitz constant L of a block
    is found by backtracking: a step is accepted if the function stays below the quadratic bound that L promises,

        f(x⁺) ≤ f(z) + ⟨∇f(z), x⁺ − z⟩ + (L/2) ‖x⁺ − z‖².

    The bound may be checked at some steps only: on batches of one kind L changes slowly, and a check costs about as
    much as the gradient.

    The state between two steps: the previous point, the Lipschitz constants of the blocks, the number of steps done.
    """

    previous: Point
    lipschitz: FloatArray
    inertia: float = 0.7
    relax: float = 0.98  # L shrinks by this factor after each step, so that it can follow a flattening function
    check_every: int = 1  # steps between two checks of the bound
    done: int = 0

    def step(self, point: Point, objective: Objective) -> tuple[float, Point]:
        """One step in every block: the function before the step, and the new point."""
        current, first_value = list(point), np.nan
        checked = self.done % self.check_every == 0
        for block, project in enumerate(objective.projections):
            x = current[block]
            z = x + self.inertia * (x - self.previous[block])
            trial = [*current[:block], z, *current[block + 1 :]]
            value, (gradient,) = objective.gradient(trial, block)
            first_value = value if block == 0 else first_value
            for _ in range(MOST_BACKTRACKS):
                lipschitz = self.lipschitz[block]
                stepped = z - gradient / lipschitz
                candidate = stepped if project is None else project(stepped)
                if not checked:
                    break
                move = candidate - z
                bound = value + float(np.vdot(gradient, move)) + 0.5 * lipschitz * float(np.vdot(move, move))
                trial[block] = candidate
                if objective.value(trial) <= bound + SLACK * abs(value):
                    break
                self.lipschitz[block] *= 2.0
            self.previous[block] = x
            current[block] = candidate
            self.lipschitz[block] *= self.relax
        self.done += 1
        return first_value, current

    def state(self) -> dict[str, FloatArray]:
        """The arrays that a checkpoint must keep."""
        counts = np.array([self.check_every, self.done], dtype=np.float64)
        return {f"previous{i}": x for i, x in enumerate(self.previous)} | {
            "lipschitz": self.lipschitz,
            "counts": counts,
        }

    @classmethod
    def begin(cls, point: Point, check_every: int = 1) -> IPalm:
        """The state before the first step, with Lipschitz constants that backtracking will correct."""
        return cls([x.copy() for x in point], np.ones(len(point)), check_every=check_every)

    @classmethod
    def from_state(cls, state: dict[str, FloatArray]) -> IPalm:
        """The inverse of `state`."""
        lipschitz = state["lipschitz"].copy()
        check_every, done = (int(count) for count in state.get("counts", (1, 0)))  # older checkpoints have none
        previous = [state[f"previous{i}"].copy() for i in range(lipschitz.size)]
        return cls(previous, lipschitz, check_every=check_every, done=done)


@dataclass(frozen=True)
class PaperConfig(TrainingConfig):
    """The settings of the paper; `noise` is "uniform" in sigma or "log", `start` "paper" or "student"."""

    kind: ClassVar[str] = "patch-ipalm"
    least_sigma: ClassVar[float] = 0.0

    steps: int = 100_000
    sigma_min: float = 0.0
    averaged: int = 1
    noise: str = "uniform"
    start: str = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise not in ("log", "uniform") or (
            self.noise == "log" and self.sigma_min < TrainingConfig.least_sigma
        ):
            raise InvalidInputError(f"noise is {self.noise!r} from {self.sigma_min:g} on; expected 'log' or 'uniform'")
        if self.start not in ("student", "paper"):
            raise InvalidInputError(f"start is {self.start!r}; expected 'student' or 'paper'")

    def training(self, source: PatchSource) -> PaperTraining:
        """A new training run with these settings."""
        return PaperTraining(self, source)


class PaperTraining(Training):
    """A training run by iPALM."""

    optimizer: ClassVar[Any] = IPalm
    config: PaperConfig

    def first_experts(self, count: int) -> Experts:
        """The paper's, or those of `hp.train`."""
        if self.config.start == "student":
            return super().first_experts(count)
        return initial_experts(count, self.config.components, self.config.reach)

    def sigmas(self, places: FloatArray) -> FloatArray:
        """Uniform in sigma, or in its logarithm."""
        low, high = self.config.sigma_min, self.config.sigma_max
        return super().sigmas(places) if self.config.noise == "log" else low + (high - low) * places

    def _move(self, loss: Loss) -> tuple[float, Point]:
        value, moved = self._optimizer.step(self.point, Objective.of(loss, (_project, None)))
        return value, moved


def _project(filters: FloatArray) -> FloatArray:
    return project_orthogonal(filters, steps=PROJECTION_STEPS)


def initial_experts(count: int, components: int = PAPER_COMPONENTS, reach: float = 1.0) -> Experts:
    """The start of the paper's training: ζ_jl = 0.1 √α / (1 + α mu_l²), α = 1000 (section 4.1)."""
    means = np.linspace(-reach, reach, components)
    logits = 0.1 * np.sqrt(ALPHA) / (1.0 + ALPHA * means**2)
    return Experts(np.tile(logits, (count, 1)), reach)
