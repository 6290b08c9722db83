"""`heatprior show` and `heatprior sample`: what a prior is, and patches or images drawn from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heatprior.cli.batches import PRIOR, Replace, check_named, show_progress
from heatprior.errors import InvalidInputError
from heatprior.pictures import SUFFIXES as PICTURES

EXAMPLES = {
    "show": """\
  heatprior show                    which priors there are
  heatprior show patch7
  heatprior show mine.safetensors --filters 24 -o mine.pdf
""",
    "sample": """\
  heatprior sample -o patches.png
  heatprior sample patch7 --sigma 0 --sigma 0.3 --count 100 --seed 7 -o patches.npy
  heatprior sample mine.safetensors -o mine.pdf
  heatprior sample wavelet-density --size 128x128 -o images.png  whole images, if the prior describes them
""",
}
SIGMAS = [0.0, 0.025, 0.05, 0.1, 0.2]
MOST_PATCHES = 10_000_000
MOST_DRAWN = 1024  # patches of one noise level that a picture can still show
PATCHES, IMAGES = 36, 1  # at each level, by default
SIZE = "128x128"
LARGEST_SIDE = 4096


def show(
    prior: Annotated[str | None, typer.Argument(metavar="PRIOR", help=f"{PRIOR}  [default: list them]")] = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The picture: .png, .pdf or .svg.  [default: PRIOR.png]"),
    ] = None,
    filters: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Draw at most N filters, evenly spaced by norm, or N shapes.  [default: 112, 12]"
        ),
    ] = None,
    force: Replace = False,
) -> None:
    """List the shipped priors; or describe one, and draw its filters and potentials, or the shapes of a mixture.

    Filters are sorted by norm, each with the values of black and white, above its potentials −log ψ at five noise
    levels. Shapes are sorted by frequency, each with its leading axes and the weights of its contrasts.
    """
    from heatprior import load
    from heatprior.display import as_printable
    from heatprior.kinds import KINDS
    from heatprior.zoo import names

    if prior is None:
        for name in names():
            typer.echo(f"{name:<17}{repr(load(name)).partition(': ')[2].removesuffix('>')}")
        return
    output = output or Path(f"{Path(prior).stem or 'prior'}.png")
    check_named((output, PICTURES), prior=prior, force=force)
    loaded = load(prior)
    facts = loaded.facts()
    KINDS[loaded.kind].find("picture")(loaded, output, filters)
    for name, value in facts.items():
        typer.echo(f"{as_printable(name):<12}{as_printable(value)}")
    typer.echo(f"wrote {output}")


def sample(
    prior: Annotated[str, typer.Argument(metavar="PRIOR", help=PRIOR)] = "patch7",
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
        typer.Option(metavar="N", min=1, max=MOST_PATCHES, help="Draws at each level.  [default: 36 patches, 1 image]"),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(metavar="WxH", help="Width and height of whole images, for priors of these.  [default: 128x128]"),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="K", min=0, help="Seed of the random numbers.")] = 0,
    force: Replace = False,
) -> None:
    """Draw patches, or whole images, from a prior at given noise levels.

    All levels share their random numbers, so that patches at the same place are comparable. The array is float32 of
    shape (levels, count, b, b), or (levels, count, H, W) for whole images. Those of `conv` take a while: they are
    drawn by Langevin dynamics.
    """
    import numpy as np

    from heatprior import load
    from heatprior.files import replacing
    from heatprior.kernels.patches import part_of
    from heatprior.pictures.figures import draw_patches

    suffix = output.suffix.lower()
    if suffix in PICTURES and count is not None and count > MOST_DRAWN:
        raise InvalidInputError(f"{count} patches do not fit in a picture; at most {MOST_DRAWN}, or write them to .npy")
    shape: tuple[int, ...] = _shape(size or SIZE)
    check_named((output, [*PICTURES, ".npy"]), prior=prior, force=force)
    loaded = load(prior)
    if loaded.patch_shape and size is not None:
        raise InvalidInputError(
            f"{prior} describes patches; leave out --size, or take a prior of images, wavelet-density"
        )
    what, count = ("patches", count or PATCHES) if loaded.patch_shape else ("images", count or IMAGES)
    shape = loaded.patch_shape or shape
    draws = []
    with show_progress(1) as progress:
        for number, noise in enumerate(sigma):
            part = {} if loaded.patch_shape else {"shape": shape, "progress": part_of(progress, number, len(sigma))}
            draws.append(loaded.sample(count, noise, rng=np.random.default_rng(seed), **part))
            progress((number + 1) / len(sigma))
    patches = np.array([drawn.reshape(count, *shape) for drawn in draws], np.float32)
    if suffix == ".npy":
        with replacing(output) as temporary, temporary.open("wb") as file:
            np.save(file, patches)
    else:
        draw_patches(patches, sigma, output)
    levels = ", ".join(f"{noise:g}" for noise in sigma)
    typer.echo(f"wrote {output}: {count} {what} of {shape[1]}×{shape[0]} pixels at each sigma of {levels}")


def _shape(size: str) -> tuple[int, int]:
    """Parse a width and height such as 128x96; returns (height, width)."""
    sides = size.lower().split("x")
    if len(sides) != 2 or not all(
        side.isascii() and side.isdigit() and 1 <= int(side) <= LARGEST_SIDE for side in sides
    ):
        raise InvalidInputError(f"size is {size!r}; expected width and height in pixels, such as 128x128")
    return int(sides[1]), int(sides[0])
