"""`heatprior train`: train a prior on a folder of images, in a run folder that can be interrupted and resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heatprior.cli.batches import choice, spread_options
from heatprior.errors import OutputFileError, TrainingError
from heatprior.kinds import KINDS, trainable

if TYPE_CHECKING:
    from heatprior.learning.train import Session
    from heatprior.learning.training import LogEntry, StepReport

INTERRUPTED = 130
DEFAULT_KIND = "patch"
NOISE = "standard deviation of the noise, grey levels being 0 to 1"
OF_A_MIXTURE = "train at this level only; for a mixture, the noise of the training images"
MOST_SKIPPED_SHOWN = 5
EXAMPLES = {
    "train": """\
  heatprior train photos -o mine                     7×7 patches of your images
  heatprior train photos -o mine --resume            resume after an interruption
  heatprior train photos -o large --size 15 --steps 10000
  heatprior train photos -o quick --steps 200 --batch 1000
  heatprior train photos -o best --kind mixture      many bases; better and slower
  heatprior train noisy -o best --kind mixture --sigma 0.1   of images with noise
"""
}


def _setting(kind: type, metavar: str, words: str) -> Any:
    return Annotated[kind | None, typer.Option(metavar=metavar, help=words)]


# The settings of a training; what is not given is as the kind of prior has it.
SETTINGS = {
    "size": _setting(int, "B", "Patches of B×B pixels.  [default: 7; mixture: 8]"),
    "steps": _setting(int, "N", "Training steps.  [default: 1000; mixture: 300]"),
    "batch": _setting(int, "N", "Patches per step.  [default: 3200; mixture: 40000]"),
    "shapes": _setting(int, "K", "Covariances of a mixture.  [mixture: 50]"),
    "contrasts": _setting(int, "G", "Contrasts per shape; 1 is the mixture of EPLL.  [mixture: 6]"),
    "sigma_min": _setting(float, "S", f"Least {NOISE}.  [default: 0.01]"),
    "sigma_max": _setting(float, "S", f"Largest {NOISE}.  [default: 0.4]"),
    "sigma": _setting(float, "S", f"{NOISE.capitalize()}: {OF_A_MIXTURE}.  [mixture: 0.0]"),
    "filter_rate": _setting(float, "R", "Learning rate of the filters: radians per step of Adam.  [default: 0.003]"),
    "logit_rate": _setting(float, "R", "Learning rate of the weights, for Adam.  [default: 0.01]"),
    "averaged": _setting(int, "N", "Average the iterates over about N steps.  [default: 500]"),
    "components": _setting(int, "L", "Gaussians per expert.  [default: 125]"),
    "reach": _setting(float, "R", "Largest mean in an expert.  [default: 1.0]"),
    "seed": _setting(int, "K", "Seed of the random numbers.  [default: 0]"),
}


@spread_options("asked", {name: (about, None) for name, about in SETTINGS.items()})
def train(
    images: Annotated[str | None, typer.Argument(metavar="FOLDER", help="A folder of images.")] = None,
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="RUN", help="The run folder, created by this command.")
    ],
    kind: Annotated[
        str | None,
        choice(
            *trainable(), help="Model: experts on one orthogonal basis, or a mixture of Gaussians.  [default: patch]"
        ),
    ] = None,
    asked: Mapping[str, Any],
    validation: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Images to validate on.  [default: one in ten of the images, at most 8]"),
    ] = None,
    checkpoint: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Time between checkpoints.")] = 30.0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume from the last checkpoint, with the settings of the run.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the run if it exists.")] = False,
) -> None:
    """Train a prior on images.

    The run folder holds the settings (config.json), a log (log.csv, loss.png), a checkpoint, and at the end the prior
    (prior.safetensors, with a picture of it). Ctrl-C saves a checkpoint and exits; --resume continues bit-identically.
    """
    from heatprior.learning.runs import PRIOR, Run
    from heatprior.learning.train import begin_run, interruptible, resume_run

    if isnan(checkpoint):  # which older releases of typer take for a number within limits
        raise typer.BadParameter("--checkpoint is nan; expected the seconds between checkpoints")
    if resume:
        if not Run(output).exists():
            raise TrainingError(f"{output} holds no run; leave out --resume to start one")
        here = Run(output).settings().training.kind
        settings = as_settings(here, asked)
        session = resume_run(output, images, validation, kind=kind or here, asked=settings)
    else:
        if images is None:
            raise typer.BadParameter("missing FOLDER; give a folder of images")
        if Run(output).exists() and not force:
            raise OutputFileError(
                f"{output} holds a run already; add --resume to continue it, or --force to start over"
            )
        kind = kind or DEFAULT_KIND
        config = KINDS[kind].find("training")(**as_settings(kind, asked))
        session = begin_run(output, config, images, validation, replace=force)
    report_skipped(session.material.skipped)
    training = session.loop.training
    with show_steps(training.config.steps) as report, interruptible() as stop:
        prior = session.run.train(
            session.loop, report=report, stop=stop, card=session.card, checkpoint_seconds=checkpoint
        )
    draw_run(session)
    if prior is None:
        typer.echo(f"stopped after step {training.done} of {training.config.steps}; continue with")
        typer.echo(f"  heatprior train -o {output} --resume")
        raise typer.Exit(INTERRUPTED)
    typer.echo(f"wrote {output / PRIOR}; look at it with")
    typer.echo(f"  heatprior show {output / PRIOR}")


def as_settings(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given as settings of that kind of prior; options of another kind are refused."""
    known, settings = setting_names(kind), {name: value for name, value in options.items() if value is not None}
    for short, names in KINDS[kind].find("training").shorthands.items():
        if short in settings:
            if any(name in settings for name in names):
                both = f"{_option(short)} stands for {' and '.join(map(_option, names))}"
                raise typer.BadParameter(f"{both}; leave out one or the other")
            settings |= dict.fromkeys(names, settings.pop(short))
    for name in settings:
        if name not in known:
            other = next(other for other in trainable() if name in setting_names(other))
            raise typer.BadParameter(
                f"{_option(name)} belongs to --kind {other} and this is --kind {kind}; leave it out"
            )
    return settings


