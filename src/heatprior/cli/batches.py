"""What commands on files share: options, jobs planned and checked before any work, progress and reports."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from heatprior.errors import HeatpriorError, InvalidInputError, OutputFileError
from heatprior.files import discard_unfinished, keep_apart, location, make_folder
from heatprior.presets import DEFAULT, PRESETS

if TYPE_CHECKING:
    from numpy.typing import NDArray

SOME_FAILED = 1
COMPILING = "heatprior: compiling once for this processor, about half a minute"

Inputs = Annotated[
    list[Path],
    typer.Argument(
        metavar="INPUT",
        readable=False,  # an unreadable file is reported like any other bad one
        help="Image files, or folders of them.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="Output file; a folder if there are several inputs.  [default: beside the input: photo-RESULT.png]",
    ),
]
Sigma = Annotated[
    str | None,
    typer.Option(
        metavar="S",
        help="Standard deviation of the noise, in the units of the image: a number, or a file (.npy, .tif) with one "
        "per pixel.  [default: estimated; inpaint: none]",
    ),
]
PriorName = Annotated[
    str,
    typer.Option(
        metavar="PRIOR",
        help="Name of a shipped prior, or path of a prior file.",
    ),
]
White = Annotated[
    float | None,
    typer.Option(metavar="W", help="Value of full scale, such as 4095.  [default: by type, or estimated]"),
]
Force = Annotated[
    bool | None,
    typer.Option(
        "--force/--skip-existing",
        help="Replace existing outputs, never an input; or skip images whose output exists, as after an interruption.",
    ),
]

Work = Callable[
    ["Job", Callable[[float], None]], str
]  # a job, a callback for the fraction done → a line that says what was done


if TYPE_CHECKING:

    class Quality(StrEnum):
        """What `--quality` may be."""

        default = DEFAULT

else:
    Quality = StrEnum("Quality", list(PRESETS))


class NoiseKind(StrEnum):
    """What `--noise` may be."""

    auto = "auto"
    constant = "constant"
    affine = "affine"
    map = "map"
    camera = "camera"


QualityOption = Annotated[
    Quality,
    typer.Option(
        "--quality",
        help="; ".join(f"{name}: {preset.words}" for name, preset in PRESETS.items() if preset.words) + ".",
    ),
]


class Job(NamedTuple):
    """One image: its file and where the result goes."""

    source: Path
    target: Path


class Plan(NamedTuple):
    """Jobs, why other inputs were left out, and whether it is a single file given by name."""

    jobs: list[Job]
    failures: list[str]
    single: bool


def plan_jobs(inputs: Sequence[Path], output: Path | None, done: str) -> Plan:
    """One file goes to a file or into a folder that exists; several, or a folder, go into a folder.

    What lies below a folder keeps its place below the output, which is neither in that folder nor around it. Without an
    output each input has its own, beside it and named after what is `done`.
    """
    from heatprior.data.datasets import folder_files
    from heatprior.images import SUFFIXES, name_result

    if output is None:
        places = [given if given.name not in ("", "..") else given.resolve() for given in inputs]
        beside = [place.with_name(name_result(place.name, done)) for place in places]
        plans = [plan_jobs([given], target, done) for given, target in zip(inputs, beside, strict=True)]
        if len(plans) == 1:
            return plans[0]
        return Plan(
            [j for plan in plans for j in plan.jobs], [f for plan in plans for f in plan.failures], single=False
        )
    if len(inputs) == 1 and not inputs[0].is_dir():
        target = output / inputs[0].name if output.is_dir() else output
        return Plan([Job(inputs[0], target)], [], single=True)
    if os.path.lexists(output) and not output.is_dir():
        raise OutputFileError(f"cannot write to {output}: it is a file; several images need a folder")
    if output.suffix.lower() in SUFFIXES and not output.is_dir():
        raise OutputFileError(
            f"cannot write several images to {output}, the name of one file; give a folder, such as -o {output.stem}"
        )
    if not output.is_dir() and not output.absolute().parent.is_dir():
        raise OutputFileError(f"cannot make the folder {output}: {output.parent} does not exist; create it first")
    keep_apart([output], [given for given in inputs if given.is_dir()])
    jobs, failures = [], []
    for given in inputs:
        if not given.is_dir():
            jobs.append(Job(given, output / given.name))
            continue
        try:
            found = folder_files(given)
        except InvalidInputError as error:
            if len(inputs) == 1:
                raise
            failures.append(str(error))
            continue
        jobs += [Job(path, output / path.relative_to(given)) for path in found]
    return Plan(jobs, failures, single=False)


def error_path(job: Job, *, error: Path, inputs: Sequence[Path], output: Path | None) -> Path:
    """Where the error image of a job goes: `error` itself, or a TIFF below it as the result lies below `output`."""
    if len(inputs) == 1 and not inputs[0].is_dir() and not error.is_dir():
        return error
    if output is None:
        return error / job.target.with_suffix(".tif").name
    place = job.target.relative_to(output) if output.is_dir() or job.target != output else Path(output.name)
    return error / place.with_suffix(".tif")


def skip_finished(todo: Plan) -> Plan:
    """The plan without jobs whose target exists; leftovers of a killed process beside these are removed."""
    keep_apart([job.target for job in todo.jobs], [job.source for job in todo.jobs])
    left = []
    for job in todo.jobs:
        if os.path.lexists(job.target):
            discard_unfinished(job.target)
        else:
            left.append(job)
    return todo._replace(jobs=left)


def check_targets(todo: Plan, extras: Iterable[Path], protected: Iterable[Path], *, force: bool) -> None:
    """Refuse outputs that meet inputs, that two inputs share, that exist (without `force`) or that cannot be written.

    `extras` are written beside the targets; `protected` are files that are read, though no job's source.
    """
    written = [*(job.target for job in todo.jobs), *extras]
    keep_apart(written, [*(job.source for job in todo.jobs), *protected])
    existing = []
    taken: set[Path] = set()
    for target in written:
        if (place := location(target)) in taken:
            raise OutputFileError(f"{target} would be written twice, by inputs of the same name; denoise them apart")
        taken.add(place)
        if os.path.lexists(target) and not target.is_dir() and not force:
            existing.append(target)
    if len(existing) > 1:
        raise OutputFileError(
            f"{len(existing)} of {len(written)} outputs exist already, such as {existing[0]}; choose another place or "
            "add --force to replace them"
        )
    for target in written:
        if todo.single or target.parent.is_dir():
            check_output(target, force=force)
        else:
            _check_new_folder(target.parent)


def remove_empty(folder: Path) -> None:
    """Remove a folder made for results if none came, with the empty folders in it."""
    for place, _, _ in os.walk(folder, topdown=False):
        try:
            os.rmdir(place)  # noqa: PTH106 (which only an empty folder lets happen)
        except OSError:
            continue


def _check_new_folder(folder: Path) -> None:
    """Refuse a folder that could not be created."""
    above = next(parent for parent in folder.absolute().parents if os.path.lexists(parent))
    if not above.is_dir():
        raise OutputFileError(f"cannot make the folder {folder}: {above} is a file; choose another place")
    if not os.access(above, os.W_OK):
        raise OutputFileError(f"cannot make the folder {folder}: {above} is not writable; choose another place")


def check_output(path: Path, *, force: bool) -> None:
    """Refuse at once, before any work, an output that could not be written at the end."""
    if path.is_dir():
        raise OutputFileError(f"cannot write {path}: it is a folder; give a file name inside it")
    if not path.parent.is_dir():
        what = "is a file" if path.parent.exists() else "does not exist"
        raise OutputFileError(f"cannot write {path}: {path.parent} {what}; create the folder first")
    if not os.access(path.parent, os.W_OK):
        raise OutputFileError(f"cannot write {path}: the folder {path.parent} is not writable; choose another")
    if os.path.lexists(path) and not force:
        raise OutputFileError(f"{path} exists already; choose another name or add --force to replace it")


def prepare(
    inputs: list[Path],
    output: Path | None,
    *,
    done: str,
    compare: bool,
    read: Iterable[str | Path | None],
    force: bool | None,
    beside: Callable[[Job], Path] | None = None,
) -> Plan | None:
    """Plan the jobs and refuse unsafe ones; None if nothing is left to do. `done` names results without an output.

    `read` may name files that are read and must not be overwritten; `force` says what of outputs that exist: replaced,
    left out (False), or refused (None); `beside` is where a job writes a second file.
    """
    todo = plan_jobs(inputs, output, done)
    if force is False:
        todo = skip_finished(todo)
        if not todo.jobs and not todo.failures:
            typer.echo("nothing left to do: every output exists")
            return None
    extras = [picture_beside(job.target) for job in todo.jobs] if compare else []
    if beside is not None:
        extras += [beside(job) for job in todo.jobs]
    files = [path for name in read if name is not None and (path := Path(name)).is_file()]
    check_targets(todo, extras, [*inputs, *files], force=bool(force))
    return todo


def run_jobs(todo: Plan, work: Work, output: Path | None) -> None:
    """Run the only job, or all: failures are reported, the others go on, and the exit code is then 1."""
    if todo.single:
        with show_progress(1) as (progress, say):
            say(work(todo.jobs[0], progress))
        return
    for reason in todo.failures:
        typer.echo(f"heatprior: error: {reason}", err=True)
    failures = todo.failures + _run_all(todo.jobs, work, output)
    if failures:
        typer.echo(f"heatprior: {len(failures)} of {len(todo.jobs) + len(todo.failures)} failed, see above", err=True)
        raise typer.Exit(SOME_FAILED)


def _run_all(jobs: list[Job], work: Work, output: Path | None) -> list[str]:
    """Run all jobs; report and return the failures."""
    failures = []
    made = [folder for folder in _folders_to_make(jobs, output) if not folder.is_dir()]
    try:
        with show_progress(len(jobs)) as (progress, say):
            for number, job in enumerate(jobs):
                try:
                    make_folder(job.target.parent)
                    say(work(job, partial(_advance, progress, number)))
                except (HeatpriorError, MemoryError) as error:
                    reason = str(error) or "not enough memory"
                    failures.append(reason if str(job.source) in reason else f"{job.source}: {reason}")
                    say(f"heatprior: error: {' '.join(failures[-1].split())}", err=True)
    finally:
        for folder in made:
            remove_empty(folder)
    return failures


def _folders_to_make(jobs: list[Job], output: Path | None) -> list[Path]:
    return [output] if output is not None else list(dict.fromkeys(job.target.parent for job in jobs))


def _advance(progress: Callable[[float], None], done: int, fraction: float) -> None:
    progress(done + fraction)


def read_sigma(sigma: str | None) -> float | NDArray[Any] | None:
    """The noise level that --sigma gives: a number, or the pixels of a file."""
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
    """Refuse a full scale that is not positive."""
    if white is not None and not (math.isfinite(white) and white > 0):
        raise typer.BadParameter(f"--white is {white:g}; expected the positive value that stands for full scale")


def picture_beside(target: Path) -> Path:
    """The path of the picture that --compare draws."""
    return target.with_name(f"{target.stem}-compare.png")


@contextmanager
def show_progress(count: int) -> Iterator[tuple[Callable[[float], None], Callable[..., None]]]:
    """A progress bar on a terminal; yields a function that sets how many images are done, and one that prints lines."""
    from tqdm import tqdm

    shape = "{percentage:3.0f} %|{bar}| {elapsed}, {remaining} to go"
    with tqdm(total=count, leave=False, disable=None, bar_format=shape) as bar:

        def progress(done: float) -> None:
            bar.update(done - bar.n)

        def say(line: str, *, err: bool = False) -> None:
            tqdm.write(line, file=sys.stderr if err else sys.stdout)

        yield progress, say


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """The library's warnings, a line each: a list that is filled at the end."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield messages
    messages += [" ".join(str(warning.message).split()) for warning in caught]


def report_warning(source: Path, messages: Sequence[str]) -> None:
    """Print the first of what there is to be said about a file, the one to act upon, on stderr: one line a file."""
    for message in messages[:1]:
        typer.echo(f"heatprior: warning: {source}: {message}", err=True)


@cache
def announce_compiling() -> None:
    """Print once in a process that kernels are being compiled: the first run would otherwise seem to hang."""
    from heatprior.kernels.compiler import on_compiling

    said: list[None] = []

    def say() -> None:
        if not said:
            said.append(None)
            typer.echo(COMPILING, err=True)

    on_compiling(say)
