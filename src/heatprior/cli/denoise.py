"""`heatprior denoise`: files, folders and stores without their noise, of the type and with the metadata they had."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from heatprior.cli import batches
from heatprior.errors import InvalidInputError
from heatprior.files import make_folder
from heatprior.presets import DEFAULT, PRESETS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from heatprior.images import ImageFile
    from heatprior.kernels.patches import Progress
    from heatprior.noise.defects import Defects
    from heatprior.noise.estimation import NoiseReport
    from heatprior.noise.profiles import NoiseProfile
    from heatprior.noise.stabilisation import PoissonGaussian
    from heatprior.restoration.denoising import Settings
    from heatprior.restoration.error_bars import PredictedPsnr
    from heatprior.restoration.surprise import Surprise

KEEP = "+outliers"
STORE_FILES = ("zarr.json", ".zgroup", ".zarray", ".zattrs")
EXAMPLES = {
    "denoise": """\
  heatprior denoise photo.jpg                                         estimates the noise; writes photo-denoised.jpg
  heatprior denoise noisy.png -o clean.png --sigma 25
  heatprior denoise stack.tif -o clean.tif --sigma 120 --white 4095   12 bits in a 16-bit file
  heatprior denoise scans -o clean --sigma 10 --compare               a folder, with pictures to look at
  heatprior denoise a.png b.jpg -o clean --quality fast               several times faster
  heatprior denoise photo.jpg -o clean.jpg --strength 0.7             remove less than what is found
  heatprior denoise image.npy -o clean.npy --sigma map.npy            a noise level for each pixel
  heatprior denoise field.fits --noise 0.7,4.2,1000                   gain, read noise and black level are known
  heatprior denoise cells.tif -o clean.tif --error error.tif          an error bar for each pixel
  heatprior denoise stack.tif -o clean.tif --volume                   slices of a volume together; a film: --volume t
  heatprior denoise volume.ome.zarr -o clean.ome.zarr --workers 4     larger than memory
