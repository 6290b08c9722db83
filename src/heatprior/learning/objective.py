"""What an optimiser sees of a problem: callables on a list of blocks of variables, and nothing of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heatprior.arrays import FloatArray

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
