"""`heatprior train`: train a prior on a folder of images, in a run folder that can be interrupted and resumed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heatprior.cli.training import as_settings, bar_of_steps, checked_kind, draw, tell_skipped
from heatprior.errors import OutputFileError, TrainingError
from heatprior.kinds import KINDS, trainable

if TYPE_CHECKING:
    from heatprior.learning.runs import Run

INTERRUPTED = 130
DEFAULT_KIND = "patch"
SIGMA_HELP = (
    "Standard deviation of the noise, grey levels being 0 to 1: train at this level only; for a mixture, the noise of "
    "the training images.  [mixture: 0.0]"
)
EXAMPLES = """\b
Examples:
  heatprior train photos -o mine                     7×7 patches of your images
  heatprior train photos -o mine --resume            resume after an interruption
  heatprior train bsds500 -o paper15 --size 15 --steps 10000
  heatprior train photos -o quick --steps 200 --batch 1000
  heatprior train photos -o best --kind mixture      many bases; better and slower
  heatprior train noisy -o best --kind mixture --sigma 0.1   of images with noise
"""


class Optimizer(StrEnum):
    """What `--optimizer` may be."""

    adam = "adam"
    ipalm = "ipalm"


class Start(StrEnum):
    """What `--start` may be."""

    student = "student"
    paper = "paper"


class NoiseDistribution(StrEnum):
    """What `--noise` may be."""

    log = "log"
    uniform = "uniform"


def train(
    images: Annotated[
        str | None,
        typer.Argument(metavar="FOLDER", help="A folder of images, or the word bsds500 for the paper's training set."),
    ] = None,
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="RUN", help="The run folder, created by this command.")
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(trainable()),
            callback=checked_kind,
            help="One basis and its experts, or a mixture of Gaussians.  [default: patch]",
        ),
    ] = None,
    size: Annotated[
        int | None, typer.Option(metavar="B", help="Patches of B×B pixels.  [default: 7; mixture: 8]")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(metavar="N", help="Training steps.  [default: 1000; mixture: 300]")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(metavar="N", help="Patches per step.  [default: 3200; mixture: 40000]")
    ] = None,
    shapes: Annotated[int | None, typer.Option(metavar="K", help="Covariances of a mixture.  [mixture: 50]")] = None,
    contrasts: Annotated[
        int | None, typer.Option(metavar="G", help="Contrasts per shape; 1 is the mixture of EPLL.  [mixture: 6]")
    ] = None,
    noise: Annotated[
        NoiseDistribution | None,
        typer.Option(help="Distribution of the noise levels: uniform in log σ, or in σ.  [default: log]"),
    ] = None,
    sigma_min: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Least standard deviation of the noise, grey levels being 0 to 1.  [default: 0.01]",
        ),
    ] = None,
    sigma_max: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Largest standard deviation of the noise, grey levels being 0 to 1.  [default: 0.4]",
        ),
    ] = None,
    sigma: Annotated[float | None, typer.Option(metavar="S", help=SIGMA_HELP)] = None,
    start: Annotated[
        Start | None, typer.Option(help="Initial weights: heavy tails, or the paper's.  [default: student]")
    ] = None,
    optimizer: Annotated[
        Optimizer | None, typer.Option(help="Optimiser: Adam, or the paper's iPALM.  [default: adam]")
    ] = None,
    filter_rate: Annotated[
        float | None,
        typer.Option(metavar="R", help="Learning rate of the filters: radians per step of Adam.  [default: 0.003]"),
    ] = None,
    logit_rate: Annotated[
        float | None, typer.Option(metavar="R", help="Learning rate of the weights, for Adam.  [default: 0.01]")
    ] = None,
    averaged: Annotated[
        int | None, typer.Option(metavar="N", help="Average the iterates over about N steps.  [default: 500]")
    ] = None,
    components: Annotated[int | None, typer.Option(metavar="L", help="Gaussians per expert.  [default: 125]")] = None,
    reach: Annotated[float | None, typer.Option(metavar="R", help="Their means lie in ±R.  [default: 1.0]")] = None,
    seed: Annotated[int | None, typer.Option(metavar="K", help="Seed of the random numbers.  [default: 0]")] = None,
    validation: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Images to validate on.  [default: one in ten of the images, at most 8]"),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where BSDS500 is.  [default: HEATPRIOR_DATA, or the cache]")
    ] = None,
    checkpoint: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Time between checkpoints.")] = 30.0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last checkpoint, with the settings of the run.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the run if it exists.")] = False,
) -> None:
    """Train a prior on images.

    The run folder holds the settings (config.json), a log (log.csv, loss.png), a checkpoint, and at the end the prior
    (prior.safetensors, with a picture of it). Ctrl-C saves a checkpoint and exits; --resume goes on, bit-identically.
    """
    from heatprior.learning import sessions
    from heatprior.learning.interruption import interruptible
    from heatprior.learning.runs import PRIOR, Run

    asked = {
        "size": size,
        "steps": steps,
        "batch": batch,
        "shapes": shapes,
        "contrasts": contrasts,
        "sigma": sigma,
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
    asked = {name: value for name, value in asked.items() if value is not None}
    place = str(data.resolve()) if data else None
    if resume:
        here = _kind_of_run(Run(output))
        settings = as_settings(here, asked)
        session = sessions.resume(output, images, validation, data=place, kind=kind or here, asked=settings)
    else:
        if images is None:
            raise typer.BadParameter("missing FOLDER; give a folder of images, or bsds500")
        if Run(output).exists() and not force:
            raise OutputFileError(
                f"{output} holds a run already; add --resume to continue it, or --force to start over"
            )
        kind = kind or DEFAULT_KIND
        config = KINDS[kind].training_config()(**as_settings(kind, asked))
        session = sessions.begin(output, config, images, validation, data=place, replace=force)
    tell_skipped(session.material.skipped)
    training = session.loop.training
    with bar_of_steps(training.config.steps) as report, interruptible() as stop:
        prior = session.train(report=report, stop=stop, checkpoint_seconds=checkpoint)
    draw(session)
    if prior is None:
        typer.echo(f"stopped after step {training.done} of {training.config.steps}; continue with")
        typer.echo(f"  heatprior train -o {output} --resume")
        raise typer.Exit(INTERRUPTED)
    typer.echo(f"wrote {output / PRIOR}; look at it with")
    typer.echo(f"  heatprior show {output / PRIOR}")


def _kind_of_run(run: Run) -> str:
    """The kind of the run in a folder."""
    if not run.exists():
        raise TrainingError(f"{run.folder} holds no run; leave out --resume to start one")
    return run.settings().training.kind
