"""What a command says while it works: a bar on a terminal, lines above it, warnings in one line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer


@contextmanager
def bar_over(count: int) -> Iterator[tuple[Callable[[float], None], Callable[..., None]]]:
    """A progress bar on a terminal: what sets how many images are done, and what prints lines above it."""
    from tqdm import tqdm

    shape = "{percentage:3.0f} %|{bar}| {elapsed}, {remaining} to go"
    with tqdm(total=count, leave=False, disable=None, bar_format=shape) as bar:

        def progress(done: float) -> None:
            bar.update(done - bar.n)

        def say(line: str, *, err: bool = False) -> None:
            tqdm.write(line, file=sys.stderr if err else sys.stdout)

        yield progress, say


@contextmanager
def warnings_in_one_line(source: Path) -> Iterator[None]:
    """What the library warns of while it works on `source`, on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught:
        message = " ".join(str(warning.message).split())
        typer.echo(f"heatprior: warning: {source}: {message}", err=True)


def say_if_compiling() -> None:
    """Say once, on a terminal, that kernels are being compiled, so that the first run is not silent."""
    from heatprior.kernels.compiler import on_compiling

    said = [not sys.stderr.isatty()]

    def say() -> None:
        if not said[0]:
            said[0] = True
            typer.echo(
                "compiling for this processor: the first run only, about half a minute (heatprior warmup)", err=True
            )

    on_compiling(say)
