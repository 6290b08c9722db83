"""`heatprior train`: learn a prior from a folder of images, in a run folder that can be interrupted and resumed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from heatprior import __version__

if TYPE_CHECKING:
    from heatprior.datasets import SkippedFile
    from heatprior.learning.gathering import Material
    from heatprior.learning.loop import Loop, Record
    from heatprior.learning.runs import Run, RunSettings
    from heatprior.learning.training import Progress

BSDS500 = "bsds500"
INTERRUPTED = 130
MOST_SKIPPED_SHOWN = 5
EXAMPLES = """\b
Examples:
  heatprior train photos -o mine                     7×7 patches of your images
  heatprior train photos -o mine --resume            go on after an interruption
  heatprior train bsds500 -o paper15 --size 15 --steps 10000
  heatprior train photos -o quick --steps 200 --batch 1000
"""


class Optimizer(StrEnum):
    """What `--optimizer` may be."""

    adam = "adam"
    ipalm = "ipalm"


class Start(StrEnum):
    """What `--start` may be."""

    student = "student"
    paper = "paper"


class Noise(StrEnum):
    """What `--noise` may be."""

    log = "log"
    uniform = "uniform"


def train(
    images: Annotated[
        str | None,
        typer.Argument(metavar="FOLDER", help="A folder of images, or the word bsds500 for the paper's training set."),
    ] = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="RUN", help="The folder of the run, made anew.")],
    size: Annotated[int | None, typer.Option(metavar="B", help="Patches of B×B pixels.  [default: 7]")] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", help="Steps to train.  [default: 1000]")] = None,
    batch: Annotated[int | None, typer.Option(metavar="N", help="Patches in a step.  [default: 3200]")] = None,
    noise: Annotated[
        Noise | None, typer.Option(help="Noise levels are uniform, or their logarithms are.  [default: log]")
    ] = None,
    sigma_min: Annotated[float | None, typer.Option(metavar="S", help="Least noise level.  [default: 0.01]")] = None,
    sigma_max: Annotated[float | None, typer.Option(metavar="S", help="Largest noise level.  [default: 0.4]")] = None,
    sigma: Annotated[float | None, typer.Option(metavar="S", help="Train at this one noise level only.")] = None,
    start: Annotated[
        Start | None, typer.Option(help="First weights: heavy tails, or the paper's.  [default: student]")
    ] = None,
    optimizer: Annotated[Optimizer | None, typer.Option(help="Way to the minimum.  [default: adam]")] = None,
    filter_rate: Annotated[
        float | None,
        typer.Option(metavar="R", help="Angle by which filters turn in a step, for adam.  [default: 0.003]"),
    ] = None,
    logit_rate: Annotated[
        float | None, typer.Option(metavar="R", help="Step size of the weights, for adam.  [default: 0.01]")
    ] = None,
    averaged: Annotated[
        int | None, typer.Option(metavar="N", help="The prior averages about the last N steps.  [default: 500]")
    ] = None,
    components: Annotated[
        int | None, typer.Option(metavar="L", help="Gaussians of each expert.  [default: 125]")
    ] = None,
    reach: Annotated[float | None, typer.Option(metavar="R", help="Their means lie in ±R.  [default: 1.0]")] = None,
    seed: Annotated[int | None, typer.Option(metavar="K", help="Start of the random numbers.  [default: 0]")] = None,
    validation: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Images to validate on.  [default: one in ten of the images, at most 8]"),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where BSDS500 is.  [default: HEATPRIOR_DATA, or the cache]")
    ] = None,
    checkpoint: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Time between checkpoints.")] = 30.0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run; its settings stay.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the run if it exists.")] = False,
) -> None:
    """Learn a prior from images.

    The run folder holds the settings (config.json), a log (log.csv, loss.png), checkpoints, and at the end the prior
    (prior.safetensors, filters.png). Ctrl-C saves and leaves; --resume goes on, to the same bits.
    """
    from heatprior.learning.loop import Loop
    from heatprior.learning.runs import PRIOR, Run
    from heatprior.learning.training import Training

    asked = {
        "size": size,
        "steps": steps,
        "batch": batch,
        "noise": noise.value if noise else None,
        "sigma_min": sigma_min,
        "sigma_max": sigma_max,
        "start": start.value if start else None,
        "optimizer": optimizer.value if optimizer else None,
        "filter_rate": filter_rate,
        "logit_rate": logit_rate,
        "averaged": averaged,
        "components": components,
        "reach": reach,
        "seed": seed,
    }
    if sigma is not None:
        if sigma_min is not None or sigma_max is not None:
            raise typer.BadParameter("--sigma stands for one noise level; leave out --sigma-min and --sigma-max")
        asked |= {"sigma_min": sigma, "sigma_max": sigma}
    asked = {name: value for name, value in asked.items() if value is not None}
    places = Places(_absolute(images), _absolute(validation), str(data.resolve()) if data else None)
    run = Run(output)
    settings, material = _resumed(run, asked, places) if resume else _begun(run, asked, places, force=force)
    _tell_skipped(material.skipped)
    loop = Loop(Training(settings.training, material.source), material.validation)
    card = {
        "name": output.resolve().name,
        "made": f"by heatprior train, version {__version__}",
        "trained on": material.description,
    }
    finished = _train(run, loop, card, checkpoint)
    _draw(run, loop, card)
    if not finished:
        typer.echo(f"stopped after step {loop.training.done} of {settings.training.steps}; go on with")
        typer.echo(f"  heatprior train -o {output} --resume")
        raise typer.Exit(INTERRUPTED)
    typer.echo(f"wrote {output / PRIOR}; look at it with")
    typer.echo(f"  heatprior show {output / PRIOR}")


class Places(NamedTuple):
    """Where images, validation images and BSDS500 are, as far as the user says."""

    images: str | None
    validation: str | None
    data: str | None


def _absolute(place: str | None) -> str | None:
    """So that a run can go on from another folder."""
    return place if place in (None, BSDS500) else str(Path(place).resolve())


def _begun(run: Run, asked: Mapping[str, Any], places: Places, *, force: bool) -> tuple[RunSettings, Material]:
    from heatprior.learning.gathering import gather
    from heatprior.learning.runs import RunSettings
    from heatprior.learning.training import TrainingConfig

    if places.images is None:
        raise typer.BadParameter("missing FOLDER; give a folder of images, or bsds500")
    config = TrainingConfig(**asked)
    run.check_new(force=force)
    material = gather(config, places.images, places.validation, places.data)
    settings = RunSettings(config, places.images, places.validation, places.data, material.source.digest)
    run.begin(settings)
    return settings, material


def _resumed(run: Run, asked: Mapping[str, Any], places: Places) -> tuple[RunSettings, Material]:
    from heatprior.errors import TrainingError
    from heatprior.learning.gathering import gather

    settings = run.settings()
    run.check_unchanged(asked)
    material = gather(
        settings.training,
        places.images or settings.images,
        places.validation or settings.validation,
        places.data or settings.data,
    )
    if material.source.digest != settings.digest:
        raise TrainingError(f"the images are not those with which {run.folder} was begun; begin another run with them")
    return settings, material


def _train(run: Run, loop: Loop, card: Mapping[str, str], checkpoint: float) -> bool:
    """Train behind a progress bar; tells whether the end was reached."""
    from tqdm import tqdm

    from heatprior.learning.loop import Record

    # Drawn only on a terminal; it goes when it is done.
    with tqdm(total=loop.training.config.steps, unit=" steps", leave=False, disable=None) as bar, _stopping() as stop:
        words = {"loss": "", "psnr": ""}

        def report(event: Progress | Record) -> None:
            if isinstance(event, Record):
                words["loss"] = f"loss {event.loss:.4f}"
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


def _draw(run: Run, loop: Loop, card: Mapping[str, str]) -> None:
    from heatprior.pictures import draw_log, draw_prior
    from heatprior.trials import LEVELS

    rows = run.log()
    if rows:
        psnr = {str(level): [row[f"psnr{level}"] for row in rows] for level in LEVELS}
        draw_log([row["step"] for row in rows], [row["loss"] for row in rows], psnr, run.folder / "loss.png")
    draw_prior(loop.training.prior(dict(card)), run.folder / "filters.png")


def _tell_skipped(skipped: Sequence[SkippedFile]) -> None:
    for file in skipped[:MOST_SKIPPED_SHOWN]:
        typer.echo(f"skipped: {file.reason}", err=True)
    if len(skipped) > MOST_SKIPPED_SHOWN:
        typer.echo(f"skipped: {len(skipped) - MOST_SKIPPED_SHOWN} more files", err=True)
