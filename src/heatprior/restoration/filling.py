"""Filling in: `hp.restore` with a mask, for images of which most pixels are right and shall stay."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.errors import InvalidInputError
from heatprior.pixels.inputs import as_channels, as_white
from heatprior.restoration.operators.mask import Mask
from heatprior.restoration.restore import restore

LITTLE = 1 / 255  # of full scale: the noise of pixels that stay as they are


def fill_in(
    values: NDArray[Any],
    spoilt: NDArray[np.bool_] | None,
    sigma: ArrayLike | None = None,
    *,
    channel_axis: int | None = None,
    white: float | None = None,
    **options: Any,
) -> NDArray[Any]:
    """The image with new pixels where `spoilt` (H, W) is true, and where it is NaN; `options` are those of `restore`.

    All others stay exactly as they are, unless the noise level `sigma` is given: then their noise is removed too.
    """
    channels = as_channels(values, channel_axis)
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
    if spoilt is not None:
        if spoilt.shape != channels.shape[-2:]:
            raise InvalidInputError(
                f"the mask has shape {spoilt.shape} but the image {channels.shape[-2:]}; expected the same"
            )
        if spoilt.all():
            raise InvalidInputError("the mask leaves no valid pixel; it must be black where the image is to be kept")
        as_channels(missing, channel_axis)[...] |= spoilt
    if not missing.any():
        raise InvalidInputError("no pixel is missing; give a mask that is white where something is to be filled in")
    seen = np.ones(channels.shape[-2:], bool) if spoilt is None else ~spoilt
    level = LITTLE * as_white(white, values) if sigma is None else sigma
    filled = restore(values, Mask(seen), level, channel_axis=channel_axis, white=white, **options)
    return np.where(missing, filled, values).astype(values.dtype) if sigma is None else filled
