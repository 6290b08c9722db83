"""The optimisers of training: Adam on the manifold of orthogonal filters, and iPALM, the paper's.

Both see a problem as callables on a list of blocks of variables, and nothing of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.learning.projections import polar_factor

Point = list[FloatArray]  # one array for each block of variables


@dataclass(frozen=True)
class Objective:
    """A smooth function of several blocks, and for each block the projection onto its constraint, or None.

    `value(point)` is the function; `gradient(point, block)` gives the value and the gradient in one block, or in all of
    them, as a list, for `block=None`.
    """

    value: Callable[[Point], float]
    gradient: Callable[[Point, int | None], tuple[float, Point]]
    projections: Sequence[Callable[[FloatArray], FloatArray] | None]


BETA_MEAN = 0.9  # β₁
BETA_SQUARE = 0.99  # β₂
EPSILON = 1e-12  # against division by zero
NORM_RATE = 3.0  # relative change of a norm in one step, for a turn by one


@dataclass
class OrthogonalAdam:
    """Adam on the manifold of orthogonal filters: it rotates pairs of filters in their common plane, and scales them.

    It minimises over [filters (J, a), logits]. The filters must be orthogonal from the start, and their span does not
    change: a full set of zero-mean filters, J = a − 1, loses nothing by that.

    Orthogonal filters are diag(norms) O with O Oᵀ = Id. A small move of O along the constraint is an antisymmetric
    matrix A: O ← (Id − A) O, and A_ij is the angle by which filters i and j rotate in their common plane. Adam takes
    its steps in these angles, in the logarithms of the norms and in the logits, each with a step size of its own, so
    that filters with weak, high-frequency responses rotate as readily as strong ones; with steps in the entries of the
    filters, the strong ones would hold them back. The polar factor removes the second-order error.

    The logits share one step size: with one each, as in plain Adam, the weights of rarely seen components overfit.

    The state between two steps: running means of the gradients (angles, log-norms, logits) and of their squares.
    """

    means: Point
    squares: Point
    steps: int = 0

    def step(self, point: Point, objective: Objective, rates: tuple[float, float]) -> tuple[float, Point]:
        """One step with rates for angles (radians) and logits: the function before it, and the new point."""
        filters, logits = point
        value, (in_filters, in_logits) = objective.gradient(point, None)
        norms = np.linalg.norm(filters, axis=1, keepdims=True)
        directions = filters / norms
        in_turns = (norms * in_filters) @ directions.T  # (J, J)
        turn, growth, change = self._steps_for(
            [in_turns - in_turns.T, (in_filters * filters).sum(axis=1, keepdims=True), in_logits]
        )
        turned = polar_factor(directions - rates[0] * turn @ directions)
        return value, [norms * np.exp(-NORM_RATE * rates[0] * growth) * turned, logits - rates[1] * change]

    def _steps_for(self, gradients: Point) -> Point:
        """Adam's steps of size about one; the squares of the logits are averaged to one number."""
        self.steps += 1
        squares = [gradients[0] ** 2, gradients[1] ** 2, np.full(1, (gradients[2] ** 2).mean())]
        steps = []
        for block, (gradient, square) in enumerate(zip(gradients, squares, strict=True)):
            self.means[block] = BETA_MEAN * self.means[block] + (1.0 - BETA_MEAN) * gradient
            self.squares[block] = BETA_SQUARE * self.squares[block] + (1.0 - BETA_SQUARE) * square
            mean = self.means[block] / (1.0 - BETA_MEAN**self.steps)
            scale = np.sqrt(self.squares[block] / (1.0 - BETA_SQUARE**self.steps)) + EPSILON
            steps.append(mean / scale)
        return steps

    def state(self) -> dict[str, FloatArray]:
        """The arrays that a checkpoint must keep."""
        arrays = {f"mean{i}": x for i, x in enumerate(self.means)} | {
            f"square{i}": x for i, x in enumerate(self.squares)
        }
        return arrays | {"steps": np.array([self.steps], dtype=np.float64)}

    @classmethod
    def begin(cls, point: Point) -> OrthogonalAdam:
        """The state before the first step: all moments are zero."""
        count = len(point[0])
        shapes = [(count, count), (count, 1)]
        return cls([*map(np.zeros, shapes), np.zeros_like(point[1])], [*map(np.zeros, shapes), np.zeros(1)])

    @classmethod
    def from_state(cls, state: dict[str, FloatArray]) -> OrthogonalAdam:
        """The inverse of `state`."""
        means, squares = ([state[f"{name}{i}"].copy() for i in range(3)] for name in ("mean", "square"))
        return cls(means, squares, int(state["steps"][0]))


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
