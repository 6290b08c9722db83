"""What the settings and the trainings of every kind of prior offer, and the checks that settings share.

The settings are a frozen dataclass, so that a run folder can keep them as JSON. They know their training; the table in
`heatprior.kinds` knows them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import Field
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource
from heatprior.errors import InvalidInputError
from heatprior.learning.steps import StepReport
from heatprior.learning.validation import Validation
from heatprior.priors.stored import StoredPrior

MOST_STEPS = 10**9
PriorT_co = TypeVar("PriorT_co", bound=StoredPrior, covariant=True)


class Validated(NamedTuple):
    """PSNR for each of LEVELS, and the mean log-likelihood of held-out patches; None for what does not apply."""

    psnr: tuple[float, ...] | None = None
    log_likelihood: float | None = None


class PriorTraining(Protocol[PriorT_co]):
    """A training of some kind of prior. What it yields may be kept: `state` is then whole."""

    done: int

    @property
    def config(self) -> TrainingSettings[PriorT_co]:
        """Its settings."""
        ...

    def run(self, steps: int) -> Iterator[StepReport]:
        """Do up to `steps` more steps, and report after each."""
        ...

    def prior(self, card: dict[str, Any] | None = None) -> PriorT_co:
        """The prior so far."""
        ...

    def validate(self, validation: Validation) -> Validated:
        """How well the prior so far does on images that it is not trained on."""
        ...

    def state(self) -> dict[str, FloatArray]:
        """Everything needed to go on."""
        ...

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Go on from `state`, of a run with the same settings."""
        ...


class TrainingSettings(Protocol[PriorT_co]):
    """The settings of a training: a frozen dataclass of numbers and words."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    kind: ClassVar[str]  # its entry in the table of kinds
    picture: ClassVar[str]  # the file name of the picture of the prior in a run folder
    log_columns: ClassVar[tuple[str, ...]]
    steps_per_validation: ClassVar[int]  # at least so many lie between two validations
    shorthands: ClassVar[Mapping[str, tuple[str, ...]]]  # one word for several settings of one value

    @property
    def size(self) -> int:
        """The side of a patch."""
        ...

    @property
    def batch(self) -> int:
        """Patches in a step."""
        ...

    @property
    def steps(self) -> int:
        """Steps of the whole training."""
        ...

    @property
    def noise_of_images(self) -> float:
        """Standard deviation of the noise that the training images have, grey levels being 0 to 1."""
        ...

    def training(self, source: PatchSource) -> PriorTraining[PriorT_co]:
        """A training with these settings, at its start."""
        ...


def keep_whole(settings: object, name: str, least: int, most: int | None = None) -> None:
    """Check that a setting is a whole number in its range, and keep it as a plain int, which JSON can hold."""
    value = getattr(settings, name)
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise InvalidInputError(f"{name} is {value!r}; expected a whole number")
    if value < least or (most is not None and value > most):
        bounds = f"at least {least}" if most is None or value < least else f"at most {most}"
        raise InvalidInputError(f"{name} is {value}; expected {bounds}")
    object.__setattr__(settings, name, int(value))


def keep_finite(settings: object, name: str, least: float = -math.inf, most: float = math.inf, hint: str = "") -> None:
    """Check that a setting is a finite number in its range, and keep it as a plain float."""
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
