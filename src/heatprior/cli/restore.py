"""`heatprior deblur`, `inpaint` and `upscale`: files and folders, restored."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from heatprior.cli import batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from heatprior.arrays import FloatArray
    from heatprior.images import ImageFile
    from heatprior.kernels.patches import Progress

EXAMPLES = {
    "deblur": """\
  heatprior deblur photo.png -o sharp.png --gaussian 1.6          slightly out of focus
  heatprior deblur photo.png -o sharp.png --motion 15,30          15 pixels long, 30° up from the right
  heatprior deblur photo.jpg -o sharp.png --kernel psf.tif --sigma 2 --compare
""",
    "inpaint": """\
  heatprior inpaint photo.png --mask scratches.png -o whole.png      what is white in the mask is filled in
  heatprior inpaint map.npy -o whole.npy                             NaN, and pixels that the file declares missing
  heatprior inpaint photo.png --mask text.png -o whole.png --sigma 5   and denoises all others
""",
    "upscale": """\
  heatprior upscale photo.png -o large.png                   twice as wide and high
  heatprior upscale photo.png -o large.png --factor 3 --compare
  heatprior upscale photo.png -o large.png --gaussian 1.2    if the lens was softer than a bicubic reduction
""",
}
LARGEST = 8  # factor of enlargement
Compare = Annotated[
    bool, typer.Option("--compare", help="Draw the image before and after side by side: OUT-compare.png.")
]


class Task(NamedTuple):
    """What is done to each image."""

    verb: str
    done: str  # in the names of results
    restore: Callable[..., NDArray[Any]]  # the values, and sigma, prior, channel_axis, white, progress → the result
    factor: int = 1  # how much larger the result is


class Request(NamedTuple):
    """What every one of the three commands is asked for: the options that they share, as typer reads them."""

    inputs: batches.Inputs
    output: batches.Output = None
    sigma: batches.Sigma = None
    prior: batches.PriorName = "tuned"
    white: batches.White = None
    compare: Compare = False
    force: batches.Force = None


SHARED = {
    name: (kind, Request._field_defaults.get(name, Parameter.empty))
    for name, kind in get_type_hints(Request, include_extras=True).items()
}
with_shared_options = batches.spread_options("request", SHARED, Request)
KeptSigma = Annotated[
    str | None, typer.Option(metavar="S", help=f"{batches.SIGMA}  [default: all other pixels are kept]")
]


def restore_files(request: Request, task: Task, *read: str | None) -> None:
    """Restore every file; `read` may name files that are read besides, and must stay."""
    from heatprior import load

    level = batches.read_sigma(request.sigma)
    batches.check_white(request.white)
    todo = batches.prepare(
        request.inputs, request.output, done=task.done, compare=request.compare,
        read=(request.sigma, request.prior, *read), force=request.force,
    )  # fmt: skip
    batches.announce_compiling()
    prior = load(request.prior)
    for job, attempt in batches.run_jobs(todo, request.output):
        with attempt as progress:
            batches.say(_restore(job, progress, task, request, sigma=level, prior=prior))


def _restore(job: batches.Job, progress: Progress, task: Task, request: Request, **options: Any) -> str:
    """Read, restore and write one image; returns a line that says what was done."""
    from heatprior.images import check_writable, read_image, write_image

    start = time.perf_counter()
    image = read_image(job.source)
    result = image.enlarge(task.factor)
    check_writable(job.target, result)
    with batches.collect_warnings(f"cannot {task.verb} {job.source}") as warned:
        options |= {"channel_axis": image.channel_axis, "white": request.white, "progress": progress}
        pixels = task.restore(image.values(), **options)
    write_image(job.target, pixels, like=result)
    batches.report_warning(job.source, warned)
    if request.compare:
        _draw(image, pixels, task.factor, batches.picture_beside(job.target))
    seconds = time.perf_counter() - start
    return f"wrote {job.target}: {result.describe()}, from {job.source}, {seconds:.1f} s"


def _draw(image: ImageFile, pixels: NDArray[Any], factor: int, path: Path) -> None:
    """Draw the image before and after; of a stack, the middle one."""
    from heatprior.display import contrast
    from heatprior.pictures.figures import Panel, draw_side_by_side

    middle = image.middle
    before = image.pixels[middle].repeat(factor, axis=0).repeat(factor, axis=1)
    black, white = contrast(pixels[middle])
    draw_side_by_side([Panel("before", before, black, white), Panel("after", pixels[middle], black, white)], path)


@with_shared_options
def deblur(
    *,
    kernel: Annotated[str | None, typer.Option(metavar="FILE", help="Image of the point spread function.")] = None,
    gaussian: Annotated[
        float | None, typer.Option(metavar="S", help="Gaussian blur of this standard deviation in pixels.")
    ] = None,
    motion: Annotated[
        str | None, typer.Option(metavar="L,D", help="Motion blur of L pixels, D degrees anticlockwise from the right.")
    ] = None,
    request: Request,
) -> None:
    """Sharpen images with a known blur: --kernel, --gaussian or --motion.

    Pixels beyond the edges are treated as unknown. Results keep the type, units and metadata of the images.
    """
    import heatprior

    operator = heatprior.operators.Blur(_point_spread(kernel, gaussian, motion))
    restore_files(request, Task("deblur", "sharpened", partial(heatprior.restore, operator=operator)), kernel)


def _point_spread(kernel: str | None, gaussian: float | None, motion: str | None) -> FloatArray:
    """Read the one blur that was given, and scale it to the sum one."""
    import numpy as np

    from heatprior.images import read_grey
    from heatprior.restoration.operators.convolution import as_kernel, gaussian_kernel, motion_kernel

    if sum(blur is not None for blur in (kernel, gaussian, motion)) != 1:
        raise typer.BadParameter("expected one blur: --kernel psf.tif, --gaussian 1.6 or --motion 15,30")
    if kernel is not None:
        values = as_kernel(read_grey(Path(kernel)))
        if not values.sum() > 0:
            raise typer.BadParameter(f"the kernel {kernel} does not sum up to a positive number; give a point spread")
        return np.asarray(values / values.sum())
    if gaussian is not None:
        return gaussian_kernel(gaussian)
    try:
        length, degrees = map(float, str(motion).split(","))
    except ValueError:
        raise typer.BadParameter(f"--motion is {motion!r}; expected a length and an angle, such as 15,30") from None
    return motion_kernel(length, degrees)


@batches.spread_options("request", SHARED | {"sigma": (KeptSigma, None)}, Request)
def inpaint(
    *,
    mask: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Image of the same size; pixels above half of its full scale are filled in."),
    ] = None,
    request: Request,
) -> None:
    """Fill in missing pixels: where --mask is white, and where pixels are NaN.

    All other pixels are kept exactly, unless --sigma is given: then they are denoised as well.
    """
    from heatprior.restoration.restore import fill_in

    spoilt = None if mask is None else _read_mask(Path(mask))
    restore_files(request, Task("inpaint", "filled", partial(fill_in, spoilt=spoilt)), mask)


def _read_mask(path: Path) -> NDArray[Any]:
    """Where the mask (H, W) is brighter than half of full scale; one of zeros and ones is of that scale."""
    import numpy as np

    from heatprior.images import read_grey

    values = read_grey(path)
    full = 1 if values.dtype.kind == "f" or values.max() <= 1 else np.iinfo(values.dtype).max
    return np.asarray(values > full / 2)


@with_shared_options
def upscale(
    *,
    factor: Annotated[int, typer.Option(metavar="F", min=2, max=LARGEST, help="Enlargement of each side.")] = 2,
    gaussian: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Standard deviation, in pixels of the result, of the Gaussian blur assumed before reduction.  "
            "[default: bicubic reduction]",
        ),
    ] = None,
    request: Request,
) -> None:
    """Enlarge images (super-resolution).

    Results keep the type and units of the images and, of the metadata, profile, EXIF and resolution.
    """
    import heatprior
    from heatprior.restoration.operators.convolution import gaussian_kernel

    operator = heatprior.operators.Downsample(factor, "bicubic" if gaussian is None else gaussian_kernel(gaussian))
    restore_files(request, Task("upscale", "enlarged", partial(heatprior.restore, operator=operator), factor))
