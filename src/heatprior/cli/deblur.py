"""`heatprior deblur`: files and folders, sharpened by a known blur."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heatprior.cli.restored_files import Request, Task, restore_files, with_shared_options

if TYPE_CHECKING:
    from heatprior.arrays import FloatArray

EXAMPLES = """\b
Examples:
  heatprior deblur photo.png -o sharp.png --gaussian 1.6          out of focus, a little
  heatprior deblur photo.png -o sharp.png --motion 15,30          15 pixels long, 30° up from the right
  heatprior deblur photo.jpg -o sharp.png --kernel psf.tif --sigma 2 --compare
"""


@with_shared_options
def deblur(
    request: Request,
    *,
    kernel: Annotated[
        str | None, typer.Option(metavar="FILE", help="The blur as an image: what one bright point became.")
    ] = None,
    gaussian: Annotated[
        float | None, typer.Option(metavar="S", help="The blur is a Gaussian of this standard deviation in pixels.")
    ] = None,
    motion: Annotated[
        str | None,
        typer.Option(metavar="L,D", help="The blur is a motion over L pixels, D degrees anticlockwise from the right."),
    ] = None,
) -> None:
    """Sharpen images whose blur is known: by --kernel, --gaussian or --motion.

    What lies beyond the edges is taken to be unknown. Results have the type, the units and the metadata of the images.
    """
    spread = _point_spread(kernel, gaussian, motion)

    def restore(values: Any, **options: Any) -> Any:
        import heatprior

        return heatprior.restore(values, heatprior.Blur(spread), **options)

    restore_files(request, Task("deblur", restore), kernel)


def _point_spread(kernel: str | None, gaussian: float | None, motion: str | None) -> FloatArray:
    """The one blur that was given, of sum one."""
    import numpy as np

    from heatprior.images import read_grey
    from heatprior.restoration.operators.point_spreads import as_kernel, gaussian_kernel, motion_kernel

    if sum(blur is not None for blur in (kernel, gaussian, motion)) != 1:
        raise typer.BadParameter("expected one blur: --kernel psf.tif, --gaussian 1.6 or --motion 15,30")
    if kernel is not None:
        values = as_kernel(read_grey(Path(kernel)))
        if not values.sum() > 0:
            raise typer.BadParameter(f"the kernel {kernel} does not sum up to a positive number; give a point spread")
        return np.asarray(values / values.sum())
    if gaussian is not None:
        return gaussian_kernel(gaussian)
    parts = str(motion).split(",")
    try:
        length, degrees = (float(part) for part in parts)
    except ValueError:
        raise typer.BadParameter(f"--motion is {motion!r}; expected a length and an angle, such as 15,30") from None
    return motion_kernel(length, degrees)
