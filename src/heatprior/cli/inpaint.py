"""`heatprior inpaint`: files and folders, filled in where pixels are missing or spoilt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heatprior.cli.batches import Force, Inputs, Output, PriorName, Sigma, SkipExisting, White
from heatprior.cli.restored_files import Compare, Request, Task, restore_files

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXAMPLES = """\b
Examples:
  heatprior inpaint photo.png --mask scratches.png -o whole.png      what is white in the mask is filled in
  heatprior inpaint map.npy -o whole.npy                             so are NaN, and what a file calls missing
  heatprior inpaint photo.png --mask text.png -o whole.png --sigma 5   and the noise of all others removed
"""
LITTLE = 1 / 255  # of full scale: the noise of pixels that stay as they are


def inpaint(
    inputs: Inputs,
    *,
    output: Output,
    mask: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="An image of the same size: pixels brighter than half are filled in."),
    ] = None,
    sigma: Sigma = None,
    prior: PriorName = "mixture",
    white: White = None,
    compare: Compare = False,
    skip_existing: SkipExisting = False,
    force: Force = False,
) -> None:
    """Fill in what is missing: where the --mask is white, and where pixels are NaN.

    All other pixels stay exactly as they are, unless --sigma is given: then their noise is removed too.
    """
    spoilt = None if mask is None else _spoilt(Path(mask))
    keeps = sigma is None

    def restore(values: Any, **options: Any) -> Any:
        return _filled(values, spoilt, keeps=keeps, **options)

    request = Request(inputs, output, sigma, prior, white, compare, skip_existing, force)
    restore_files(request, Task("inpaint", restore), mask)


def _spoilt(path: Path) -> NDArray[Any]:
    """Where the mask (H, W) is brighter than half of full scale."""
    import numpy as np

    from heatprior.images import read_grey

    values = read_grey(path)
    full = 1.0 if values.dtype.kind == "f" else np.iinfo(values.dtype).max
    return np.asarray(values > full / 2)


def _filled(
    values: NDArray[Any],
    spoilt: NDArray[Any] | None,
    *,
    keeps: bool,
    sigma: Any,
    channel_axis: int | None,
    white: float | None,
    **options: Any,
) -> NDArray[Any]:
    """The image with its gaps filled; the others `keeps` what they are."""
    import numpy as np

    import heatprior
    from heatprior.errors import InvalidInputError
    from heatprior.pixels.inputs import as_channels, as_white

    channels = as_channels(values, channel_axis)
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
    if spoilt is not None:
        if spoilt.shape != channels.shape[-2:]:
            raise InvalidInputError(f"the mask has shape {spoilt.shape} but the image {channels.shape[-2:]}")
        as_channels(missing, channel_axis)[...] |= spoilt
    if not missing.any():
        raise InvalidInputError("no pixel is missing; give a --mask that is white where something is to be filled in")
    seen = np.ones(channels.shape[-2:], bool) if spoilt is None else ~spoilt
    level = LITTLE * as_white(white, values) if keeps else sigma
    filled = heatprior.restore(values, heatprior.Mask(seen), level, channel_axis=channel_axis, white=white, **options)
    return np.where(missing, filled, values).astype(values.dtype) if keeps else filled
