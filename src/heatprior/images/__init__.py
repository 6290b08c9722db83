"""Image files ↔ arrays, in the type and units that they have: PNG, JPEG, TIFF and .npy.

`read_image` gives the pixels and remembers what belongs to them; `write_image` writes others of the same shape and
type, with all of that. `read_grey` gives a grey array, to learn and to measure from.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError, InvalidInputError, OutputFileError
from heatprior.files import replacing
from heatprior.images import arrays, jpeg, png, tiff
from heatprior.images.grey import LUMA, read_grey, to_grey
from heatprior.images.model import ImageFile, explaining

FORMATS = {
    ".png": png,
    ".jpg": jpeg,
    ".jpeg": jpeg,
    ".tif": tiff,
    ".tiff": tiff,
    ".npy": arrays,
}
SUFFIXES = tuple(FORMATS)

__all__ = [
    "LUMA",
    "SUFFIXES",
    "ImageFile",
    "check_writable",
    "image_files",
    "read_grey",
    "read_image",
    "to_grey",
    "write_image",
]


def image_files(folder: Path) -> list[Path]:
    """The files in `folder` and below whose names say that they are images, sorted; hidden ones are left out."""
    found = (path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def read_image(path: Path) -> ImageFile:
    """An image file as it is: no bit is lost, nothing is converted except palettes, to their colours."""
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        raise ImageFileError(f"cannot read {path}: it does not end in {', '.join(SUFFIXES)}; convert it")
    with explaining(path):
        if path.stat().st_size == 0:
            raise ImageFileError(f"cannot read {path}: the file is empty; get a fresh copy")
        image: ImageFile = kind.read(path)
        return image


def write_image(path: Path, pixels: NDArray[Any], *, like: ImageFile) -> None:
    """Write pixels of the shape and type of `like`, with what it carries; the format is that of the name.

    Written whole or not at all. A file of the same format keeps everything; of another, the colour profile, the
    resolution and (PNG, JPEG) EXIF.
    """
    kind = check_writable(path, like)
    if pixels.shape != like.pixels.shape or pixels.dtype != like.pixels.dtype:
        raise InvalidInputError(
            f"the pixels are {pixels.dtype} {pixels.shape}; expected {like.pixels.dtype} {like.pixels.shape}"
        )
    with replacing(path) as temporary:
        kind.write(temporary, pixels, like)


def check_writable(path: Path, image: ImageFile) -> ModuleType:
    """Refuse, before any work, a format that cannot hold the image; else the module that writes it."""
    suffix = path.suffix.lower()
    kind = FORMATS.get(suffix)
    if kind is None:
        raise OutputFileError(f"cannot write {path}: it must be a name that ends in {', '.join(SUFFIXES)}")
    dtype = image.pixels.dtype
    if kind in (png, jpeg):
        name = "PNG" if kind is png else "JPEG"
        if image.is_stack:
            raise OutputFileError(f"cannot write {path}: {name} holds one image, not a stack; choose .tif or .npy")
        if dtype != np.uint8 and not (kind is png and dtype == np.uint16):
            raise OutputFileError(f"cannot write {path}: {name} cannot hold {dtype}; choose .tif or .npy")
        others = image.others.shape[-1] if image.others is not None else 0
        if others > (1 if kind is png else 0):
            wider = ".png, .tif or .npy" if others == 1 else ".tif or .npy"
            raise OutputFileError(f"cannot write {path}: {name} cannot hold its transparency; choose {wider}")
    return kind
