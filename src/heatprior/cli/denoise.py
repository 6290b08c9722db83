"""`heatprior denoise`: files and folders without their noise, of the type and with the metadata that they came with."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

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
    picture_beside,
    prepared,
)
from heatprior.cli.large import Scheduler, Workers, denoise_large, is_large
from heatprior.cli.noise import NOISE_HELP, NoiseKind, in_words
from heatprior.cli.reports import say_if_compiling, warnings_in_one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from heatprior.cli.jobs import Job
    from heatprior.images import ImageFile
    from heatprior.noise.estimation import NoiseReport
    from heatprior.noise.profiles import NoiseProfile
    from heatprior.priors.protocol import Prior

PATCH = 7  # pixels along the side of the patches by which noise is estimated
EXAMPLES = """\b
Examples:
  heatprior denoise noisy.png -o clean.png                            the noise is estimated
  heatprior denoise noisy.png -o clean.png --sigma 25
  heatprior denoise stack.tif -o clean.tif --sigma 120 --white 4095   a 12-bit camera in 16 bits
  heatprior denoise scans -o clean --sigma 10 --compare               a folder, with pictures to look at
  heatprior denoise a.png b.jpg -o clean --sigma 15 --fast            faster, less good
  heatprior denoise photos -o clean --noise-model camera.json         as heatprior noise --save found it
  heatprior denoise image.npy -o clean.npy --sigma map.npy            a noise level for each pixel
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


class DenoisingOptions(NamedTuple):
    """How each image is denoised."""

    sigma: float | NDArray[Any] | None  # None: estimated
    noise: str | NoiseProfile
    quality: str
    prior: Prior | None  # None: the one that belongs to the quality
    method: str
    adapt: bool
    scales: int | None
    white: float | None
    compare: bool


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
            help="A shipped prior by its name, or the path of a prior.  "
            "[default: tuned; mixture with --adapt and for correlated noise; fast7 with --fast]",
        ),
    ] = None,
    method: Annotated[
        Method, typer.Option(help="Half-quadratic splitting, or one step of empirical Bayes: faster, less good.")
    ] = Method.hqs,
    adapt: Adapt = False,
    scales: Scales = None,
    white: White = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Draw noisy, denoised and removed beside each other: OUT-compare.png.")
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
        others |= {"--best": best, "--noise-model": noise_model is not None}
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

    level = noise_level(sigma)
    if sigma is not None and noise is not NoiseKind.auto:
        raise typer.BadParameter("--noise is for images whose noise is estimated; leave out --sigma, or --noise")
    if noise_model is not None and (sigma is not None or noise is not NoiseKind.auto):
        raise typer.BadParameter("--noise-model says what the noise is; leave out --sigma and --noise")
    profile = None if noise_model is None else NoiseProfile.load(noise_model)
    check_white(white)
    todo = prepared(inputs, output, compare=compare, read=(sigma, prior), skip_existing=skip_existing, force=force)
    if todo is None:
        return
    say_if_compiling()
    model = None if prior is None else as_mixture(load(prior)) if adapt else load(prior)
    found = profile or noise.value
    options = DenoisingOptions(level, found, quality, model, method.value, adapt, scales, white, compare)
    carry_out(todo, partial(_denoise, settings=options), output)


def quality_of(fast: bool, best: bool) -> str:
    """The word of the library for `--fast` and `--best`."""
    if fast and best:
        raise typer.BadParameter("--fast and --best exclude each other; give one of them, or none")
    return "fast" if fast else "best" if best else "default"


def _denoise(job: Job, progress: Callable[[float], None], settings: DenoisingOptions) -> str:
    """Read, denoise and write one image; returns a line that says what was done."""
    from heatprior.errors import InvalidInputError
    from heatprior.images import check_writable, read_image, write_image
    from heatprior.restoration.denoising import denoise_and_report

    start = time.perf_counter()
    image = read_image(job.source)
    check_writable(job.target, image)
    try:
        with warnings_in_one_line(job.source):
            pixels, report = denoise_and_report(
                image.values(),
                settings.sigma,
                noise=settings.noise,
                quality=settings.quality,
                prior=settings.prior,
                method=settings.method,
                adapt=settings.adapt,
                scales=settings.scales,
                channel_axis=image.channel_axis,
                white=settings.white or image.white,
                progress=progress,
            )
    except InvalidInputError as error:
        raise InvalidInputError(f"cannot denoise {job.source}: {error}") from error
    write_image(job.target, pixels, like=image)
    if settings.compare:
        _draw(image, pixels, picture_beside(job.target))
    if report is not None:
        _warn_of_doubts(job, image, report)
    seconds = time.perf_counter() - start
    found = "" if report is None else f"; noise {_in_words(report)}"
    return f"wrote {job.target}: {image.describe()}, from {job.source}, {seconds:.1f} s{found}"


def _warn_of_doubts(job: Job, image: ImageFile, report: NoiseReport) -> None:
    """What makes the estimated noise doubtful, each reason once for all channels."""
    from heatprior.noise.estimation import doubts_of
    from heatprior.pixels.inputs import as_channels, in_unit_range

    channels = as_channels(image.values(), image.channel_axis)
    flat = channels.reshape(-1, *channels.shape[-2:])
    found = [
        doubt
        for channel, pixels in zip(report.channels, flat, strict=True)
        for doubt in doubts_of(channel, in_unit_range(pixels, report.white), PATCH)
    ]
    for doubt in dict.fromkeys(found):
        typer.echo(f"heatprior: warning: {job.source}: {doubt}", err=True)


def _in_words(report: NoiseReport) -> str:
    """What was estimated; of many channels, the lowest and the highest level."""
    if len(report.channels) == 1:
        return in_words(report.channels[0], report.white)
    kinds = ", ".join(dict.fromkeys(report.models))
    return f"{kinds}, sigma {report.sigma.min():.3g} to {report.sigma.max():.3g}"


def _draw(image: ImageFile, pixels: NDArray[Any], path: Path) -> None:
    """Compare the image; of a stack, the one in its middle."""
    from heatprior.pictures.comparisons import draw_removed

    frame = 3 if image.colour else 2
    middle = tuple(count // 2 for count in image.pixels.shape[: image.pixels.ndim - frame])
    draw_removed(image.pixels[middle], pixels[middle], path)
