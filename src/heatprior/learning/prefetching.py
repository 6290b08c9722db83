"""Prefetching: while a step works on one batch, the next is drawn in the background.

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
    """The batches of steps 0 to `steps` − 1, by `draw`; asking for one begins to draw the next."""

    def __init__(self, draw: Callable[[int], Batch], steps: int) -> None:
        self._draw = draw
        self._steps = steps
        self._begun: dict[int, Callable[[], Batch]] = {}

    def of_step(self, step: int) -> Batch:
        """The batch of a step."""
        batch = self._begun.pop(step, partial(self._draw, step))()
        self._begun = {}
        if step + 1 < self._steps:
            self._begun[step + 1] = meanwhile(partial(self._draw, step + 1))
        return batch
