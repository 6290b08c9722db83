"""WebP: colour or grey, 8 bits, with or without transparency, written without loss; profile and EXIF stay.

WebP knows no grey: an image whose colours agree everywhere is taken for grey.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.images import metadata
from heatprior.images.limits import EXPANSION
from heatprior.images.model import Format, ImageFile, parted
from heatprior.images.pillow import opened

PLAIN = 1 << 20  # bytes of pixels for a byte of the file: without loss a plain area takes next to nothing
EFFORT = {"method": 0, "quality": 0}  # of packing without loss: more takes ten times as long for some hundredths


def read(path: Path) -> ImageFile:
    """The image, lossy or not."""
    lossless = b"VP8L" in path.read_bytes()
    with opened(path, "WEBP", PLAIN if lossless else EXPANSION) as image:
        carried = metadata.carried(image.info)
        samples = np.array(image if image.mode in ("RGB", "RGBA") else image.convert("RGB"))
    if (samples[..., 0] == samples[..., 1]).all() and (samples[..., 0] == samples[..., 2]).all():
        pixels, colour, others = parted(samples[..., 2:], 1)
    else:
        pixels, colour, others = parted(samples, 3)
    return ImageFile(path, pixels, colour, others, carried)


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> None:
    """Write `pixels` as they are, bit for bit, under transparent places too."""
    from PIL import Image  # noqa: PLC0415 (slow to import)

    about = {"icc_profile": like.carried.icc, "exif": like.carried.exif}
    colours = pixels if like.colour else np.repeat(pixels[..., None], 3, axis=-1)
    samples = colours if like.others is None else np.concatenate([colours, like.others], axis=-1)
    image = Image.fromarray(np.ascontiguousarray(samples))
    with path.open("wb") as file:
        image.save(
            file, "WEBP", lossless=True, exact=True, **EFFORT, **{name: data for name, data in about.items() if data}
        )


FORMAT = Format(
    name="WebP",
    suffixes=(".webp",),
    signature=rb"(?s)RIFF....WEBP",
    read=read,
    write=write,
    dtypes=(np.dtype(np.uint8),),
    others=1,
)