def setting_names(kind: str) -> set[str]:
    """The settings of the training of a kind of prior."""
    return {field.name for field in fields(KINDS[kind].find("training"))}


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@contextmanager
def show_steps(steps: int) -> Iterator[Callable[[StepReport | LogEntry], None]]:
    """A progress bar over the steps, drawn on a terminal only, with the last log entry beside it."""
    from tqdm import tqdm

    from heatprior.learning.training import LogEntry

    with tqdm(total=steps, unit=" steps", leave=False, disable=None) as bar:
        words = {"loss": "", "held out": "", "psnr": ""}

        def report(event: StepReport | LogEntry) -> None:
            if isinstance(event, LogEntry):
                words["loss"] = f"loss {event.loss:.4f}"
                if event.log_likelihood is not None:
                    words["held out"] = f"held out {-event.log_likelihood:.4f}"
                if event.psnr:
                    words["psnr"] = f"{'/'.join(f'{value:.2f}' for value in event.psnr)} dB"
                bar.set_postfix_str(", ".join(filter(None, words.values())), refresh=False)
                return
            if bar.n == 0:
                bar.n = bar.initial = event.step - 1  # steps of an earlier process do not count for the speed
            bar.update(1)

        yield report


def draw_run(session: Session) -> None:
    """Draw the log of the training and the prior so far into the run folder."""
    from heatprior.pictures.figures import draw_log

    folder, training = session.run.folder, session.loop.training
    rows = session.run.log().rows()
    if rows:
        draw_log(rows, folder / "loss.png")
    KINDS[training.config.kind].find("picture")(training.prior(session.card), folder / training.config.picture)


def report_skipped(skipped: Sequence[str]) -> None:
    """Print which files could not be used, the first few by name."""
    for reason in skipped[:MOST_SKIPPED_SHOWN]:
        typer.echo(f"skipped: {reason}", err=True)
    if len(skipped) > MOST_SKIPPED_SHOWN:
        typer.echo(f"skipped: {len(skipped) - MOST_SKIPPED_SHOWN} more files", err=True)
