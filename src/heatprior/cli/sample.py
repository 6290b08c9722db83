"""`heatprior sample`: patches or images drawn from a prior at given noise levels, as a picture or as an array."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from heatprior.priors.protocol import ImagePrior

SIGMAS = [0.0, 0.025, 0.05, 0.1, 0.2]
EXAMPLES = """\b
Examples:
  heatprior sample -o patches.png
  heatprior sample patch7 --sigma 0 --sigma 0.3 --count 100 --seed 7 -o patches.npy
  heatprior sample mine.safetensors -o mine.pdf
  heatprior sample wavelet --size 128x128 -o images.png       whole images, if the prior describes them
"""
MOST_PATCHES = 10_000_000
MOST_DRAWN = 1024  # patches of one noise level that a picture can still show
PATCHES, IMAGES = 36, 1  # at each level, by default
SIZE = "128x128"
LARGEST_SIDE = 4096


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
    count: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=MOST_PATCHES,
            help="Patches or images at each level.  [default: 36 patches, 1 image]",
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(metavar="HxW", help="Pixels of a whole image, for priors of whole images.  [default: 128x128]"),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="K", min=0, help="Start of the random numbers.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")] = False,
) -> None:
    """Draw patches, or whole images, from a prior at given noise levels.

    The levels share their random numbers, so that like places show like patches. An array has the shape
    (levels, count, b, b), type float32; of whole images (levels, count, H, W). Those of `conv` take a while: they are
    drawn by Langevin dynamics.
    """
    import numpy as np

    from heatprior import load
    from heatprior.cli.outputs import check_output
    from heatprior.cli.reports import bar_over
    from heatprior.errors import InvalidInputError
    from heatprior.files import replacing
    from heatprior.kernels.row_bands import part_of
    from heatprior.pictures.figures import SUFFIXES
    from heatprior.pictures.patch_panels import draw_patches

    suffix = output.suffix.lower()
    if suffix not in (*SUFFIXES, ".npy"):
        raise InvalidInputError(f"cannot write {output}: it must be a name that ends in {', '.join(SUFFIXES)} or .npy")
    if suffix in SUFFIXES and count is not None and count > MOST_DRAWN:
        raise InvalidInputError(f"{count} patches do not fit in a picture; at most {MOST_DRAWN}, or write them to .npy")
    shape = _shape(size or SIZE)
    check_output(output, force=force)

    loaded = load(prior)
    if loaded.patch_shape and size is not None:
        raise InvalidInputError(f"{prior} describes patches; leave out --size, or take a prior of images as wavelet")
    what, count = ("patches", count or PATCHES) if loaded.patch_shape else ("images", count or IMAGES)
    draws = []
    with bar_over(1) as (progress, _):
        for number, noise in enumerate(sigma):
            rng = np.random.default_rng(seed)
            if loaded.patch_shape:
                shape = (loaded.patch_shape[0], loaded.patch_shape[1])
                draws.append(loaded.sample(count, noise, rng=rng))
            else:
                part = part_of(progress, number, len(sigma))
                draws.append(cast("ImagePrior", loaded).sample(count, noise, rng=rng, shape=shape, progress=part))
            progress((number + 1) / len(sigma))
    patches = np.array([drawn.reshape(count, *shape) for drawn in draws], np.float32)
    if suffix == ".npy":
        with replacing(output) as temporary, temporary.open("wb") as file:
            np.save(file, patches)
    else:
        draw_patches(patches, sigma, output)
    levels = ", ".join(f"{noise:g}" for noise in sigma)
    typer.echo(f"wrote {output}: {count} {what} of {shape[0]}×{shape[1]} pixels at each sigma of {levels}")


def _shape(size: str) -> tuple[int, int]:
    """The two sides that a text such as 128x96 names."""
    from heatprior.errors import InvalidInputError

    sides = size.lower().split("x")
    if len(sides) != 2 or not all(
        side.isascii() and side.isdigit() and 1 <= int(side) <= LARGEST_SIDE for side in sides
    ):
        raise InvalidInputError(f"size is {size!r}; expected height and width in pixels, such as 128x128")
    return int(sides[0]), int(sides[1])
