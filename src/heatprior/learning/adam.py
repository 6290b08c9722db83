"""Projected Adam: Adam's step in all blocks at once, then the projection of each block onto its constraint.

Here a block has one step size for all its entries. Adam's own, one for each entry, would turn the part of the gradient
that stands on the constraint into one along it, and so end elsewhere than at the minimum; and weights of components
that are rarely seen would be fitted to the noise of few samples, at the cost of the denoising.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.learning.objective import Objective, Point

DECAY_MEAN = 0.9
DECAY_SQUARE = 0.99
TINY = 1e-8


@dataclass
class ProjectedAdam:
    """The state between two steps: running means of the gradients and of their mean squares, and how many steps."""

    means: Point
    squares: FloatArray  # one for each block
    steps: int = 0

    def step(self, point: Point, objective: Objective, rates: Sequence[float]) -> tuple[float, Point]:
        """One step with a step size for each block: the function before the step, and the new point."""
        value, gradients = objective.gradient(point, None)
        self.steps += 1
        moved = []
        for block, (x, gradient, rate) in enumerate(zip(point, gradients, rates, strict=True)):
            project = objective.projections[block]
            self.means[block] = DECAY_MEAN * self.means[block] + (1.0 - DECAY_MEAN) * gradient
            self.squares[block] = DECAY_SQUARE * self.squares[block] + (1.0 - DECAY_SQUARE) * (gradient**2).mean()
            mean = self.means[block] / (1.0 - DECAY_MEAN**self.steps)
            scale = np.sqrt(self.squares[block] / (1.0 - DECAY_SQUARE**self.steps)) + TINY
            stepped = x - rate * mean / scale
            moved.append(stepped if project is None else project(stepped))
        return value, moved

    def state(self) -> dict[str, FloatArray]:
        """Everything that a checkpoint must keep."""
        arrays = {f"mean{i}": x for i, x in enumerate(self.means)}
        return arrays | {"squares": self.squares, "steps": np.array([self.steps], dtype=np.float64)}

    @classmethod
    def begin(cls, point: Point) -> ProjectedAdam:
        """No memory yet."""
        return cls([np.zeros_like(x) for x in point], np.zeros(len(point)))

    @classmethod
    def from_state(cls, state: dict[str, FloatArray]) -> ProjectedAdam:
        """The inverse of `state`."""
        squares = state["squares"].copy()
        return cls([state[f"mean{i}"].copy() for i in range(squares.size)], squares, int(state["steps"][0]))
