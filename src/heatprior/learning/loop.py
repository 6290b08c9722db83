"""Training with its records: the mean loss over intervals, validation now and then; and `train`, all in one call."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource, folder_files, read_images
from heatprior.errors import InvalidInputError, TrainingError
from heatprior.images import to_grey
from heatprior.learning.kinds import AnyConfig, AnyTraining, new_training, noise_of_images
from heatprior.learning.mixture_training import MixtureConfig
from heatprior.learning.patch_training import TrainingConfig
from heatprior.learning.steps import Progress
from heatprior.learning.validation import Validation
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.patch import PatchPrior

RECORDS = 200  # in a run, evenly spaced
VALIDATIONS = 10  # at most so many of these come with a validation, the last one among them,
STEPS_PER_VALIDATION = 100  # and so many steps lie between them at least: a validation costs as much as 20 or 30,
LONG_STEPS_PER_VALIDATION = 10  # of mixtures, whose steps are long, ten are enough

Images = str | PathLike[str] | Sequence[NDArray[Any]]


@dataclass(frozen=True)
class Record:
    """A summary of the steps since the last one: mean loss, speed; PSNR for each level of `validation.LEVELS`, or none.

    `seconds` counts from the start of the run, interruptions left out. `log_likelihood` is that of mixtures, the mean
    over patches of the validation images, whenever there is a validation.
    """

    step: int
    loss: float
    psnr: tuple[float, ...] | None
    steps_per_second: float
    seconds: float
    log_likelihood: float | None = None


class Loop:
    """A training, its validation, and what happened since the last record.

    Whatever it yields, `state` is then whole: a loop that goes on from it yields what this one would have.
    """

    def __init__(self, training: AnyTraining, validation: Validation | None = None) -> None:
        self.training = training
        self.validation = validation
        steps = training.config.steps
        self._record_every = max(1, steps // RECORDS)
        long = isinstance(training.config, MixtureConfig)
        every = max(steps // VALIDATIONS, LONG_STEPS_PER_VALIDATION if long else STEPS_PER_VALIDATION)
        self._validate_every = -(-every // self._record_every) * self._record_every
        self._losses, self._counted, self._stepping, self._seconds = 0.0, 0, 0.0, 0.0

    def run(self) -> Iterator[Progress | Record]:
        """Train to the end: a Progress after each step, a Record after each interval."""
        clock = time.perf_counter()
        steps = self.training.run(self.training.config.steps)
        while True:
            if self.is_due():
                psnr, log_likelihood = self._validate()
                self._seconds += time.perf_counter() - clock
                clock = time.perf_counter()
                yield self._record(psnr, log_likelihood)
            begin = time.perf_counter()
            progress = next(steps, None)
            if progress is None:
                return
            if not math.isfinite(progress.loss):
                raise TrainingError(f"the loss is {progress.loss} at step {progress.step}; lower the rates")
            self._losses += progress.loss
            self._counted += 1
            self._stepping += time.perf_counter() - begin
            self._seconds += time.perf_counter() - clock
            clock = time.perf_counter()
            yield progress

    def is_due(self) -> bool:
        """Whether a record comes next."""
        done = self.training.done
        return self._counted > 0 and (done % self._record_every == 0 or done == self.training.config.steps)

    def is_finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.training.done == self.training.config.steps and not self.is_due()

    def _validate(self) -> tuple[tuple[float, ...] | None, float | None]:
        """PSNR and the log-likelihood, as far as it is time for them and they can be had."""
        done = self.training.done
        if not self.validation or (done % self._validate_every != 0 and done != self.training.config.steps):
            return None, None
        prior = self.training.prior()
        explained = self.validation.log_likelihood(prior) if isinstance(prior, GaussianMixturePrior) else None
        return None if self.validation.sigma > 0.0 else self.validation.psnr(prior), explained

    def _record(self, psnr: tuple[float, ...] | None, log_likelihood: float | None) -> Record:
        speed, loss = self._counted / max(self._stepping, 1e-9), self._losses / self._counted
        record = Record(self.training.done, loss, psnr, speed, self._seconds, log_likelihood)
        self._losses, self._counted, self._stepping = 0.0, 0, 0.0
        return record

    def state(self) -> dict[str, FloatArray]:
        """Everything needed to go on."""
        since = np.array([self._losses, self._counted, self._stepping, self._seconds])
        return self.training.state() | {"since_record": since}

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Go on from `state`."""
        self.training.restore({name: array for name, array in state.items() if name != "since_record"})
        self._losses, counted, self._stepping, self._seconds = (float(x) for x in state["since_record"])
        self._counted = int(counted)


@overload
def train(
    images: Images,
    config: TrainingConfig | None = None,
    *,
    validation: Images | None = None,
    report: Callable[[Progress | Record], None] | None = None,
) -> PatchPrior: ...


@overload
def train(
    images: Images,
    config: MixtureConfig,
    *,
    validation: Images | None = None,
    report: Callable[[Progress | Record], None] | None = None,
) -> GaussianMixturePrior: ...


def train(
    images: Images,
    config: AnyConfig | None = None,
    *,
    validation: Images | None = None,
    report: Callable[[Progress | Record], None] | None = None,
) -> PatchPrior | GaussianMixturePrior:
    """A prior learnt from `images`: a folder, or arrays, grey or colour; uint8, uint16, or floats in [0, 1].

    `config` says which kind: a `TrainingConfig` gives a `PatchPrior`, a `MixtureConfig` a `GaussianMixturePrior`.
    `report` is called with a `Progress` after every step and with a `Record` after every interval; the records hold the
    PSNR on the `validation` images, if there are any. To interrupt and resume, use the command `heatprior train`.
    """
    config = config or TrainingConfig()
    source = patch_source(_as_arrays(images, config), config)
    sigma = noise_of_images(config)
    checks = None if validation is None else Validation(_as_arrays(validation, config), config.size, sigma)
    loop = Loop(new_training(config, source), checks)
    for event in loop.run():
        if report is not None:
            report(event)
    return loop.training.prior()


def patch_source(images: Sequence[NDArray[Any]], config: AnyConfig) -> PatchSource:
    """The source of patches for a training; images that do not make up one batch are refused."""
    source = PatchSource(images, config.size, noise_of_images(config))
    if source.positions < config.batch:
        raise InvalidInputError(
            f"{source.images} images hold only {source.positions} patches of {config.size}×{config.size} pixels, fewer "
            f"than one batch of {config.batch}; give more or larger images, or a smaller batch"
        )
    return source


def _as_arrays(images: Images, config: AnyConfig) -> list[NDArray[Any]]:
    if isinstance(images, str | PathLike):
        return read_images(folder_files(Path(images)), config.size, noise_of_images(config)).images
    return [to_grey(np.asarray(image)) for image in images]
