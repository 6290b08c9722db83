"""Stores larger than memory on the command line: which inputs they are, and what is said while they are denoised."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from heatprior.cli.reports import say_if_compiling

MARKS = ("zarr.json", ".zgroup", ".zarray", ".zattrs")

Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="A dask scheduler, tcp://host:8786, whose workers denoise a zarr store."),
]
Workers = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Processes that denoise a zarr store.  [default: threads]")
]


def is_large(inputs: Sequence[Path], output: Path) -> bool:
    """Whether a zarr store is read, or written."""
    return any(path.suffix == ".zarr" or any((path / mark).is_file() for mark in MARKS) for path in (*inputs, output))


def denoise_large(
    inputs: Sequence[Path],
    output: Path,
    *,
    sigma: str | None,
    prior: str,
    method: str,
    white: float | None,
    scheduler: str | None,
    workers: int | None,
    force: bool,
    scales: int | None,
    others: dict[str, bool],
) -> None:
    """Denoise one store, or one TIFF into a store, block by block; `others` are options that are for files only."""
    from heatprior.errors import InvalidInputError

    for name, given in others.items():
        if given:
            raise typer.BadParameter(f"{name} looks at whole images, which blocks of a zarr store cannot; leave it out")
    if len(inputs) != 1:
        raise typer.BadParameter("a zarr store is denoised by itself; give one input")
    try:
        from heatprior.large.files import Settings, denoise_store
    except ImportError as error:
        raise InvalidInputError(f"zarr stores need {error.name}; pip install 'heatprior[large]'") from error

    say_if_compiling()
    known = str(Path(prior).absolute()) if Path(prior).is_file() else prior  # workers may be elsewhere
    settings = Settings(known, method, _number(sigma), white, scales or 1)
    start = time.perf_counter()
    with Bar() as bar:
        done = denoise_store(
            inputs[0], output, settings, scheduler=scheduler, workers=workers, force=force, told=bar.told,
            shown=lambda address: typer.echo(f"dask shows what it does at {address}", err=True),
        )  # fmt: skip
    seconds = time.perf_counter() - start
    levels = "; ".join(
        f"{name or 'noise'}: sigma {', '.join(f'{level:.4g}' for level in found)}"
        for name, found in done.sigmas.items()
    )
    earlier = f", {done.found} of them by an earlier run" if done.found else ""
    sizes = "one scale" if settings.scales == 1 else f"{settings.scales} scales"
    typer.echo(
        f"wrote {output}: {done.blocks} blocks{earlier}, at {sizes}, from {inputs[0]}, {seconds:.1f} s; {levels}"
    )


def _number(sigma: str | None) -> float | None:
    try:
        number = None if sigma is None else float(sigma)
    except ValueError:
        number = -1.0
    if number is not None and not 0 < number < float("inf"):
        raise typer.BadParameter(f"--sigma is {sigma!r}; for a zarr store expected a positive number")
    return number


class Bar:
    """Blocks done, blocks per second and the time left, on a terminal."""

    def __enter__(self) -> Bar:
        self._bar: Any = None
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def told(self, done: int, count: int) -> None:
        """Begin with what an earlier run did, so that it does not count as speed."""
        from tqdm import tqdm

        if self._bar is None:
            shape = "{percentage:3.0f} %|{bar}| {n_fmt}/{total_fmt} blocks, {rate_fmt}, {remaining} to go"
            self._bar = tqdm(total=count, initial=done, leave=False, disable=None, unit=" blocks", bar_format=shape)
        self._bar.update(done - self._bar.n)
