"""Training with its log: the mean loss over intervals of steps, and validation now and then."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import TrainingError
from heatprior.learning.logs import LogEntry
from heatprior.learning.settings import PriorTraining, Validated
from heatprior.learning.steps import StepReport
from heatprior.learning.validation import Validation
from heatprior.priors.stored import StoredPrior

LOG_ENTRIES = 200  # in a run, evenly spaced
VALIDATIONS = 10  # at most so many entries come with a validation, the last one among them
SINCE_ENTRY = "since_record"  # in the state: as in the checkpoints of earlier versions


class Loop:
    """A training, its validation, and what happened since the last log entry.

    Whatever it yields, `state` is then whole: a loop that goes on from it yields what this one would have.
    """

    def __init__(self, training: PriorTraining[StoredPrior], validation: Validation | None = None) -> None:
        self.training = training
        self.validation = validation
        config = training.config
        self._log_every = max(1, config.steps // LOG_ENTRIES)
        every = max(config.steps // VALIDATIONS, config.steps_per_validation)
        self._validate_every = -(-every // self._log_every) * self._log_every
        self._losses, self._counted, self._stepping, self._seconds = 0.0, 0, 0.0, 0.0

    def run(self) -> Iterator[StepReport | LogEntry]:
        """Train to the end: a StepReport after each step, a LogEntry after each interval."""
        clock = time.perf_counter()
        steps = self.training.run(self.training.config.steps)
        while True:
            if self.is_due():
                validated = self._validate()
                self._seconds += time.perf_counter() - clock
                clock = time.perf_counter()
                yield self._entry(validated)
            begin = time.perf_counter()
            report = next(steps, None)
            if report is None:
                return
            if not math.isfinite(report.loss):
                raise TrainingError(f"the loss is {report.loss} at step {report.step}; lower the rates")
            self._losses += report.loss
            self._counted += 1
            self._stepping += time.perf_counter() - begin
            self._seconds += time.perf_counter() - clock
            clock = time.perf_counter()
            yield report

    def is_due(self) -> bool:
        """Whether a log entry comes next."""
        done = self.training.done
        return self._counted > 0 and (done % self._log_every == 0 or done == self.training.config.steps)

    def is_finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.training.done == self.training.config.steps and not self.is_due()

    def _validate(self) -> Validated:
        """The validation, if there is one and its time has come."""
        done = self.training.done
        if not self.validation or (done % self._validate_every != 0 and done != self.training.config.steps):
            return Validated()
        return self.training.validate(self.validation)

    def _entry(self, validated: Validated) -> LogEntry:
        speed, loss = self._counted / max(self._stepping, 1e-9), self._losses / self._counted
        entry = LogEntry(self.training.done, loss, validated.psnr, speed, self._seconds, validated.log_likelihood)
        self._losses, self._counted, self._stepping = 0.0, 0, 0.0
        return entry

    def state(self) -> dict[str, FloatArray]:
        """Everything needed to go on."""
        since = np.array([self._losses, self._counted, self._stepping, self._seconds])
        return self.training.state() | {SINCE_ENTRY: since}

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Go on from `state`."""
        self.training.restore({name: array for name, array in state.items() if name != SINCE_ENTRY})
        self._losses, counted, self._stepping, self._seconds = (float(x) for x in state[SINCE_ENTRY])
        self._counted = int(counted)
