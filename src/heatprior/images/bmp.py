"""BMP: grey or colour, 8 bits; palettes become their colours. It holds pixels and a resolution, nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.images.decoding import open_image, valid_dpi
from heatprior.images.model import ImageFile, Metadata

GREY = ("1", "L")


def read(path: Path) -> ImageFile:
    """Read a BMP; transparency, which few programs write, is ignored."""
    with open_image(path, "BMP") as image:
        colour = image.mode not in GREY
        pixels = np.array(image.convert("RGB" if colour else "L"))
        return ImageFile(path, pixels, colour, None, Metadata(dpi=valid_dpi(image.info.get("dpi"))))


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> None:
    """Write `pixels`, uncompressed."""
    from PIL import Image  # noqa: PLC0415 (slow to import)

    about = {"dpi": like.metadata.dpi} if like.metadata.dpi else {}
    with path.open("wb") as file:
        Image.fromarray(np.ascontiguousarray(pixels)).save(file, "BMP", **about)
