"""What the trainings of all kinds of priors have in common: settings, steps, validation, and the loop that logs them.

The settings are a frozen dataclass, so that a run folder can keep them as JSON. They construct their training; the
table in `heatprior.kinds` names them.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, asdict, dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource, scale_by_type
from heatprior.data.trials import LEVELS, psnr, with_noise
from heatprior.errors import InvalidInputError, TrainingError
from heatprior.kernels.threads import products_in_one_thread
from heatprior.priors.expectation_maximisation import log_likelihood
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.patch import PatchPrior
from heatprior.priors.protocol import StoredPrior, denoise_once

CROP = 160  # pixels, the side of what is validated on
MOST_IMAGES = 8
HELD_OUT_PATCHES = 20_000
MOST_STEPS = 10**9
PriorT_co = TypeVar("PriorT_co", bound=StoredPrior, covariant=True)
PSNR_COLUMNS = tuple(f"psnr{level}" for level in LEVELS)
COLUMNS = ("step", "loss", *PSNR_COLUMNS, "steps_per_second", "seconds")
LIKELIHOOD_COLUMNS = (*COLUMNS[:2], "log_likelihood", *COLUMNS[2:])
LOG_ENTRIES = 200  # in a run, evenly spaced
VALIDATIONS = 10  # at most so many entries come with a validation, the last one among them
SINCE_ENTRY = "since_record"  # in the state: as in the checkpoints of earlier versions


@dataclass(frozen=True)
class StepReport:
    """Report of one step: its number (1 for the first), the loss before it, and the seconds since the start."""

    step: int
    loss: float
    seconds: float


class StepByStep(ABC):
    """A training of `steps` steps on patches of a source, `done` of which are done."""

    def __init__(self, source: PatchSource, size: int, steps: int) -> None:
        if source.size != size:
            raise InvalidInputError(
                f"the source cuts {source.size}×{source.size} patches but the settings ask for {size}×{size}"
            )
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
        """Do the next step and count it in `done`; returns the loss before it."""


def check_sizes(state: Mapping[str, Any], blocks: Iterable[tuple[str, Any]]) -> None:
    """Raise unless the arrays of a state have the shapes of these blocks."""
    if any(state[name].shape != block.shape for name, block in blocks):
        raise InvalidInputError("the state is from a run with other sizes; start a new run")


class Validation:
    """Images held out for validation: the central 160×160 pixels of up to eight, each with its noise.

    `sigma` is the noise that the images have already: if there is any, PSNR cannot be measured on them.
    """

    def __init__(self, images: Sequence[NDArray[Any]], size: int, sigma: float = 0.0) -> None:
        self.size = size
        self.sigma = sigma
        self.images = [_centre(scale_by_type(image)) for image in images if min(image.shape) >= size][:MOST_IMAGES]
        if not self.images:
            raise InvalidInputError(f"none of {len(images)} validation images holds a patch of {size}×{size} pixels")

    def psnr(self, prior: PatchPrior | GaussianMixturePrior) -> tuple[float, ...]:
        """Mean PSNR over the images, for each of LEVELS."""
        results = np.empty((len(self.images), len(LEVELS)))
        for i, clean in enumerate(self.images):
            for k, level in enumerate(LEVELS):
                sigma = level / 255.0
                results[i, k] = psnr(denoise_once(prior, with_noise(clean, i, sigma), sigma), clean)
        return tuple(float(value) for value in results.mean(axis=0))

    def log_likelihood(self, prior: GaussianMixturePrior) -> float:
        """Mean log-density of patches of the images, with the noise that these came with."""
        source = PatchSource(self.images, self.size, self.sigma)
        patches = source.draw(HELD_OUT_PATCHES, np.random.default_rng(0)).T
        return log_likelihood(prior, patches, self.sigma)


def choose_held_out(count: int) -> list[int]:
    """The indices of the images, out of `count`, to keep for validation: a tenth, at most eight, evenly spaced."""
    kept = min(MOST_IMAGES, count // 10)
    return [int((i + 0.5) * count / kept) for i in range(kept)]


def _centre(image: FloatArray) -> FloatArray:
    rows, columns = ((side - min(side, CROP)) // 2 for side in image.shape)
    return image[rows : rows + CROP, columns : columns + CROP]


class ValidationScores(NamedTuple):
    """PSNR for each of LEVELS, and the mean log-likelihood of held-out patches; None for what does not apply."""

    psnr: tuple[float, ...] | None = None
    log_likelihood: float | None = None


class PriorTraining(StepByStep, Generic[PriorT_co]):
    """A training of some kind of prior. Whenever it yields, `state` is complete."""

    config: Any  # its settings

    def describe(self, card: Mapping[str, Any] | None) -> dict[str, Any]:
        """The card of the prior so far: how it is trained, and these entries."""
        training = {**asdict(self.config), "steps_done": self.done, "images": self.source.images}
        return {"training": training, **(card or {})}

    @abstractmethod
    def prior(self, card: dict[str, Any] | None = None) -> PriorT_co:
        """The prior so far, with a card that says how it was trained, and these entries."""

    @abstractmethod
    def validate(self, validation: Validation) -> ValidationScores:
        """Score the prior so far on images that it is not trained on."""

    @abstractmethod
    def state(self) -> dict[str, FloatArray]:
        """The arrays needed to go on."""

    @abstractmethod
    def restore(self, state: dict[str, FloatArray]) -> None:
        """Go on from `state`, of a run with the same settings."""


class TrainingSettings(Protocol[PriorT_co]):
    """The settings of a training: a frozen dataclass of numbers and words."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    kind: ClassVar[str]  # its key in the table of kinds
    picture: ClassVar[str]  # the file name of the picture of the prior in a run folder
    log_columns: ClassVar[tuple[str, ...]]
    steps_per_validation: ClassVar[int]  # the least number of steps between two validations
    shorthands: ClassVar[Mapping[str, tuple[str, ...]]]  # a name for several settings that take one value

    @property
    def size(self) -> int:
        """The side of a patch."""

    @property
    def batch(self) -> int:
        """Patches per step."""

    @property
    def steps(self) -> int:
        """Number of steps of the whole training."""

    @property
    def noise_of_images(self) -> float:
        """Standard deviation of the noise in the training images, on the scale of images in [0, 1]."""

    def training(self, source: PatchSource) -> PriorTraining[PriorT_co]:
        """A new training run with these settings."""


