"""`heatprior denoise`: files and folders without their noise, of the type and with the metadata that they came with."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from heatprior.cli.noise import NOISE_HELP, NoiseKind, in_words
from heatprior.cli.reports import bar_over, say_if_compiling, warnings_in_one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from heatprior.cli.jobs import Job
    from heatprior.images import ImageFile
    from heatprior.noise.estimation import NoiseReport
    from heatprior.priors.protocol import Prior

SOME_FAILED = 1
EXAMPLES = """\b
Examples:
  heatprior denoise noisy.png -o clean.png                            the noise is estimated
  heatprior denoise noisy.png -o clean.png --sigma 25
  heatprior denoise stack.tif -o clean.tif --sigma 120 --white 4095   a 12-bit camera in 16 bits
  heatprior denoise scans -o clean --sigma 10 --compare               a folder, with pictures to look at
  heatprior denoise a.png b.jpg -o clean --sigma 15 --method eb       faster, less good
  heatprior denoise image.npy -o clean.npy --sigma map.npy            a noise level for each pixel
"""


Adapt = Annotated[
    bool, typer.Option("--adapt", help="Fit the prior (a mixture) to each image first: better, and slower.")
]
Scales = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, max=2, help="Scales to denoise at, 1 or 2.  [default: what suits the prior]"),
]


class Method(StrEnum):
    """What `--method` may be."""

    hqs = "hqs"
    eb = "eb"


class DenoisingOptions(NamedTuple):
    """How each image is denoised."""

    sigma: float | NDArray[Any] | None  # None: estimated
    noise: str
    prior: Prior
    method: str
    adapt: bool
    scales: int | None
    white: float | None
    compare: bool


def denoise(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="INPUT",
            readable=False,  # an unreadable file is reported like any other bad one
            help="Images (.png, .jpg, .tif, .npy), or folders of them.",
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="OUT", help="A file; for several inputs or for a folder, a folder."),
    ],
    sigma: Annotated[
        str | None,
        typer.Option(
            metavar="S",
            help="Standard deviation of the noise, in the units of the image: a number, or an image of numbers (.npy, "
            ".tif), one for each pixel.  [default: estimated]",
        ),
    ] = None,
    noise: Annotated[
        NoiseKind, typer.Option(help=f"What is estimated: {NOISE_HELP[0].lower()}{NOISE_HELP[1:]}")
    ] = NoiseKind.auto,
    prior: Annotated[
        str,
        typer.Option(
            metavar="PRIOR",
            help="A shipped prior by its name, or the path of a prior. Noise is always estimated with patch7.",
        ),
    ] = "mixture",
    method: Annotated[
        Method, typer.Option(help="Half-quadratic splitting, or one step of empirical Bayes: faster, less good.")
    ] = Method.hqs,
    adapt: Adapt = False,
    scales: Scales = None,
    white: Annotated[
        float | None,
        typer.Option(metavar="W", help="The value that is full scale.  [default: 255, 65535 or 1.0, by type]"),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Draw noisy, denoised and removed beside each other: OUT-compare.png.")
    ] = False,
    skip_existing: Annotated[
        bool, typer.Option("--skip-existing", help="Leave out images whose output exists, as after an interruption.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace outputs that exist; never an input.")] = False,
) -> None:
    """Remove Gaussian noise from images.

    Results have the type, the units and the metadata of the images, and the format of their name. Images in a folder
    keep their place below OUT. Files that cannot be denoised are reported, the rest is done, and the exit code is 1.
    """
    from heatprior import load
    from heatprior.cli.jobs import check_targets, plan, without_finished
    from heatprior.restoration.adaptation import as_mixture

    level = None if sigma is None else _level(sigma)
    if sigma is not None and noise is not NoiseKind.auto:
        raise typer.BadParameter("--noise is for images whose noise is estimated; leave out --sigma, or --noise")
    if white is not None and not (math.isfinite(white) and white > 0):
        raise typer.BadParameter(f"--white is {white:g}; expected the positive value that stands for full scale")
    if skip_existing and force:
        raise typer.BadParameter("--skip-existing keeps outputs that exist and --force replaces them; give one of them")
    todo = plan(inputs, output)
    if skip_existing:
        todo = without_finished(todo)
        if not todo.jobs and not todo.failures:
            typer.echo("nothing left to do: every output exists")
            return
    pictures = [_picture(job.target) for job in todo.jobs] if compare else []
    check_targets(todo, pictures, [path for path in (Path(sigma or ""), Path(prior)) if path.is_file()], force=force)
    say_if_compiling()
    model = as_mixture(load(prior)) if adapt else load(prior)
    settings = DenoisingOptions(level, noise.value, model, method.value, adapt, scales, white, compare)
    if todo.single:
        with bar_over(1) as (progress, say):
            say(_denoise(todo.jobs[0], settings, progress))
        return
    for reason in todo.failures:
        typer.echo(f"heatprior: error: {reason}", err=True)
    failures = todo.failures + _denoise_all(todo.jobs, settings, output)
    if failures:
        typer.echo(f"heatprior: {len(failures)} of {len(todo.jobs) + len(todo.failures)} failed, see above", err=True)
        raise typer.Exit(SOME_FAILED)


def _denoise_all(jobs: list[Job], settings: DenoisingOptions, output: Path) -> list[str]:
    """Denoise every file that can be; report and return the failures."""
    from heatprior.cli.jobs import remove_empty
    from heatprior.errors import HeatpriorError
    from heatprior.files import make_folder

    failures = []
    made = not output.is_dir()
    try:
        with bar_over(len(jobs)) as (progress, say):
            for number, job in enumerate(jobs):
                try:
                    make_folder(job.target.parent)
                    say(_denoise(job, settings, partial(_advance, progress, number)))
                except (HeatpriorError, MemoryError) as error:
                    reason = str(error) or "not enough memory"
                    failures.append(reason if str(job.source) in reason else f"{job.source}: {reason}")
                    say(f"heatprior: error: {' '.join(failures[-1].split())}", err=True)
    finally:
        if made:
            remove_empty(output)
    return failures


def _advance(progress: Callable[[float], None], done: int, fraction: float) -> None:
    progress(done + fraction)


def _denoise(job: Job, settings: DenoisingOptions, progress: Callable[[float], None]) -> str:
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
        _draw(image, pixels, _picture(job.target))
    seconds = time.perf_counter() - start
    found = "" if report is None else f"; noise {_in_words(report)}"
    return f"wrote {job.target}: {image.describe()}, from {job.source}, {seconds:.1f} s{found}"


def _in_words(report: NoiseReport) -> str:
    """What was estimated; of many channels, the lowest and the highest level."""
    if len(report.channels) == 1:
        return in_words(report.channels[0], report.white)
    kinds = ", ".join(dict.fromkeys(report.models))
    return f"{kinds}, sigma {report.sigma.min():.3g} to {report.sigma.max():.3g}"


def _level(sigma: str) -> float | NDArray[Any]:
    """The noise level: a number, or the pixels of a file."""
    from heatprior.images import read_image

    try:
        number = float(sigma)
    except ValueError:
        if not Path(sigma).suffix:
            raise typer.BadParameter(f"--sigma is {sigma!r}; expected a number, or a file (.npy, .tif)") from None
        return read_image(Path(sigma)).pixels
    if not (math.isfinite(number) and number > 0):
        raise typer.BadParameter(f"--sigma is {sigma}; expected a positive number, in the units of the image")
    return number


def _picture(target: Path) -> Path:
    return target.with_name(f"{target.stem}-compare.png")


def _draw(image: ImageFile, pixels: NDArray[Any], path: Path) -> None:
    """Compare the image; of a stack, the one in its middle."""
    from heatprior.pictures.comparisons import draw_removed

    frame = 3 if image.colour else 2
    middle = tuple(count // 2 for count in image.pixels.shape[: image.pixels.ndim - frame])
    draw_removed(image.pixels[middle], pixels[middle], path)
