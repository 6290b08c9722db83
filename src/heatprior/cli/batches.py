"""What commands on files share: options, jobs planned and checked before any work, progress and reports."""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from heatprior.errors import HeatpriorError, InvalidInputError, OutputFileError
from heatprior.files import check_place, discard_unfinished, keep_apart, location, make_folder, replacing
from heatprior.presets import PRESETS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from heatprior.kernels.patches import Progress

SOME_FAILED = 1
COMPILING = "heatprior: compiling once for this processor, about ten seconds"

Inputs = Annotated[
    list[Path],  # an unreadable file is reported like any other bad one
    typer.Argument(metavar="INPUT", readable=False, help="Image files, or folders of them."),
]
OUTPUT = "Output file; a folder if there are several inputs.  [default: a new file beside the input]"
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="OUT", help=OUTPUT)]
SIGMA = (
    "Standard deviation of the noise, in the units of the image: a number, or a file (.npy, .tif) with one per pixel."
)
Sigma = Annotated[str | None, typer.Option(metavar="S", help=f"{SIGMA}  [default: estimated]")]
PRIOR = "Name of a shipped prior, or path of a prior file."
PriorName = Annotated[str, typer.Option(metavar="PRIOR", help=PRIOR)]
OwnPrior = Annotated[str | None, typer.Option(metavar="PRIOR", help=f"{PRIOR}  [default: that of the quality]")]
WHITE = "Value of full scale, such as 4095.  [default: by type, or estimated]"
White = Annotated[float | None, typer.Option(metavar="W", help=WHITE)]
FORCE = "Replace existing outputs, never an input; or skip images whose output exists, to resume after an interruption."
Force = Annotated[bool | None, typer.Option("--force/--skip-existing", help=FORCE)]
Json = Annotated[Path | None, typer.Option("--output", "-o", metavar="JSON", help="Write the results as JSON.")]
Replace = Annotated[bool, typer.Option("--force", help="Replace existing outputs; never an input.")]
NOISES = ("auto", "constant", "affine", "map", "camera")  # what may be estimated


def choice(*names: str, help: str, flags: Sequence[str] = ()) -> Any:  # noqa: A002 (as typer calls it)
    """An option whose value is one of these names."""

    def check(value: str | None) -> str | None:
        if value not in (None, *names):
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(map(repr, names))}.")
        return value

    return typer.Option(*flags, metavar=f"<{'|'.join(names)}>", callback=check, help=help)


QUALITIES = "; ".join(f"{name}: {preset.words}" for name, preset in PRESETS.items() if preset.words)
Quality = Annotated[str, choice(*PRESETS, help=f"{QUALITIES}.")]


