"""`heatprior inpaint`: files and folders, filled in where pixels are missing or spoilt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heatprior.cli.restored_files import Request, Task, restore_files, with_shared_options

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXAMPLES = """\b
Examples:
  heatprior inpaint photo.png --mask scratches.png -o whole.png      what is white in the mask is filled in
  heatprior inpaint map.npy -o whole.npy                             so are NaN, and what a file calls missing
  heatprior inpaint photo.png --mask text.png -o whole.png --sigma 5   and the noise of all others removed
"""


@with_shared_options
def inpaint(
    request: Request,
    *,
    mask: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="An image of the same size: pixels brighter than half are filled in."),
    ] = None,
) -> None:
    """Fill in what is missing: where the --mask is white, and where pixels are NaN.

    All other pixels stay exactly as they are, unless --sigma is given: then their noise is removed too.
    """
    from heatprior.restoration.filling import fill_in

    spoilt = None if mask is None else _spoilt(Path(mask))

    def restore(values: Any, **options: Any) -> Any:
        return fill_in(values, spoilt, **options)

    restore_files(request, Task("inpaint", restore), mask)


def _spoilt(path: Path) -> NDArray[Any]:
    """Where the mask (H, W) is brighter than half of full scale; one of zeros and ones is of that scale."""
    import numpy as np

    from heatprior.images import read_grey

    values = read_grey(path)
    full = 1 if values.dtype.kind == "f" or values.max() <= 1 else np.iinfo(values.dtype).max
    return np.asarray(values > full / 2)
