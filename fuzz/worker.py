"""Runs cases one after another in a process of its own, with limits on memory, and tells how each went."""

from __future__ import annotations

import io
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from fuzz.cases import Case, case_of, sound_cases
from fuzz.laws import Outcome, broken_laws

HEADROOM = 3 << 30  # bytes of address space beyond what the process has when it begins
LARGEST_FILE = 1 << 30


class Verdict(NamedTuple):
    """How a case went."""

    code: int | None
    broken: list[str]
    seconds: float
    memory: int


def serve(connection: Connection) -> None:
    """Send what is wrong with cases that have no fault; then run those that are asked for, and send their verdicts."""
    for case in sound_cases():  # what is imported, compiled or put aside once counts against no case
        run_case(case)
    faults = [(case.arguments, verdict) for case in sound_cases() if (verdict := run_case(case)[0])[:2] != (0, [])]
    limit = _status("VmSize") + HEADROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    connection.send(faults)
    with suppress(EOFError):
        while True:
            for target, number in connection.recv():
                connection.send(run_case(case_of(target, number))[0])


def run_case(case: Case) -> tuple[Verdict, Outcome]:
    """Run a case in a folder of its own, which is removed."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    before = Path.cwd()
    try:
        case.write(folder)
        os.chdir(folder)
        outcome = _run(case.arguments)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            broken = broken_laws(case, outcome, folder)
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)
    return Verdict(outcome.code, broken, outcome.seconds, outcome.memory), outcome


def _run(arguments: list[str]) -> Outcome:
    """The command line in this process, with everything that it or a library says caught."""
    main, computed = _command_line()
    computed.clear()
    code, trace = None, ""
    memory = _reset_peak()
    start = time.process_time()
    with _caught() as said:
        try:
            code = main(arguments)
        except BaseException:  # whatever comes here is a traceback for the user
            trace = traceback.format_exc()
    seconds = time.process_time() - start
    return Outcome(code, trace, said[0], said[1], seconds, max(0, _status("VmHWM") - memory), dict(computed))


@cache
def _command_line() -> tuple[Any, dict[str, Any]]:
    """`main`, faster to call many times, and where the pixels are put that it writes."""
    import typer.main  # noqa: PLC0415

    from heatprior import images  # noqa: PLC0415
    from heatprior.cli import main  # noqa: PLC0415

    computed: dict[str, Any] = {}
    write, build = images.write_image, typer.main.get_command

    def remembering(path: Path, pixels: Any, **options: Any) -> None:
        computed[str(path)] = pixels
        write(path, pixels, **options)

    images.write_image = remembering
    typer.main.get_command = cache(build)
    return main, computed


@contextmanager
def _caught() -> Iterator[list[str]]:
    """Standard output and standard error as two texts, down to what C libraries write."""
    said: list[str] = []
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        streams = sys.stdout, sys.stderr
        kept = [(number, os.dup(number)) for number in (1, 2)]
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", write_through=True)
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", "backslashreplace", write_through=True)
        try:
            yield said
        finally:
            sys.stdout, sys.stderr = streams
            for number, copy in kept:
                os.dup2(copy, number)
                os.close(copy)
            for file in (out, err):
                file.seek(0)
                said.append(file.read().decode("utf-8", "replace"))


def _reset_peak() -> int:
    """Forget the peak of memory; the bytes in use now."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    return 0
