"""A training behind `heatprior train`: begun or taken up again, watched, interrupted, drawn."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from heatprior.data.datasets import SkippedFile
    from heatprior.learning.gathering import Material
    from heatprior.learning.loop import Loop, Record
    from heatprior.learning.runs import Run, RunSettings
    from heatprior.learning.steps import Progress

BSDS500 = "bsds500"
MOST_SKIPPED_SHOWN = 5


class Kind(StrEnum):
    """What `--kind` may be."""

    patch = "patch"
    mixture = "mixture"


class Places(NamedTuple):
    """Where images, validation images and BSDS500 are, as far as the user says."""

    images: str | None
    validation: str | None
    data: str | None


def absolute(place: str | None) -> str | None:
    """So that a run can go on from another folder."""
    return place if place in (None, BSDS500) else str(Path(place).resolve())


def _of_kind(kind: Kind, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked for as settings of that kind of prior; options of another kind are refused."""
    from heatprior.learning.kinds import CONFIGS

    settings = dict(asked)
    if kind is Kind.patch and "sigma" in settings:
        if "sigma_min" in settings or "sigma_max" in settings:
            raise typer.BadParameter("--sigma stands for one noise level; leave out --sigma-min and --sigma-max")
        settings["sigma_min"] = settings["sigma_max"] = settings.pop("sigma")
    for name in settings:
        if name not in CONFIGS[kind].__dataclass_fields__:
            other = next(other for other in Kind if name in CONFIGS[other].__dataclass_fields__)
            option = f"--{name.replace('_', '-')}"
            raise typer.BadParameter(f"{option} belongs to --kind {other} and this is --kind {kind}; leave it out")
    return settings


def begun(
    run: Run, kind: Kind, asked: Mapping[str, Any], places: Places, *, force: bool
) -> tuple[RunSettings, Material]:
    """A new run, with what is asked for, and what it learns from."""
    from heatprior.learning.gathering import gather
    from heatprior.learning.kinds import CONFIGS
    from heatprior.learning.runs import RunSettings

    if places.images is None:
        raise typer.BadParameter("missing FOLDER; give a folder of images, or bsds500")
    config = CONFIGS[kind](**_of_kind(kind, asked))
    run.check_new(force=force)
    material = gather(config, places.images, places.validation, places.data)
    settings = RunSettings(config, places.images, places.validation, places.data, material.source.digest)
    run.begin(settings)
    return settings, material


def resumed(run: Run, kind: Kind | None, asked: Mapping[str, Any], places: Places) -> tuple[RunSettings, Material]:
    """The run that stands there, unless other things are asked for, and what it learns from."""
    from heatprior.errors import TrainingError
    from heatprior.learning.gathering import gather
    from heatprior.learning.kinds import kind_of

    settings = run.settings()
    here = Kind(kind_of(settings.training))
    if kind not in (None, here):
        raise typer.BadParameter(f"{run.folder} was begun with --kind {here}; leave that out, or begin another run")
    run.check_unchanged(_of_kind(here, asked))
    material = gather(
        settings.training,
        places.images or settings.images,
        places.validation or settings.validation,
        places.data or settings.data,
    )
    if material.source.digest != settings.digest:
        raise TrainingError(f"the images are not those with which {run.folder} was begun; begin another run with them")
    return settings, material


def train_to_the_end(run: Run, loop: Loop, card: Mapping[str, str], checkpoint: float) -> bool:
    """Train behind a progress bar; tells whether the end was reached."""
    from tqdm import tqdm

    from heatprior.learning.loop import Record

    # Drawn only on a terminal; it goes when it is done.
    with tqdm(total=loop.training.config.steps, unit=" steps", leave=False, disable=None) as bar, _stopping() as stop:
        words = {"loss": "", "held out": "", "psnr": ""}

        def report(event: Progress | Record) -> None:
            if isinstance(event, Record):
                words["loss"] = f"loss {event.loss:.4f}"
                if event.log_likelihood is not None:
                    words["held out"] = f"held out {-event.log_likelihood:.4f}"
                if event.psnr:
                    words["psnr"] = f"{'/'.join(f'{value:.2f}' for value in event.psnr)} dB"
                bar.set_postfix_str(", ".join(filter(None, words.values())), refresh=False)
            elif bar.n == 0:
                bar.initial = event.step - 1  # steps of an earlier process do not count for the speed
                bar.n = bar.initial
                bar.update(1)
            else:
                bar.update(1)

        return run.train(loop, report=report, stop=stop, card=card, checkpoint_seconds=checkpoint) is not None


@contextmanager
def _stopping() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C or a request to terminate came. A second one does not wait for the checkpoint."""
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, _: object) -> None:
        came.append(number)
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield lambda: bool(came)
    finally:
        restore()


def draw(run: Run, loop: Loop, card: Mapping[str, str]) -> None:
    """How the training went, and the prior so far."""
    from heatprior.data.trials import LEVELS
    from heatprior.pictures.mixture_priors import draw_mixture
    from heatprior.pictures.patch_priors import draw_prior
    from heatprior.pictures.training_logs import draw_log
    from heatprior.priors.patch import PatchPrior

    rows = run.log()
    if rows:
        psnr = {str(level): [row[f"psnr{level}"] for row in rows] for level in LEVELS}
        held_out = [-row.get("log_likelihood", float("nan")) for row in rows]
        steps, losses = ([row[name] for row in rows] for name in ("step", "loss"))
        draw_log(steps, losses, psnr, run.folder / "loss.png", held_out=held_out)
    prior = loop.training.prior(dict(card))
    if isinstance(prior, PatchPrior):
        draw_prior(prior, run.folder / "filters.png")
    else:
        draw_mixture(prior, run.folder / "shapes.png")


def tell_skipped(skipped: Sequence[SkippedFile]) -> None:
    """Files that could not be used, the first few by name."""
    for file in skipped[:MOST_SKIPPED_SHOWN]:
        typer.echo(f"skipped: {file.reason}", err=True)
    if len(skipped) > MOST_SKIPPED_SHOWN:
        typer.echo(f"skipped: {len(skipped) - MOST_SKIPPED_SHOWN} more files", err=True)
