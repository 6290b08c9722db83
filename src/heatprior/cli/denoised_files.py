"""What `heatprior denoise` does with each file: read, denoise, write, with errors and pictures if they are wanted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from heatprior.cli.batches import picture_beside
from heatprior.cli.noise import in_words
from heatprior.cli.reports import warnings_in_one_line

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from heatprior.cli.jobs import Job
    from heatprior.images import ImageFile
    from heatprior.noise.estimation import NoiseReport
    from heatprior.restoration.options import Options
    from heatprior.restoration.predicted_quality import PredictedPsnr
    from heatprior.restoration.surprise import Surprise

PATCH = 7  # pixels along the side of the patches by which noise is estimated


class Request(NamedTuple):
    """How each image is denoised, and what is made of it."""

    sigma: float | NDArray[Any] | None  # None: estimated
    options: Options
    compare: bool
    error: Callable[[Job], Path] | None  # where the errors of an image go, if they are wanted


class Result(NamedTuple):
    """An image without its noise, what was found of that if it was estimated, and what was asked for besides."""

    pixels: NDArray[Any]
    noise: NoiseReport | None
    error: NDArray[Any] | None = None
    predicted: PredictedPsnr | None = None


def denoise_file(job: Job, progress: Callable[[float], None], request: Request) -> str:
    """Read, denoise and write one image; returns a line that says what was done."""
    from heatprior.errors import InvalidInputError
    from heatprior.files import make_folder
    from heatprior.images import check_writable, read_image, write_image

    start = time.perf_counter()
    image = read_image(job.source)
    check_writable(job.target, image)
    if request.error is not None:
        check_writable(request.error(job), _holding_errors(image))
    try:
        with warnings_in_one_line(job.source):
            result = _denoised(image, progress, request)
    except InvalidInputError as error:
        raise InvalidInputError(f"cannot denoise {job.source}: {error}") from error
    if request.error is not None and result.error is not None:
        # Before the image, which counts as done once it is there (--skip-existing).
        make_folder(request.error(job).parent)
        write_image(request.error(job), result.error, like=_holding_errors(image))
    write_image(job.target, result.pixels, like=image)
    surprise = None if request.error is None else _surprise(image, result, request)
    if surprise is not None and surprise.reason:
        typer.echo(f"heatprior: warning: {job.source}: {surprise.reason}; errors may be larger", err=True)
    if request.compare:
        _draw(image, result, None if surprise is None else surprise.p, picture_beside(job.target))
    if result.noise is not None:
        _warn_of_doubts(job, image, result.noise)
    seconds = time.perf_counter() - start
    return f"wrote {job.target}: {image.describe()}, from {job.source}, {seconds:.1f} s{_besides(result)}"


def _denoised(image: ImageFile, progress: Callable[[float], None], request: Request) -> Result:
    from heatprior.restoration import denoising, denoising_errors

    white = request.options.white or image.white
    options = replace(request.options, channel_axis=image.channel_axis, white=white)
    if request.error is None:
        return Result(*denoising.denoise_and_report(image.values(), request.sigma, options, progress))
    found = denoising_errors.denoise_with_error(image.values(), request.sigma, options, progress)
    return Result(found.pixels, found.noise, found.error, found.predicted)


def _surprise(image: ImageFile, result: Result, request: Request) -> Surprise | None:
    """How unlike photographs the image is, or the middle one of a stack; None where that cannot be told.

    Of colours brightness is looked at, whose noise is that of one of three channels over the root of three.
    """
    import numpy as np

    from heatprior.errors import InvalidInputError
    from heatprior.restoration.surprise import surprise

    level = request.sigma if result.noise is None else result.noise.sigma
    if level is None or (result.noise is not None and "correlated" in result.noise.models):
        return None
    pixels = image.values()[_middle(image)]
    grey, spread = (pixels.mean(axis=-1), 3.0**-0.5) if image.colour else (pixels, 1.0)
    try:
        return surprise(grey, float(np.median(level)) * spread, white=request.options.white or _white(image))
    except InvalidInputError:  # it is smaller than a patch, say
        return None


def _white(image: ImageFile) -> float | None:
    """Full scale of what is looked at, which is of floats if it was mixed from integers."""
    import numpy as np

    if image.white is not None or image.pixels.dtype.kind == "f":
        return image.white
    return float(np.iinfo(image.pixels.dtype).max)


def _holding_errors(image: ImageFile) -> ImageFile:
    """An image of floats of the same size, as if it came from no format: missing pixels are NaN."""
    import numpy as np

    pixels = np.empty(image.pixels.shape, np.float32)
    return replace(
        image, path=image.path.with_suffix(""), pixels=pixels, others=None, native=None, missing=None, full_scale=None
    )


def _besides(result: Result) -> str:
    """What else is known of the result."""
    words = "" if result.noise is None else f"; noise {_in_words(result.noise)}"
    if result.predicted is not None and isfinite(result.predicted.psnr):
        words += f"; expected PSNR {result.predicted.psnr:.1f} ± {result.predicted.stderr:.1f} dB"
    return words


def _warn_of_doubts(job: Job, image: ImageFile, report: NoiseReport) -> None:
    """What makes the estimated noise doubtful, each reason once for all channels."""
    from heatprior.noise.channel_noise import doubts_of
    from heatprior.noise.doubts import one_of_each
    from heatprior.pixels.inputs import as_channels, in_unit_range

    channels = as_channels(image.values(), image.channel_axis)
    flat = channels.reshape(-1, *channels.shape[-2:])
    found = [
        doubt
        for channel, pixels in zip(report.channels, flat, strict=True)
        for doubt in doubts_of(channel, in_unit_range(pixels, report.white), PATCH)
    ]
    for doubt in one_of_each(found):
        typer.echo(f"heatprior: warning: {job.source}: {doubt}", err=True)


def _in_words(report: NoiseReport) -> str:
    """What was estimated; of many channels, the lowest and the highest level."""
    if len(report.channels) == 1:
        return in_words(report.channels[0], report.white)
    kinds = ", ".join(dict.fromkeys(report.models))
    return f"{kinds}, sigma {report.sigma.min():.3g} to {report.sigma.max():.3g}"


def _draw(image: ImageFile, result: Result, likeness: NDArray[Any] | None, path: Path) -> None:
    """Compare the image; of a stack, the one in its middle."""
    from heatprior.pictures.comparisons import draw_removed

    middle = _middle(image)
    error = None if result.error is None else result.error[middle]
    draw_removed(image.pixels[middle], result.pixels[middle], path, error=error, likeness=likeness)


def _middle(image: ImageFile) -> tuple[int, ...]:
    """Which image of a stack is looked at."""
    frame = 3 if image.colour else 2
    return tuple(count // 2 for count in image.pixels.shape[: image.pixels.ndim - frame])
