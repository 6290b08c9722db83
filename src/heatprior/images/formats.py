"""The one table of formats. A new one is a module with `read` and `write`, and a line here.

A format's module is imported when a file of that format is read or written, and not before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import HeatpriorError, ImageFileError
from heatprior.images.model import DTYPES, ImageFile

LONGEST_SIGNATURE = 512
ANY_NUMBER = 1 << 16  # of extra samples per pixel
BYTES = (np.dtype(np.uint8),)
NOT_HALF = tuple(dtype for dtype in DTYPES if dtype != np.float16)


@dataclass(frozen=True)
class Format:
    """A file format: how to recognise, read and write it, and what it can hold.

    `signature` is a regular expression for the first bytes. `module`, in this package, has the functions `read` and
    `write`; the latter returns the pixels as they will be read back if it had to round them, else None. `others` is
    how many samples a pixel may have beside its brightness, `package` what must be installed. A format that is not
    `free` is only written from a file of the same format; a `bare` one knows of channels only by the shape.
    """

    name: str
    suffixes: tuple[str, ...]
    signature: bytes
    module: str
    dtypes: tuple[np.dtype[Any], ...] = DTYPES
    colour: bool = True
    stacks: bool = False
    others: int = 0
    lossy: bool = False
    free: bool = True
    package: str | None = None
    extra: str | None = None
    bare: bool = False

    def read(self, path: Path) -> ImageFile:
        """Read a file of this format."""
        image: ImageFile = import_module(f"heatprior.images.{self.module}").read(path)
        return image

    def write(self, path: Path, pixels: NDArray[Any], like: ImageFile) -> NDArray[Any] | None:
        """Write `pixels` with the metadata of `like`; returns what will be read back, if that is not `pixels`."""
        kept: NDArray[Any] | None = import_module(f"heatprior.images.{self.module}").write(path, pixels, like)
        return kept

    def objection(self, image: ImageFile, *, own: bool) -> str | None:
        """Why this format cannot hold the image, or None if it can; `own`: the image came from this format."""
        if own:
            return None
        if not self.free:
            return f"{self.name} is written from {self.name} only"
        others = 0 if image.others is None else image.others.shape[-1]
        objections = {
            f"{self.name} holds one image, not a stack": bool(image.stack) and not self.stacks,
            f"{self.name} cannot hold {image.pixels.dtype}": image.pixels.dtype not in self.dtypes,
            f"{self.name} cannot hold colours": image.colour and not self.colour,
            f"{self.name} cannot hold its transparency": others > self.others,
            f"{self.name} cannot tell its channels from a stack": self.bare and not _is_plain(image, others),
        }
        return next((objection for objection, holds in objections.items() if holds), None)


FORMATS = (
    Format("PNG", (".png",), rb"\x89PNG\r\n\x1a\n", "png", (*BYTES, np.dtype(np.uint16)), others=1),
    Format("JPEG", (".jpg", ".jpeg"), rb"\xff\xd8", "jpeg", BYTES, lossy=True),
    Format("TIFF", (".tif", ".tiff"), rb"II[*+]\0|MM\0[*+]", "tiff", stacks=True, others=ANY_NUMBER),
    Format(".npy", (".npy",), rb"\x93NUMPY", "npy", stacks=True, others=1, bare=True),
    Format("BMP", (".bmp",), rb"BM", "bmp", BYTES),
    Format("WebP", (".webp",), rb"(?s)RIFF....WEBP", "webp", BYTES, others=1),
    Format(
        "FITS", (".fits", ".fit", ".fts"), rb"SIMPLE  =", "fits", NOT_HALF, colour=False, stacks=True,
        package="astropy", extra="fits",
    ),
    Format(
        "DICOM", (".dcm", ".dicom"), rb"(?s).{128}DICM", "dicom", stacks=True, free=False,
        package="pydicom", extra="dicom",
    ),
    Format(
        "NIfTI", (".nii", ".nii.gz"), rb"(?s)\x1f\x8b|.{344}n\+1\0|....n\+2\0", "nifti", NOT_HALF, colour=False,
        stacks=True, package="nibabel", extra="nifti",
    ),
)  # fmt: skip
SUFFIXES = tuple(suffix for kind in FORMATS for suffix in kind.suffixes)


def _is_plain(image: ImageFile, others: int) -> bool:
    """Whether the shape of an array tells what is in it: grey, or one image of colours, larger than it has channels."""
    shape = image.pixels.shape
    if image.colour:
        return len(shape) == 3 and min(shape[:2]) > 3 + others
    return others == 0 and not (len(shape) == 3 and shape[2] in (3, 4) and min(shape[:2]) > shape[2])


def format_of(path: Path) -> Format | None:
    """The format that the suffix of `path` names, or None."""
    name = path.name.lower()
    for kind in FORMATS:
        if any(name.endswith(suffix) and name != suffix for suffix in kind.suffixes):
            return kind
    return None


def check_signature(path: Path, kind: Format) -> None:
    """Refuse a file whose contents are not what its name says; name the actual format if it is known."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ImageFileError("it is a pipe or a device, which may never end; give a file")
    with path.open("rb") as file:
        head = file.read(LONGEST_SIGNATURE)
    if not head:
        raise ImageFileError("the file is empty; get a fresh copy")
    if not re.match(kind.signature, head):
        others = [other for other in FORMATS if re.match(other.signature, head)]
        what = f"but {others[0].name}; rename it" if others else "whatever its name says; get a fresh copy"
        raise ImageFileError(f"it is no {kind.name}, {what}")


def check_installed(path: Path, kind: Format, error: type[HeatpriorError], doing: str) -> None:
    """Refuse a format whose package is not installed, and name the extra that brings it."""
    if kind.package is not None and find_spec(kind.package) is None:
        raise error(
            f"cannot {doing} {path}: {kind.name} needs {kind.package}, which is not installed: "
            f"pip install 'heatprior[{kind.extra}]'"
        )
