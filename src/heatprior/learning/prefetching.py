"""Prefetching: while a step works where it leaves a core free, the next batch is drawn in the background.

A batch is a function of the number of its step alone, so that it is the same whichever thread draws it, and when:
results are bit-identical for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from heatprior.kernels.threads import meanwhile

Batch = TypeVar("Batch")


class Prefetched(Generic[Batch]):
    """The batches of steps 0 to `steps` − 1, by `draw`; drawn when they are asked for, unless begun before."""

    def __init__(self, draw: Callable[[int], Batch], steps: int) -> None:
        self._draw = draw
        self._steps = steps
        self._begun: dict[int, Callable[[], Batch]] = {}

    def begin(self, step: int) -> None:
        """Begin to draw the batch of a step, if it was not begun and there is such a step."""
        if step < self._steps and step not in self._begun:
            self._begun = {step: meanwhile(partial(self._draw, step))}

    def of_step(self, step: int) -> Batch:
        """The batch of a step."""
        return self._begun.pop(step, partial(self._draw, step))()
