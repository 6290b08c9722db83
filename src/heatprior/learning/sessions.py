"""Runs that are begun and resumed: a run folder together with the images that it learns from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from heatprior.errors import TrainingError
from heatprior.learning.gathering import Images, Material, gather, is_bsds500
from heatprior.learning.logs import LogEntry
from heatprior.learning.loop import Loop
from heatprior.learning.runs import CHECKPOINT_SECONDS, Run, RunSettings
from heatprior.learning.settings import TrainingSettings
from heatprior.learning.steps import StepReport
from heatprior.priors.stored import StoredPrior
from heatprior.version import __version__

IN_MEMORY = "(in memory)"  # the place of images that were given as arrays
Report = Callable[[StepReport | LogEntry], object]


@dataclass(frozen=True)
class Session:
    """A run that goes on: its folder, its loop, and what it learns from."""

    run: Run
    loop: Loop
    material: Material

    def train(
        self,
        *,
        report: Report | None = None,
        stop: Callable[[], bool] = lambda: False,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> StoredPrior | None:
        """Train to the end and write the prior; save and return None when `stop` says so."""
        return self.run.train(
            self.loop, report=report, stop=stop, card=self.card, checkpoint_seconds=checkpoint_seconds
        )

    @property
    def card(self) -> dict[str, str]:
        """Where the prior comes from."""
        return {
            "name": self.run.folder.resolve().name,
            "made": f"by heatprior train, version {__version__}",
            "trained on": self.material.description,
        }


def begin(
    folder: Path,
    config: TrainingSettings[StoredPrior],
    images: Images,
    validation: Images | None = None,
    *,
    data: str | None = None,
    hold_out: bool = True,
    replace: bool = False,
) -> Session:
    """A new run in `folder`; an old one that stands there is refused or, with `replace`, thrown away."""
    run = Run(folder)
    run.check_new(replace=replace)
    material = gather(config, images, validation, data, hold_out=hold_out)
    place, other = _place(images), None if validation is None else _place(validation)
    run.begin(RunSettings(config, place, other, data, material.source.digest, hold_out))
    return Session(run, Loop(config.training(material.source), material.validation), material)


def resume(
    folder: Path,
    images: Images | None = None,
    validation: Images | None = None,
    *,
    data: str | None = None,
    kind: str | None = None,
    asked: Mapping[str, Any] | None = None,
) -> Session:
    """The run in `folder`, with its own settings and images.

    Images may be given again, if they have moved or were arrays, but must be the same ones. `kind` and `asked` are what
    the settings are expected to be: a run that was begun with others is refused.
    """
    run = Run(folder)
    run.check_unchanged(kind, asked or {})
    settings = run.settings()
    if images is None:
        images = _known(settings.images, "images", folder)
    if validation is None and settings.validation is not None:
        validation = _known(settings.validation, "validation images", folder)
    material = gather(settings.training, images, validation, data or settings.data, hold_out=settings.hold_out)
    if material.source.digest != settings.digest:
        raise TrainingError(f"the images are not those with which {folder} was begun; begin another run with them")
    return Session(run, Loop(settings.training.training(material.source), material.validation), material)


def _place(images: Images) -> str:
    """Where images are, so that a run can be resumed from another folder."""
    if not isinstance(images, str | PathLike):
        return IN_MEMORY
    return str(images) if is_bsds500(images) else str(Path(images).resolve())


def _known(place: str, what: str, folder: Path) -> str:
    if place == IN_MEMORY:
        raise TrainingError(f"the {what} of {folder} were arrays and are not kept; give them again")
    return place