def spread_options(
    name: str, options: Mapping[str, tuple[Any, Any]], gather: Callable[..., Any] = dict
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a function as a command that has `options` in place of its parameter `name`.

    They are given by their annotations, as typer reads them, and defaults; `gather` makes the argument of their values.
    """
    spread = [
        Parameter(option, Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for option, (kind, default) in options.items()
    ]

    def decorate(own: Callable[..., None]) -> Callable[..., None]:
        given = signature(own, eval_str=True).parameters.values()
        parameters = [each for old in given for each in (spread if old.name == name else [old])]

        def command(**values: Any) -> None:
            own(**{name: gather(**{option: values.pop(option) for option in options})}, **values)

        command.__name__, command.__doc__ = own.__name__, own.__doc__
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        command.__dict__["__signature__"] = Signature(parameters)
        return command

    return decorate


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
        return Plan([job for plan in plans for job in plan.jobs], [], single=len(plans) == 1 and plans[0].single)
    if len(inputs) == 1 and not inputs[0].is_dir():
        target = output / inputs[0].name if output.is_dir() else output
        return Plan([Job(inputs[0], target)], [], single=True)
    if not output.is_dir():
        if os.path.lexists(output):
            raise OutputFileError(f"cannot write to {output}: it is a file; several images need a folder")
        if output.suffix.lower() in SUFFIXES:
            advice = f"give a folder, such as -o {output.stem}"
            raise OutputFileError(f"cannot write several images to {output}, the name of one file; {advice}")
        if not output.absolute().parent.is_dir():
            raise OutputFileError(f"cannot make the folder {output}: {output.parent} does not exist; create it first")
    keep_apart([output], [given for given in inputs if given.is_dir()])
    jobs, failures = [], []
    for given in inputs:
        if not given.is_dir():
            jobs.append(Job(given, output / given.name))
            continue
        try:
            jobs += [Job(path, output / path.relative_to(given)) for path in folder_files(given)]
        except InvalidInputError as error:
            if len(inputs) == 1:
                raise
            failures.append(str(error))
    return Plan(jobs, failures, single=False)


def error_path(job: Job, *, error: Path, inputs: Sequence[Path], output: Path | None) -> Path:
    """Where the error image of a job goes: `error` itself, or a TIFF below it as the result lies below `output`."""
    if len(inputs) == 1 and not inputs[0].is_dir() and not error.is_dir():
        return error
    if output is None:
        return error / job.target.with_suffix(".tif").name
    place = job.target.relative_to(output) if output.is_dir() or job.target != output else Path(output.name)
    return error / place.with_suffix(".tif")


def check_targets(todo: Plan, extras: Iterable[Path], protected: Iterable[Path], *, force: bool) -> None:
    """Refuse outputs that meet inputs, that two inputs share, that exist (without `force`) or that cannot be written.

    `extras` are written beside the targets; `protected` are files that are read, though no job's source.
    """
    written = [*(job.target for job in todo.jobs), *extras]
    keep_apart(written, [*(job.source for job in todo.jobs), *protected])
    taken: set[Path] = set()
    for target in written:
        if (place := location(target)) in taken:
            raise OutputFileError(f"{target} would be written twice, by inputs of one name; denoise them separately")
        taken.add(place)
    existing = [target for target in written if os.path.lexists(target) and not target.is_dir() and not force]
    if len(existing) > 1:
        raise OutputFileError(
            f"{len(existing)} of {len(written)} outputs exist already, such as {existing[0]}; choose another place or "
            "add --force to replace them"
        )
    for target in written:
        folder = target.parent
        if todo.single or folder.is_dir():
            check_output(target, force=force)
            continue
        above = next(parent for parent in folder.absolute().parents if os.path.lexists(parent))
        if not (above.is_dir() and os.access(above, os.W_OK)):
            what = "not writable" if above.is_dir() else "a file"
            raise OutputFileError(f"cannot make the folder {folder}: {above} is {what}; choose another place")


def check_output(path: Path, *, force: bool) -> None:
    """Refuse at once, before any work, an output that could not be written at the end."""
    if path.is_dir():
        raise OutputFileError(f"cannot write {path}: it is a folder; give a file name inside it")
    check_place(path)
    if os.path.lexists(path) and not force:
        raise OutputFileError(f"{path} exists already; choose another name or add --force to replace it")


def check_named(
    *written: tuple[Path | None, Sequence[str]], read: Iterable[Path] = (), prior: str = "", force: bool
) -> None:
    """Refuse, before any work, outputs (None: there is none) that lack a suffix of theirs or meet what is read."""
    outputs = []
    for path, suffixes in written:
        if path is None:
            continue
        if path.suffix.lower() not in suffixes:
            raise OutputFileError(f"cannot write {path}: it must be a name that ends in {', '.join(suffixes)}")
        outputs.append(path)
    keep_apart(outputs, [*read, *filter(Path.is_file, [Path(prior)])])
    if len({location(path) for path in outputs}) < len(outputs):
        raise OutputFileError(f"cannot write {outputs[0]} twice; give each output a name of its own")
    for path in outputs:
        check_output(path, force=force)


def prepare(
    inputs: list[Path],
    output: Path | None,
    *,
    done: str,
    compare: bool,
    read: Iterable[str | Path | None],
    force: bool | None,
    beside: Callable[[Job], Path] | None = None,
) -> Plan:
    """Plan the jobs and refuse unsafe ones. `done` names results without an output.

    `read` may name files that are read and must not be overwritten; `force` says what of outputs that exist: replaced,
    left out (False), or refused (None); `beside` is where a job writes a second file.
    """
    todo = plan_jobs(inputs, output, done)
    if force is False:
        keep_apart([job.target for job in todo.jobs], [job.source for job in todo.jobs])
        for job in todo.jobs:
            if os.path.lexists(job.target):
                discard_unfinished(job.target)  # what a killed process left beside it
        todo = todo._replace(jobs=[job for job in todo.jobs if not os.path.lexists(job.target)])
        if not todo.jobs and not todo.failures:
            typer.echo("nothing left to do: every output exists")
            raise typer.Exit
    extras = [picture_beside(job.target) for job in todo.jobs] if compare else []
    if beside is not None:
        extras += [beside(job) for job in todo.jobs]
    files = [path for name in read if name is not None and (path := Path(name)).is_file()]
    check_targets(todo, extras, [*inputs, *files], force=bool(force))
    return todo


def run_jobs(todo: Plan, output: Path | None) -> Iterator[tuple[Job, AbstractContextManager[Progress]]]:
    """Yield each job, with a block to do it in, which gives its progress; where it fails, the other jobs go on."""
    failures = list(todo.failures)
    for reason in failures:
        report_error(reason)
    folders = [output] if output is not None else list(dict.fromkeys(job.target.parent for job in todo.jobs))
    made = [folder for folder in folders if not (todo.single or folder.is_dir())]

    @contextmanager
    def attempt(job: Job, number: int) -> Iterator[Progress]:
        try:
            make_folder(job.target.parent)
            yield partial(progress, before=number)
        except (HeatpriorError, MemoryError) as error:
            if todo.single:
                raise
            reason = str(error) or "not enough memory"
            failures.append(reason if str(job.source) in reason else f"{job.source}: {reason}")
            report_error(failures[-1])

    try:
        with show_progress(len(todo.jobs)) as progress:
            for number, job in enumerate(todo.jobs):
                yield job, attempt(job, number)
    finally:
        for folder in made:  # what is empty in them goes, and so do they if nothing is left
            for place, _, _ in os.walk(folder, topdown=False):
                with suppress(OSError):
                    os.rmdir(place)  # noqa: PTH106 (which only an empty folder lets happen)
    if failures and not todo.single:
        typer.echo(f"heatprior: {len(failures)} of {len(todo.jobs) + len(todo.failures)} failed, see above", err=True)
        raise typer.Exit(SOME_FAILED)


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


def write_json(path: Path | None, record: Any) -> None:
    """Write what was found as JSON, if a file for it was named."""
    if path is not None:
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        typer.echo(f"wrote {path}")


def picture_beside(target: Path) -> Path:
    """The path of the picture that --compare draws."""
    return target.with_name(f"{target.stem}-compare.png")


@contextmanager
def show_progress(count: int) -> Iterator[Callable[..., None]]:
    """A progress bar on a terminal; yields a function of how many images are done, `before` others."""
    from tqdm import tqdm

    shape = "{percentage:3.0f} %|{bar}| {elapsed}, {remaining} to go"
    with tqdm(total=count, leave=False, disable=None, bar_format=shape) as bar:
        yield lambda done, before=0: bar.update(before + done - bar.n)


def say(line: str, *, err: bool = False) -> None:
    """Print a line, above the progress bar if there is one."""
    from tqdm import tqdm

    tqdm.write(line, file=sys.stderr if err else sys.stdout)


def report_error(error: object) -> None:
    """Say in one line why a file was left out; the others go on."""
    say(f"heatprior: error: {' '.join(str(error).split())}", err=True)


@contextmanager
def collect_warnings(refusal: str) -> Iterator[list[str]]:
    """Collect the library's warnings, a line each, in a list filled at the end; begin its refusals with `refusal`."""
    messages: list[str] = []
    try:
        with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
            yield messages
    except InvalidInputError as error:
        raise InvalidInputError(f"{refusal}: {error}") from error
    messages += [" ".join(str(warning.message).split()) for warning in caught]


def report_warning(source: Path, messages: Sequence[str]) -> None:
    """Print the first of what there is to be said about a file, the one to act upon, on stderr: one line a file."""
    for message in messages[:1]:
        typer.echo(f"heatprior: warning: {source}: {message}", err=True)


@cache
def announce_compiling() -> None:
    """Print once in a process that kernels are being compiled: the first run would otherwise seem to hang."""
    from heatprior.kernels.compiler import on_compiling

    on_compiling(cache(lambda: typer.echo(COMPILING, err=True)))
