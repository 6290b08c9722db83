"""What all learning has in common: steps, one after the other, and a report after each."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from heatprior.data.datasets import PatchSource
from heatprior.errors import InvalidInputError
from heatprior.kernels.threads import products_in_one_thread


@dataclass(frozen=True)
class StepReport:
    """What one step reports: its number (1 for the first), the loss before it, and the seconds since the start."""

    step: int
    loss: float
    seconds: float


class StepByStep(ABC):
    """A run of `steps` steps on patches of a source, `done` of which are done."""

    def __init__(self, source: PatchSource, size: int, steps: int) -> None:
        if source.size != size:
            raise InvalidInputError(f"the source cuts patches of size {source.size} but {size} is asked for")
        self.source = source
        self.done = 0
        self._steps = steps

    def run(self, steps: int) -> Iterator[StepReport]:
        """Do up to `steps` more steps, no further than the end of the run, and report after each."""
        begin = time.perf_counter()
        with products_in_one_thread():
            for _ in range(min(steps, self._steps - self.done)):
                loss = self._step()
                yield StepReport(self.done, loss, time.perf_counter() - begin)

    @abstractmethod
    def _step(self) -> float:
        """The next step, counted in `done`: the loss before it."""


def check_sizes(state: Mapping[str, Any], blocks: Iterable[tuple[str, Any]]) -> None:
    """Refuse the state of a run whose arrays have other shapes than these blocks."""
    if any(state[name].shape != block.shape for name, block in blocks):
        raise InvalidInputError("the state belongs to a run with other sizes; start a new run")
