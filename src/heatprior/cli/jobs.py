"""Which file becomes which: inputs, files or folders, and the outputs they go to; refused before any work if unsafe."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from heatprior.cli.outputs import check_output
from heatprior.errors import InvalidInputError, OutputFileError


class Job(NamedTuple):
    """One image: where it is and where the result goes."""

    source: Path
    target: Path


class Plan(NamedTuple):
    """What is to be done; inputs that are nothing to do, and why; and whether it is one file by name."""

    jobs: list[Job]
    failures: list[str]
    single: bool


def plan(inputs: Sequence[Path], output: Path) -> Plan:
    """One file goes to a file or into a folder that exists; several, or a folder, go into a folder.

    What lies below a folder keeps its place below the output. Of an output inside an input folder nothing is read.
    """
    from heatprior.data.datasets import folder_files

    if len(inputs) == 1 and not inputs[0].is_dir():
        target = output / inputs[0].name if output.is_dir() else output
        return Plan([Job(inputs[0], target)], [], single=True)
    if os.path.lexists(output) and not output.is_dir():
        raise OutputFileError(f"cannot write to {output}: it is a file; several images need a folder")
    if not output.is_dir() and not output.absolute().parent.is_dir():
        raise OutputFileError(f"cannot make the folder {output}: {output.parent} does not exist; create it first")
    jobs, failures = [], []
    for given in inputs:
        if not given.is_dir():
            jobs.append(Job(given, output / given.name))
            continue
        try:
            found = [path for path in folder_files(given) if not _is_below(path, output) or _same(given, output)]
        except InvalidInputError as error:
            if len(inputs) == 1:
                raise
            failures.append(str(error))
            continue
        if not found and len(inputs) == 1:
            raise InvalidInputError(f"{given} holds no images but those in {output}; give another folder")
        jobs += [Job(path, output / path.relative_to(given)) for path in found]
    return Plan(jobs, failures, single=False)


def errors_below(job: Job, *, error: Path, inputs: Sequence[Path], output: Path) -> Path:
    """Where the errors of an image go: `error` itself, or below it as the image lies below the output, in a TIFF."""
    if len(inputs) == 1 and not inputs[0].is_dir() and not error.is_dir():
        return error
    place = job.target.relative_to(output) if output.is_dir() or job.target != output else Path(output.name)
    return error / place.with_suffix(".tif")


def without_finished(todo: Plan) -> Plan:
    """The plan without the jobs whose target is there already."""
    return todo._replace(jobs=[job for job in todo.jobs if not os.path.lexists(job.target)])


def check_targets(todo: Plan, extras: Iterable[Path], protected: Iterable[Path], *, force: bool) -> None:
    """Refuse outputs that are inputs, that two inputs share, that exist (without `force`) or that cannot be written.

    `extras` are written beside the targets; `protected` are files that are read, though no job's source.
    """
    written = [*(job.target for job in todo.jobs), *extras]
    refuse_inputs(written, [*(job.source for job in todo.jobs), *protected])
    existing = []
    taken: set[Path] = set()
    for target in written:
        if target in taken:
            raise OutputFileError(f"{target} would be written twice, by inputs of the same name; denoise them apart")
        taken.add(target)
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
            _check_folder_to_be(target.parent)


def refuse_inputs(written: Iterable[Path], sources: Iterable[Path]) -> None:
    """Refuse outputs that are inputs, by whatever name."""
    read = {identity: path for path in sources if (identity := _identity(path))}
    for target in written:
        identity = _identity(target)
        if identity in read:
            raise OutputFileError(f"{target} is the input {read[identity]}; inputs are never replaced: choose another")


def remove_empty(folder: Path) -> None:
    """Remove a folder made for results if none came, with the empty folders in it."""
    for place, _, _ in os.walk(folder, topdown=False):
        try:
            os.rmdir(place)  # noqa: PTH106 (which only an empty folder lets happen)
        except OSError:
            continue


def _check_folder_to_be(folder: Path) -> None:
    """Refuse a folder that could not be made."""
    above = next(parent for parent in folder.absolute().parents if os.path.lexists(parent))
    if not above.is_dir():
        raise OutputFileError(f"cannot make the folder {folder}: {above} is a file; choose another place")
    if not os.access(above, os.W_OK):
        raise OutputFileError(f"cannot make the folder {folder}: {above} is not writable; choose another place")


def _identity(path: Path) -> tuple[int, int] | None:
    """What a path leads to, through all links; equal for two names of the same file."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _is_below(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