def store_integer(settings: object, name: str, least: int, most: int | None = None) -> None:
    """Check that a setting is an integer in its range, and store it as a plain int, which JSON can hold."""
    value = getattr(settings, name)
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise InvalidInputError(f"{name} is {value!r}; expected a whole number")
    if value < least or (most is not None and value > most):
        bounds = f"at least {least}" if most is None or value < least else f"at most {most}"
        raise InvalidInputError(f"{name} is {value}; expected {bounds}")
    object.__setattr__(settings, name, int(value))


def store_float(settings: object, name: str, least: float = -math.inf, most: float = math.inf, hint: str = "") -> None:
    """Check that a setting is a finite number in its range, and store it as a plain float."""
    value = getattr(settings, name)
    if (
        not isinstance(value, int | float | np.integer | np.floating)
        or isinstance(value, bool)
        or not math.isfinite(value)
    ):
        raise InvalidInputError(f"{name} is {value!r}; expected a finite number")
    if not least <= value <= most:
        raise InvalidInputError(f"{name} is {value:g}; expected {least:g} to {most:g}{hint}")
    object.__setattr__(settings, name, float(value))


@dataclass(frozen=True)
class LogEntry:
    """A summary of the steps since the last entry: mean loss, speed, and PSNR for each of LEVELS, or None.

    `seconds` counts from the start of the run, without interruptions. `log_likelihood` is the mean over patches of the
    validation images, for kinds of priors whose training maximises it.
    """

    step: int
    loss: float
    psnr: tuple[float, ...] | None
    steps_per_second: float
    seconds: float
    log_likelihood: float | None = None

    def row(self) -> dict[str, float | None]:
        """The entry with one value for each column."""
        psnr = self.psnr or (None,) * len(LEVELS)
        return asdict(self) | dict(zip(PSNR_COLUMNS, psnr, strict=True))


class Loop:
    """The training loop: a training, its validation, and what happened since the last log entry.

    Whenever it yields, `state` is complete: a loop that goes on from it yields what this one would have.
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
                validated, done = ValidationScores(), self.training.done
                if self.validation and (done % self._validate_every == 0 or done == self.training.config.steps):
                    validated = self.training.validate(self.validation)
                self._seconds += time.perf_counter() - clock
                clock = time.perf_counter()
                speed, loss = self._counted / max(self._stepping, 1e-9), self._losses / self._counted
                self._losses, self._counted, self._stepping = 0.0, 0, 0.0
                yield LogEntry(done, loss, validated.psnr, speed, self._seconds, validated.log_likelihood)
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
        """Whether a log entry is due."""
        done = self.training.done
        return self._counted > 0 and (done % self._log_every == 0 or done == self.training.config.steps)

    def is_finished(self) -> bool:
        """Whether the training is complete and logged."""
        return self.training.done == self.training.config.steps and not self.is_due()

    def state(self) -> dict[str, FloatArray]:
        """The arrays needed to go on."""
        since = np.array([self._losses, self._counted, self._stepping, self._seconds])
        return self.training.state() | {SINCE_ENTRY: since}

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Go on from `state`."""
        self.training.restore({name: array for name, array in state.items() if name != SINCE_ENTRY})
        self._losses, counted, self._stepping, self._seconds = (float(x) for x in state[SINCE_ENTRY])
        self._counted = int(counted)
