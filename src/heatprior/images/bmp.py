"""BMP: grey or colour, 8 bits; palettes become their colours. It holds pixels and their resolution, nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.images import metadata
from heatprior.images.model import Carried, Format, ImageFile
from heatprior.images.pillow import opened

GREY = ("1", "L")


def read(path: Path) -> ImageFile:
    """The image; transparency, which few programs write, is left out."""
    with opened(path, "BMP") as image:
        colour = image.mode not in GREY
        pixels = np.array(image.convert("RGB" if colour else "L"))
        return ImageFile(path, pixels, colour, None, Carried(dpi=metadata.sound_dpi(image.info.get("dpi"))))


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> None:
    """Write `pixels`, uncompressed."""
    from PIL import Image  # noqa: PLC0415 (slow to import)

    about = {"dpi": like.carried.dpi} if like.carried.dpi else {}
    with path.open("wb") as file:
        Image.fromarray(np.ascontiguousarray(pixels)).save(file, "BMP", **about)


FORMAT = Format(
    name="BMP",
    suffixes=(".bmp",),
    signature=rb"BM",
    read=read,
    write=write,
    dtypes=(np.dtype(np.uint8),),
)
