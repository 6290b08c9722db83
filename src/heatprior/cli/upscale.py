"""`heatprior upscale`: files and folders, enlarged."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from heatprior.cli.restored_files import Request, Task, restore_files, with_shared_options

EXAMPLES = """\b
Examples:
  heatprior upscale photo.png -o large.png                   twice as wide and high
  heatprior upscale photo.png -o large.png --factor 3 --compare
  heatprior upscale photo.png -o large.png --gaussian 1.2    if the lens was softer than a bicubic reduction
"""
LARGEST = 8


@with_shared_options
def upscale(
    request: Request,
    *,
    factor: Annotated[int, typer.Option(metavar="F", min=2, max=LARGEST, help="How much wider and higher.")] = 2,
    gaussian: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="The image was blurred by a Gaussian of this standard deviation, in pixels of the result, before it "
            "was reduced.  [default: reduced bicubically]",
        ),
    ] = None,
) -> None:
    """Enlarge images: what they may have been before they were reduced.

    Results have the type and units of the images; of their metadata, profile, EXIF and resolution stay.
    """
    import heatprior
    from heatprior.restoration.operators.point_spreads import gaussian_kernel

    operator = heatprior.Downsample(factor, "bicubic" if gaussian is None else gaussian_kernel(gaussian))

    def restore(values: Any, **options: Any) -> Any:
        return heatprior.restore(values, operator, **options)

    restore_files(request, Task("upscale", restore, factor))
