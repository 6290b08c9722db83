"""What `deblur`, `inpaint` and `upscale` share: read an image, restore it, write it, draw it before and after."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from heatprior.cli.batches import (
    Force,
    Inputs,
    Output,
    PriorName,
    Sigma,
    SkipExisting,
    White,
    carry_out,
    check_white,
    noise_level,
    picture_beside,
    prepared,
)
from heatprior.cli.reports import say_if_compiling, warnings_in_one_line

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from heatprior.cli.jobs import Job
    from heatprior.images import ImageFile

Compare = Annotated[
    bool, typer.Option("--compare", help="Draw the image before and after beside each other: OUT-compare.png.")
]


class Task(NamedTuple):
    """What is done to each image."""

    verb: str
    restore: Callable[..., NDArray[Any]]  # the values, and sigma, prior, channel_axis, white, progress → the result
    factor: int = 1  # how much larger the result is


class Request(NamedTuple):
    """What every one of the three commands is asked for: the options that they share, as typer reads them."""

    inputs: Inputs
    output: Output
    sigma: Sigma = None
    prior: PriorName = "tuned"
    white: White = None
    compare: Compare = False
    skip_existing: SkipExisting = False
    force: Force = False


def with_shared_options(own: Callable[..., None]) -> Callable[..., None]:
    """`own(request, *, options)` as a command with its own options and those of a `Request`."""
    shared = get_type_hints(Request, include_extras=True)
    hints = get_type_hints(own, include_extras=True)
    first, second = (
        [Parameter(name, Parameter.KEYWORD_ONLY, annotation=shared[name], default=default) for name, default in group]
        for group in (
            [(name, Parameter.empty) for name in Request._fields if name not in Request._field_defaults],
            list(Request._field_defaults.items()),
        )
    )
    middle = [each.replace(annotation=hints[each.name]) for each in list(signature(own).parameters.values())[1:]]

    def command(**options: Any) -> None:
        request = Request(**{name: options.pop(name) for name in Request._fields})
        own(request, **options)

    command.__name__, command.__doc__ = own.__name__, own.__doc__
    parameters = [*first, *middle, *second]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__dict__["__signature__"] = Signature(parameters)
    return command


def restore_files(request: Request, task: Task, *read: str | None) -> None:
    """Restore every file; `read` may name files that are read besides, and must stay."""
    from heatprior import load

    level = noise_level(request.sigma)
    check_white(request.white)
    todo = prepared(
        request.inputs,
        request.output,
        compare=request.compare,
        read=(request.sigma, request.prior, *read),
        skip_existing=request.skip_existing,
        force=request.force,
    )
    if todo is None:
        return
    say_if_compiling()
    prior = load(request.prior)

    def work(job: Job, progress: Callable[[float], None]) -> str:
        return _restore(job, task, progress, request, sigma=level, prior=prior)

    carry_out(todo, work, request.output)


def _restore(job: Job, task: Task, progress: Callable[[float], None], request: Request, **options: Any) -> str:
    """Read, restore and write one image; returns a line that says what was done."""
    from heatprior.errors import InvalidInputError
    from heatprior.images import check_writable, enlarged_like, read_image, write_image

    start = time.perf_counter()
    image = read_image(job.source)
    result = enlarged_like(image, task.factor) if task.factor > 1 else replace(image, missing=None)
    check_writable(job.target, result)
    try:
        with warnings_in_one_line(job.source):
            pixels = task.restore(
                image.values(),
                channel_axis=image.channel_axis,
                white=request.white or image.white,
                progress=progress,
                **options,
            )
    except InvalidInputError as error:
        raise InvalidInputError(f"cannot {task.verb} {job.source}: {error}") from error
    write_image(job.target, pixels, like=result)
    if request.compare:
        _draw(image, pixels, task.factor, picture_beside(job.target))
    seconds = time.perf_counter() - start
    return f"wrote {job.target}: {result.describe()}, from {job.source}, {seconds:.1f} s"


def _draw(image: ImageFile, pixels: NDArray[Any], factor: int, path: Path) -> None:
    """Before and after; of a stack, the image in its middle."""
    from heatprior.pictures.comparisons import Panel, contrast, draw_side_by_side

    frame = 3 if image.colour else 2
    middle = tuple(count // 2 for count in pixels.shape[: pixels.ndim - frame])
    before = image.pixels[middle].repeat(factor, axis=0).repeat(factor, axis=1)
    black, white = contrast(pixels[middle])
    draw_side_by_side([Panel("before", before, black, white), Panel("after", pixels[middle], black, white)], path)
