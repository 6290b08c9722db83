"""Files and folders, one image after the other: options, checks before any work, and reports that commands share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heatprior.cli.reports import bar_over

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from heatprior.cli.jobs import Job, Plan

SOME_FAILED = 1

Inputs = Annotated[
    list[Path],
    typer.Argument(
        metavar="INPUT",
        readable=False,  # an unreadable file is reported like any other bad one
        help="Images (.png, .jpg, .tif, .npy), or folders of them.",
    ),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="OUT", help="A file; for several inputs or for a folder, a folder.")
]
Sigma = Annotated[
    str | None,
    typer.Option(
        metavar="S",
        help="Standard deviation of the noise, in the units of the image: a number, or an image of numbers (.npy, "
        ".tif), one for each pixel.  [default: estimated]",
    ),
]
PriorName = Annotated[
    str,
    typer.Option(
        metavar="PRIOR",
        help="A shipped prior by its name, or the path of a prior. Noise is always estimated with patch7.",
    ),
]
White = Annotated[
    float | None,
    typer.Option(metavar="W", help="The value that is full scale.  [default: by type, such as 255; denoise finds it]"),
]
SkipExisting = Annotated[
    bool, typer.Option("--skip-existing", help="Leave out images whose output exists, as after an interruption.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace outputs that exist; never an input.")]

Work = Callable[["Job", Callable[[float], None]], str]  # a job, whom to tell the fraction done → what was done


def prepared(
    inputs: list[Path],
    output: Path,
    *,
    compare: bool,
    read: Iterable[str | None],
    skip_existing: bool,
    force: bool,
    beside: Callable[[Job], Path] | None = None,
) -> Plan | None:
    """What is to be done, safely: None if nothing is left. `read` may name files that are read and must stay.

    `beside` is where a job writes something else besides its target.
    """
    from heatprior.cli.jobs import check_targets, plan, without_finished

    if skip_existing and force:
        raise typer.BadParameter("--skip-existing keeps outputs that exist and --force replaces them; give one of them")
    todo = plan(inputs, output)
    if skip_existing:
        todo = without_finished(todo)
        if not todo.jobs and not todo.failures:
            typer.echo("nothing left to do: every output exists")
            return None
    extras = [picture_beside(job.target) for job in todo.jobs] if compare else []
    if beside is not None:
        extras += [beside(job) for job in todo.jobs]
    check_targets(todo, extras, [path for path in map(Path, filter(None, read)) if path.is_file()], force=force)
    return todo


def carry_out(todo: Plan, work: Work, output: Path) -> None:
    """Do one file, or every file that can be done: failures are reported, and the exit code is then 1."""
    if todo.single:
        with bar_over(1) as (progress, say):
            say(work(todo.jobs[0], progress))
        return
    for reason in todo.failures:
        typer.echo(f"heatprior: error: {reason}", err=True)
    failures = todo.failures + _all(todo.jobs, work, output)
    if failures:
        typer.echo(f"heatprior: {len(failures)} of {len(todo.jobs) + len(todo.failures)} failed, see above", err=True)
        raise typer.Exit(SOME_FAILED)


def _all(jobs: list[Job], work: Work, output: Path) -> list[str]:
    """Report and return the failures."""
    from heatprior.cli.jobs import remove_empty
    from heatprior.errors import HeatpriorError
    from heatprior.files import make_folder

    failures = []
    made = not output.is_dir()
    try:
        with bar_over(len(jobs)) as (progress, say):
            for number, job in enumerate(jobs):
                try:
                    make_folder(job.target.parent)
                    say(work(job, partial(_advance, progress, number)))
                except (HeatpriorError, MemoryError) as error:
                    reason = str(error) or "not enough memory"
                    failures.append(reason if str(job.source) in reason else f"{job.source}: {reason}")
                    say(f"heatprior: error: {' '.join(failures[-1].split())}", err=True)
    finally:
        if made:
            remove_empty(output)
    return failures


def _advance(progress: Callable[[float], None], done: int, fraction: float) -> None:
    progress(done + fraction)


def noise_level(sigma: str | None) -> float | NDArray[Any] | None:
    """The noise level: a number, or the pixels of a file."""
    from heatprior.images import read_image

    if sigma is None:
        return None
    try:
        number = float(sigma)
    except ValueError:
        if not Path(sigma).suffix:
            raise typer.BadParameter(f"--sigma is {sigma!r}; expected a number, or a file (.npy, .tif)") from None
        return read_image(Path(sigma)).pixels
    if not (math.isfinite(number) and number > 0):
        raise typer.BadParameter(f"--sigma is {sigma}; expected a positive number, in the units of the image")
    return number


def check_white(white: float | None) -> None:
    """Refuse what full scale cannot be."""
    if white is not None and not (math.isfinite(white) and white > 0):
        raise typer.BadParameter(f"--white is {white:g}; expected the positive value that stands for full scale")


def picture_beside(target: Path) -> Path:
    """Where --compare draws."""
    return target.with_name(f"{target.stem}-compare.png")
