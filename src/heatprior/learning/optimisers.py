"""The optimiser of training: Adam on the manifold of orthogonal filters. Of the model it sees nothing but gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.learning.projections import polar_factor

Point = list[FloatArray]  # one array for each block of variables
Gradient = Callable[[Point], tuple[float, Point]]  # of a point: the function there, and its gradient in all blocks

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

    def step(self, point: Point, gradient: Gradient, rates: tuple[float, float]) -> tuple[float, Point]:
        """One step with rates for angles (radians) and logits: the function before it, and the new point."""
        filters, logits = point
        value, (in_filters, in_logits) = gradient(point)
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
