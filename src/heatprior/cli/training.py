"""What `heatprior train` asks for and shows: options as settings, a progress bar, pictures of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import typer

from heatprior.kinds import KINDS, trainable

if TYPE_CHECKING:
    from heatprior.data.datasets import SkippedFile
    from heatprior.learning.logs import LogEntry
    from heatprior.learning.sessions import Session
    from heatprior.learning.steps import StepReport

MOST_SKIPPED_SHOWN = 5


def checked_kind(kind: str | None) -> str | None:
    """What `--kind` may be: the kinds that the table says how to train."""
    if kind not in (None, *trainable()):
        raise typer.BadParameter(f"{kind!r} is not one of {', '.join(map(repr, trainable()))}.")
    return kind


def as_settings(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as settings of that kind of prior; options of another kind are refused."""
    config = KINDS[kind].training_config()
    known = names_of_settings(kind)
    settings = dict(options)
    for short, names in config.shorthands.items():
        if short in settings:
            if any(name in settings for name in names):
                raise typer.BadParameter(
                    f"{_option(short)} stands for {' and '.join(map(_option, names))}; leave out one or the other"
                )
            settings |= dict.fromkeys(names, settings.pop(short))
    for name in settings:
        if name not in known:
            other = next(other for other in trainable() if name in names_of_settings(other))
            raise typer.BadParameter(
                f"{_option(name)} belongs to --kind {other} and this is --kind {kind}; leave it out"
            )
    return settings


def names_of_settings(kind: str) -> set[str]:
    """The settings of the training of a kind of prior."""
    return {field.name for field in fields(KINDS[kind].training_config())}


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@contextmanager
def bar_of_steps(steps: int) -> Iterator[Callable[[StepReport | LogEntry], None]]:
    """A progress bar over the steps, drawn on a terminal only, with the last log entry beside it."""
    from tqdm import tqdm

    from heatprior.learning.logs import LogEntry

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
            elif bar.n == 0:
                bar.initial = event.step - 1  # steps of an earlier process do not count for the speed
                bar.n = bar.initial
                bar.update(1)
            else:
                bar.update(1)

        yield report


def draw(session: Session) -> None:
    """How the training went, and the prior so far, into the run folder."""
    from heatprior.pictures.training_logs import draw_log

    folder, training = session.run.folder, session.loop.training
    rows = session.run.log().rows()
    if rows:
        draw_log(rows, folder / "loss.png")
    KINDS[training.config.kind].drawing()(training.prior(session.card), folder / training.config.picture)


def tell_skipped(skipped: Sequence[SkippedFile]) -> None:
    """Files that could not be used, the first few by name."""
    for file in skipped[:MOST_SKIPPED_SHOWN]:
        typer.echo(f"skipped: {file.reason}", err=True)
    if len(skipped) > MOST_SKIPPED_SHOWN:
        typer.echo(f"skipped: {len(skipped) - MOST_SKIPPED_SHOWN} more files", err=True)