"""
}


def denoise(
    inputs: batches.Inputs,
    *,
    output: batches.Output = None,
    sigma: batches.Sigma = None,
    noise: Annotated[
        str,
        typer.Option(
            metavar="KIND|FILE|GAIN,READ,BLACK",
            help="Noise to estimate: constant, affine (variance = a × brightness + b), map, camera, or auto; or the "
            "noise profile of a camera (.json), saved by hp.NoiseProfile; or the gain (grey levels per photon), the "
            "read noise and the black level, in the units of the file. Append +outliers (auto+outliers) to keep hot "
            "and dead pixels, such as stars of one pixel.",
        ),
    ] = "auto",
    volume: Annotated[
        str | None,
        typer.Option(
            metavar="[z|t]",
            help="Denoise the slices of a stack together, along depth or time.  [without z or t: depth, if the file "
            "has it, or its one axis]",
        ),
    ] = None,
    strength: Annotated[
        float, typer.Option(metavar="F", help="Factor on the noise level found: 0.5 keeps more grain, 2 is smoother.")
    ] = 1.0,
    quality: batches.Quality = DEFAULT,
    prior: batches.OwnPrior = None,
    white: batches.White = None,
    error: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            help="Also write the standard error of each pixel, a float image (.tif, .npy), and print the expected "
            "PSNR; a folder if there are several inputs.",
        ),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Draw noisy, denoised and removed noise side by side (with --error, also errors and surprise): "
            "OUT-compare.png.",
        ),
    ] = False,
    force: batches.Force = None,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N|ADDRESS",
            help="For zarr stores: number of processes, or address of a dask scheduler (tcp://host:8786).  "
            "[default: threads]",
        ),
    ] = None,
) -> None:
    """Remove noise from images.

    Results keep the type, units and metadata of the images; the suffix of OUT gives the format. Subfolders are kept.
    Files that cannot be denoised are reported and skipped; the exit code is then 1.
    Zarr stores (OME-Zarr included), and TIFF files whose OUT ends in .zarr, may be larger than memory: they are
    denoised block by block, and an interrupted run resumes where it stopped.
    """
    from heatprior.images import name_result
    from heatprior.restoration.denoising import Settings

    keep_outliers, noise = noise.endswith(KEEP), noise.removesuffix(KEEP)
    if volume not in (None, "any", "z", "t"):
        raise typer.BadParameter(f"--volume is {volume!r}; expected z, t, or nothing")
    if volume is not None and error is not None:
        raise typer.BadParameter("errors are estimated for images; leave out --error, or --volume")
    if _is_store(inputs, output):
        output = output or inputs[0].with_name(name_result(inputs[0].name, "denoised"))
        others = {
            "--compare": compare,
            "--skip-existing": force is False,
            "--error": error is not None,
            "--volume": volume is not None,
            "--noise": noise not in ("auto", "constant"),
            "--strength": strength != 1.0,
            f"--quality {quality}": not PRESETS[quality].is_local,
        }
        named = str(Path(prior).absolute()) if prior and Path(prior).is_file() else prior  # workers may be elsewhere
        settings = Settings(quality=quality, prior=named, white=white, keep_outliers=keep_outliers)
        for name in (name for name, given in others.items() if given):
            raise typer.BadParameter(
                f"{name} needs the whole image, and a zarr store is denoised in blocks; leave it out"
            )
        _denoise_store(inputs, output, settings, sigma=sigma, workers=workers, force=bool(force))
        return
    if workers is not None:
        raise typer.BadParameter("--workers is for zarr stores; leave it out")
    from heatprior import load

    level = batches.read_sigma(sigma)
    if sigma is not None and noise != "auto":
        raise typer.BadParameter("--sigma says how much noise there is; leave out --sigma, or --noise")
    kind = _read_noise(noise)
    if strength != 1.0 and (sigma is not None or not isinstance(kind, str)):
        raise typer.BadParameter("--strength is for noise that is estimated; leave it out, or give another --sigma")
    batches.check_white(white)
    place = None if error is None else partial(batches.error_path, error=error, inputs=inputs, output=output)
    todo = batches.prepare(
        inputs, output, done="denoised", compare=compare, read=(sigma, prior, noise), force=force, beside=place,
    )  # fmt: skip
    batches.announce_compiling()
    chosen = None if prior is None else load(prior)
    settings = Settings(kind, quality, chosen, white=white, strength=strength, keep_outliers=keep_outliers)
    request = Request(level, settings, compare, place, volume)
    for job, attempt in batches.run_jobs(todo, output):
        with attempt as progress:
            batches.say(denoise_file(job, progress, request))


def _read_noise(noise: str) -> str | NoiseProfile | PoissonGaussian:
    """The kind of noise that --noise names, the profile in the file that it names, or the counts that it gives."""
    from heatprior.noise.profiles import NoiseProfile
    from heatprior.noise.stabilisation import PoissonGaussian

    if noise in batches.NOISES:
        return noise
    if noise[:1].isdigit() and not Path(noise).exists():
        try:
            return PoissonGaussian(*map(float, noise.split(",")))
        except (TypeError, ValueError) as error:
            raise typer.BadParameter(f"--noise is {noise!r}; expected GAIN,READ,BLACK, such as 0.5,3,100") from error
    if not Path(noise).suffix:
        raise typer.BadParameter(
            f"--noise is {noise!r}; expected {', '.join(batches.NOISES)}, a noise profile (.json), or GAIN,READ,BLACK"
        )
    return NoiseProfile.load(Path(noise))


class Request(NamedTuple):
    """How each image is denoised, and what is written."""

    sigma: float | NDArray[Any] | None  # None: estimated
    settings: Settings
    compare: bool
    error: Callable[[batches.Job], Path] | None  # where the errors of an image go, if they are wanted
    volume: str | None = None  # the axis along which slices are denoised together, or "any"


class Result(NamedTuple):
    """A denoised image, its noise if that was estimated, and the errors if they were asked for."""

    pixels: NDArray[Any]
    noise: NoiseReport | None
    defects: Defects
    error: NDArray[Any] | None = None
    predicted: PredictedPsnr | None = None


def denoise_file(job: batches.Job, progress: Progress, request: Request) -> str:
    """Read, denoise and write one image; returns a line that says what was done."""
    from heatprior.images import check_writable, read_image, write_image
    from heatprior.restoration.denoising import plan
    from heatprior.restoration.error_bars import denoise_with_error

    start = time.perf_counter()
    image = read_image(job.source)
    check_writable(job.target, image)
    if request.error is not None:
        check_writable(request.error(job), _error_image(image))
    with batches.collect_warnings(f"cannot denoise {job.source}") as warned:
        depth = None if request.volume is None else image.depth_axis(request.volume.upper())
        settings = replace(request.settings, channel_axis=image.channel_axis, depth_axis=depth)
        sigma = image.sigma if request.sigma is None and settings.noise == "auto" else request.sigma
        if request.error is None:
            made, rest = plan(image.values(), sigma, settings, progress)
            result = Result(made.denoise(progress=rest), made.report, made.defects)
        else:
            found = denoise_with_error(image.values(), sigma, settings, progress)
            result = Result(found.pixels, found.noise, found.defects, found.error, found.predicted)
    if request.error is not None and result.error is not None:
        # Before the image, which counts as done once it is there (--skip-existing).
        make_folder(request.error(job).parent)
        write_image(request.error(job), result.error, like=_error_image(image))
    write_image(job.target, result.pixels, like=image)
    surprise = None if request.error is None else _surprise(image, result, request)
    if surprise is not None and surprise.reason:
        warned.append(f"{surprise.reason}; errors may be larger")
    if result.noise is not None and not warned:
        from heatprior.noise.estimation import find_doubts

        warned += chain.from_iterable(find_doubts(result.noise, image.values(), image.channel_axis))
    batches.report_warning(job.source, warned)
    if request.compare:
        _draw(image, result, None if surprise is None else surprise.p, batches.picture_beside(job.target))
    seconds = time.perf_counter() - start
    words = _describe_rest(result, request, from_file=sigma is not request.sigma)
    beside = "" if request.error is None else f" and {request.error(job)}"
    beside += f" and {batches.picture_beside(job.target).name}" if request.compare else ""
    return f"wrote {job.target}{beside}: {image.describe()}, from {job.source}, {seconds:.1f} s{words}"


def _surprise(image: ImageFile, result: Result, request: Request) -> Surprise | None:
    """How unlike photographs the image (of a stack, the middle one) is; None if that cannot be computed."""
    import numpy as np

    from heatprior.restoration.surprise import surprise

    level = request.sigma if result.noise is None else result.noise.sigma
    if level is None or (result.noise is not None and {"camera", "none"} & set(result.noise.models)):
        return None
    pixels = image.values()[image.middle]
    # Averaging colours divides the noise of one channel by the root of three.
    grey, spread = (pixels.mean(axis=-1), 3.0**-0.5) if image.colour else (pixels, 1.0)
    try:
        return surprise(grey, float(np.median(level)) * spread, white=request.settings.white)
    except InvalidInputError:  # it is smaller than a patch, say
        return None


def _error_image(image: ImageFile) -> ImageFile:
    """An empty float image of the same size, of no particular format: missing pixels are NaN."""
    import numpy as np

    bare = replace(image, path=image.path.with_suffix(""), others=None, native=None, missing=None, sigma=None)
    return replace(bare, pixels=np.empty(image.pixels.shape, np.float32))


def _describe_rest(result: Result, request: Request, *, from_file: bool) -> str:
    """What was found and what was done about it, and the expected PSNR, as far as they are known."""
    words = "; noise taken from its ERR extension" if from_file else "; noise as given" if result.noise is None else ""
    words += f"; {result.defects.describe_mending()}" if result.defects else ""
    if result.noise is not None:
        words += f"; {_describe_noise(result.noise, request.settings.strength)}"
    if result.predicted is not None and isfinite(result.predicted.psnr):
        words += f"; expected PSNR {result.predicted.psnr:.1f} ± {result.predicted.stderr:.1f} dB"
    return words


def _describe_noise(report: NoiseReport, strength: float) -> str:
    """What was found, what was done, and what to do if that is not what one sees."""
    if not report.is_none:
        times = "" if strength == 1.0 else f", at strength {strength:g}"
        return f"removed {report.describe_kind()}{times}"
    if strength > 1.0:
        return f"no noise found, smoothed a little (strength {strength:g})"
    unchanged = "the rest is unchanged" if report.defects else "picture unchanged"
    return f"no noise found, {unchanged}; if you see noise: --strength 2 or --sigma {report.remedy:g}"


def _draw(image: ImageFile, result: Result, likeness: NDArray[Any] | None, path: Path) -> None:
    """Draw the comparison; of a stack, of the middle image."""
    from heatprior.pictures.figures import draw_denoising

    error = None if result.error is None else result.error[image.middle]
    noisy, clean = image.pixels[image.middle], result.pixels[image.middle]
    draw_denoising(noisy, clean, path, error=error, likeness=likeness)


def _is_store(inputs: Sequence[Path], output: Path | None) -> bool:
    """Whether a zarr store is read, or written."""
    paths = [*inputs, *([] if output is None else [output])]
    return any(path.suffix == ".zarr" or any((path / mark).is_file() for mark in STORE_FILES) for path in paths)


def _denoise_store(
    inputs: Sequence[Path], output: Path, settings: Settings, *, sigma: str | None, workers: str | None, force: bool
) -> None:
    """Denoise one store, or one TIFF into a store, block by block."""
    if len(inputs) != 1:
        raise typer.BadParameter("a zarr store is denoised by itself; give one input")
    try:
        from heatprior.large.files import denoise_store
    except ImportError as error:
        raise InvalidInputError(f"zarr stores need {error.name}; pip install 'heatprior[large]'") from error

    level = batches.read_sigma(sigma)
    if not (level is None or isinstance(level, float)):
        raise typer.BadParameter(f"--sigma is {sigma!r}; for a zarr store expected a positive number")
    batches.announce_compiling()
    scheduler, processes = _parse_workers(workers)
    start = time.perf_counter()
    with show_blocks() as report:
        done = denoise_store(
            inputs[0], output, settings, level, scheduler=scheduler, workers=processes, force=force, report=report
        )
    seconds = time.perf_counter() - start
    levels = "; ".join(
        f"{name or 'noise'}: "
        + (f"sigma {', '.join(f'{level:.4g}' for level in found)}" if any(found) else "none found, pixels unchanged")
        for name, found in done.sigmas.items()
    )
    earlier = f", {done.found} of them by an earlier run" if done.found else ""
    typer.echo(f"wrote {output}: {done.blocks} blocks{earlier}, from {inputs[0]}, {seconds:.1f} s; {levels}")


def _parse_workers(workers: str | None) -> tuple[str | None, int | None]:
    """The scheduler, or the number of processes, that --workers gives."""
    if workers is None:
        return None, None
    if workers.isascii() and workers.isdigit() and int(workers) > 0:
        return None, int(workers)
    if "://" in workers:
        return workers, None
    raise typer.BadParameter(
        f"--workers is {workers!r}; expected a number of processes, or the address of a dask scheduler (tcp://host:8786)"
    )


@contextmanager
def show_blocks() -> Iterator[Callable[[int, int], None]]:
    """A progress bar of blocks on a terminal; yields a function that sets how many of how many are done."""
    from tqdm import tqdm

    shape = "{percentage:3.0f} %|{bar}| {n_fmt}/{total_fmt} blocks, {rate_fmt}, {remaining} to go"
    with tqdm(leave=False, disable=None, unit=" blocks", bar_format=shape) as bar:

        def report(done: int, count: int) -> None:
            if not bar.total:  # what an earlier run did does not count as speed
                bar.total, bar.n, bar.initial, bar.last_print_n = count, done, done, done
            bar.update(done - bar.n)

        yield report
