"""The file that an enlarged image is written like."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heatprior.images.model import ImageFile


def enlarged_like(image: ImageFile, factor: int) -> ImageFile:
    """An image like this one, but larger: as if it came from a format that keeps profile, EXIF and resolution only."""
    sides = tuple(range(image.pixels.ndim))[-3:-1] if image.colour else tuple(range(image.pixels.ndim))[-2:]
    shape = [factor * n if axis in sides else n for axis, n in enumerate(image.pixels.shape)]
    others = image.others
    if others is not None:
        others = np.repeat(np.repeat(others, factor, axis=-3), factor, axis=-2)
    dpi = image.carried.dpi
    carried = image.carried._replace(dpi=dpi and (factor * dpi[0], factor * dpi[1]))
    return replace(
        image,
        path=image.path.with_suffix(""),
        pixels=np.empty(shape, image.pixels.dtype),
        others=others,
        carried=carried,
        native=None,
        missing=None,
    )
