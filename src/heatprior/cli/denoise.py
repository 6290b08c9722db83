"""`heatprior denoise`: files and folders without their noise, of the type and with the metadata that they came with."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from heatprior.cli.batches import (
    Force,
    Inputs,
    Output,
    Sigma,
    SkipExisting,
    White,
    carry_out,
    check_white,
    noise_level,
    prepared,
)
from heatprior.cli.denoised_files import Request, denoise_file
from heatprior.cli.jobs import errors_below
from heatprior.cli.large import Scheduler, Workers, denoise_large, is_large
from heatprior.cli.noise import NOISE_HELP, NoiseKind
from heatprior.cli.reports import say_if_compiling

EXAMPLES = """\b
Examples:
  heatprior denoise noisy.png -o clean.png                            the noise is estimated
  heatprior denoise noisy.png -o clean.png --sigma 25
  heatprior denoise stack.tif -o clean.tif --sigma 120 --white 4095   a 12-bit camera in 16 bits
  heatprior denoise scans -o clean --sigma 10 --compare               a folder, with pictures to look at
  heatprior denoise a.png b.jpg -o clean --sigma 15 --fast            faster, less good
  heatprior denoise photos -o clean --noise-model camera.json         as heatprior noise --save found it
  heatprior denoise image.npy -o clean.npy --sigma map.npy            a noise level for each pixel
  heatprior denoise cells.tif -o clean.tif --error error.tif          an error bar for each pixel
  heatprior denoise volume.ome.zarr -o clean.ome.zarr --workers 4     larger than memory
"""


Adapt = Annotated[
    bool, typer.Option("--adapt", help="Fit the prior (a mixture) to each image first: better, and slower.")
]
Fast = Annotated[bool, typer.Option("--fast", help="Less good, and several times faster.")]
Best = Annotated[bool, typer.Option("--best", help="A little better, and eight times slower.")]
Scales = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Sizes to denoise at: itself, half, …  [default: as many as it holds]"),
]


class Method(StrEnum):
    """What `--method` may be."""

    hqs = "hqs"
    eb = "eb"


def denoise(
    inputs: Inputs,
    *,
    output: Output,
    sigma: Sigma = None,
    noise: Annotated[
        NoiseKind, typer.Option(help=f"What is estimated: {NOISE_HELP[0].lower()}{NOISE_HELP[1:]}")
    ] = NoiseKind.auto,
    noise_model: Annotated[
        Path | None, typer.Option(metavar="JSON", help="The noise profile of a camera, by heatprior noise --save.")
    ] = None,
    fast: Fast = False,
    best: Best = False,
    prior: Annotated[
        str | None,
        typer.Option(
            metavar="PRIOR",
            help="A shipped prior by its name, the path of one, or auto: the default blended with an adapted mixture.  "
            "[default: tuned; mixture with --adapt; fast7 with --fast, unless noise is correlated]",
        ),
    ] = None,
    method: Annotated[
        Method, typer.Option(help="Half-quadratic splitting, or one step of empirical Bayes: faster, less good.")
    ] = Method.hqs,
    adapt: Adapt = False,
    scales: Scales = None,
    white: White = None,
    error: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            help="Write the standard error of each pixel as well, a float image (.tif, .npy), and say what PSNR to "
            "expect; for several inputs or for a folder, a folder of .tif.",
        ),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Draw noisy, denoised and removed side by side, with --error errors and surprise: OUT-compare.png.",
        ),
    ] = False,
    skip_existing: SkipExisting = False,
    force: Force = False,
    scheduler: Scheduler = None,
    workers: Workers = None,
) -> None:
    """Remove Gaussian noise from images.

    Results have the type, the units and the metadata of the images, and the format of their name. Images in a folder
    keep their place below OUT. Files that cannot be denoised are reported, the rest is done, and the exit code is 1.
    Zarr stores, OME-Zarr among them, may be larger than memory: they are denoised block by block, and so is a big TIFF
    whose OUT ends in .zarr; a run that was killed goes on where it was.
    """
    quality = quality_of(fast, best)
    if is_large(inputs, output):
        from heatprior.restoration.qualities import prior_name

        others = {"--adapt": adapt, "--compare": compare, "--skip-existing": skip_existing}
        others["--noise"] = noise not in (NoiseKind.auto, NoiseKind.constant)
        others |= {"--best": best, "--noise-model": noise_model is not None, "--error": error is not None}
        name = prior or prior_name(quality)
        denoise_large(
            inputs, output, sigma=sigma, prior=name, method=method.value, white=white, scheduler=scheduler,
            workers=workers, force=force, scales=scales, others=others,
        )  # fmt: skip
        return
    if scheduler is not None or workers is not None:
        raise typer.BadParameter("--scheduler and --workers are for zarr stores; leave them out")
    from heatprior import load
    from heatprior.noise.profiles import NoiseProfile
    from heatprior.restoration.adaptation import as_mixture
    from heatprior.restoration.blending import AUTO
    from heatprior.restoration.options import Options

    level = noise_level(sigma)
    if sigma is not None and noise is not NoiseKind.auto:
        raise typer.BadParameter("--noise is for images whose noise is estimated; leave out --sigma, or --noise")
    if noise_model is not None and (sigma is not None or noise is not NoiseKind.auto):
        raise typer.BadParameter("--noise-model says what the noise is; leave out --sigma and --noise")
    profile = None if noise_model is None else NoiseProfile.load(noise_model)
    check_white(white)
    place = None if error is None else partial(errors_below, error=error, inputs=inputs, output=output)
    todo = prepared(
        inputs, output, compare=compare, read=(sigma, prior), skip_existing=skip_existing, force=force, beside=place
    )
    if todo is None:
        return
    say_if_compiling()
    if adapt and prior == AUTO:
        raise typer.BadParameter("--prior auto adapts where that helps; leave out --adapt")
    model: Any = prior
    if prior is not None and prior != AUTO:
        model = as_mixture(load(prior)) if adapt else load(prior)
    options = Options(profile or noise.value, quality, model, method.value, adapt, scales, white=white)
    carry_out(todo, partial(denoise_file, request=Request(level, options, compare, place)), output)


def quality_of(fast: bool, best: bool) -> str:
    """The word of the library for `--fast` and `--best`."""
    if fast and best:
        raise typer.BadParameter("--fast and --best exclude each other; give one of them, or none")
    return "fast" if fast else "best" if best else "default"
