"""The one table of formats; a new one is a module with its FORMAT, and a line here."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from heatprior.errors import HeatpriorError, ImageFileError
from heatprior.images import bmp, dicom, fits, jpeg, nifti, npy, png, tiff, webp
from heatprior.images.model import Format

FORMATS = (
    png.FORMAT,
    jpeg.FORMAT,
    tiff.FORMAT,
    npy.FORMAT,
    bmp.FORMAT,
    webp.FORMAT,
    fits.FORMAT,
    dicom.FORMAT,
    nifti.FORMAT,
)
SUFFIXES = tuple(suffix for kind in FORMATS for suffix in kind.suffixes)
LONGEST_SIGNATURE = 512


def format_of(path: Path) -> Format | None:
    """The format of files with such a suffix, or None."""
    name = path.name.lower()
    for kind in FORMATS:
        if any(name.endswith(suffix) and name != suffix for suffix in kind.suffixes):
            return kind
    return None


def check_signature(path: Path, kind: Format) -> None:
    """Refuse a file that is not what its name says; and say what it is, if it is known."""
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
    """Refuse a format whose package is not there, and name the extra that brings it."""
    if kind.package is not None and find_spec(kind.package) is None:
        raise error(
            f"cannot {doing} {path}: {kind.name} needs {kind.package}, which is not installed: "
            f"pip install 'heatprior[{kind.extra}]'"
        )
