"""iPALM, the inertial proximal alternating linearised minimisation of Pock and Sabach (2016): the paper's optimiser.

For each block in turn: extrapolate, step against the gradient by 1/L, project. The Lipschitz constant L of a block is
found by backtracking: a step is accepted if the function stays below the quadratic bound that L promises,

    f(x⁺) ≤ f(z) + ⟨∇f(z), x⁺ − z⟩ + (L/2) ‖x⁺ − z‖².

The bound may be checked at some steps only: on batches of one kind L changes slowly, and a check costs about as much as
the gradient.

It sees callables, not the model, and is deterministic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.learning.objective import Objective, Point

# Of the bound, relative to f: near a minimum both sides agree to rounding, which must not stall the step. In float32
# rounding is larger, 1e-8, but random batches keep away from a minimum: there the bound has a margin of 1e-4 and more.
SLACK = 1e-9
MOST_BACKTRACKS = 60


@dataclass
class IPalm:
    """The state between two steps: the previous point, the Lipschitz constants of the blocks, the steps done."""

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
        """Everything that a checkpoint must keep."""
        counts = np.array([self.check_every, self.done], dtype=np.float64)
        return {f"previous{i}": x for i, x in enumerate(self.previous)} | {
            "lipschitz": self.lipschitz,
            "counts": counts,
        }

    @classmethod
    def begin(cls, point: Point, check_every: int = 1) -> IPalm:
        """At rest, with constants that backtracking will correct."""
        return cls([x.copy() for x in point], np.ones(len(point)), check_every=check_every)

    @classmethod
    def from_state(cls, state: dict[str, FloatArray]) -> IPalm:
        """The inverse of `state`."""
        lipschitz = state["lipschitz"].copy()
        check_every, done = (int(count) for count in state.get("counts", (1, 0)))  # older checkpoints have none
        previous = [state[f"previous{i}"].copy() for i in range(lipschitz.size)]
        return cls(previous, lipschitz, check_every=check_every, done=done)
