"""`heatprior sample`: patches drawn from a prior at given noise levels, as a picture or as an array."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SIGMAS = [0.0, 0.025, 0.05, 0.1, 0.2]
EXAMPLES = """\b
Examples:
  heatprior sample -o patches.png
  heatprior sample patch7 --sigma 0 --sigma 0.3 --count 100 --seed 7 -o patches.npy
  heatprior sample mine.safetensors -o mine.pdf
"""
MOST_PATCHES = 10_000_000
MOST_DRAWN = 1024  # patches of one noise level that a picture can still show


def sample(
    prior: Annotated[
        str, typer.Argument(metavar="PRIOR", help="A shipped prior by its name, or the path of a prior.")
    ] = "patch7",
    *,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="A picture (.png, .pdf, .svg), or .npy for the numbers."),
    ],
    sigma: Annotated[
        list[float],
        typer.Option(metavar="S", help="Standard deviation of the noise, grey levels being 0 to 1; may be repeated."),
    ] = SIGMAS,
    count: Annotated[int, typer.Option(metavar="N", min=1, max=MOST_PATCHES, help="Patches at each level.")] = 36,
    seed: Annotated[int, typer.Option(metavar="K", min=0, help="Start of the random numbers.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")] = False,
) -> None:
    """Draw patches from a prior at given noise levels.

    The levels share their random numbers, so that like places show like patches. An array has the shape
    (levels, count, b, b), type float32.
    """
    import numpy as np

    from heatprior import load
    from heatprior.errors import InvalidInputError
    from heatprior.files import check_output, replacing
    from heatprior.pictures import SUFFIXES, draw_patches

    suffix = output.suffix.lower()
    if suffix not in (*SUFFIXES, ".npy"):
        raise InvalidInputError(f"cannot write {output}: it must be a name that ends in {', '.join(SUFFIXES)} or .npy")
    if suffix in SUFFIXES and count > MOST_DRAWN:
        raise InvalidInputError(f"{count} patches do not fit in a picture; at most {MOST_DRAWN}, or write them to .npy")
    check_output(output, force=force)

    loaded = load(prior)
    size = loaded.filters.size
    patches = np.empty((len(sigma), count, size, size), np.float32)
    for level, noise in enumerate(sigma):
        patches[level] = loaded.sample(count, noise, rng=np.random.default_rng(seed)).reshape(-1, size, size)
    if suffix == ".npy":
        with replacing(output) as temporary, temporary.open("wb") as file:
            np.save(file, patches)
    else:
        draw_patches(patches, sigma, output)
    levels = ", ".join(f"{noise:g}" for noise in sigma)
    typer.echo(f"wrote {output}: {count} patches of {size}×{size} pixels at each sigma of {levels}")
