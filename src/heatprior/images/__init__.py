"""Image files ↔ arrays, in the type and units that they have: PNG, JPEG, TIFF, .npy, BMP, WebP; FITS, DICOM, NIfTI.

`read_image` gives the pixels and remembers what belongs to them; `write_image` writes others of the same shape and
type, with all of that, and reads them back before the file gets its name. `read_grey` gives a grey array, to learn and
to measure from. docs/formats.md says what each format keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import HeatpriorError, ImageFileError, InvalidInputError, OutputFileError
from heatprior.files import replacing
from heatprior.images.enlarged import enlarged_like
from heatprior.images.formats import FORMATS, SUFFIXES, check_installed, check_signature, format_of
from heatprior.images.grey import LUMA, to_grey
from heatprior.images.model import Format, ImageFile, explaining, silent_decoders
from heatprior.images.verification import check_written

__all__ = [
    "LUMA",
    "SUFFIXES",
    "ImageFile",
    "check_writable",
    "enlarged_like",
    "image_files",
    "read_grey",
    "read_image",
    "to_grey",
    "write_image",
]


def image_files(folder: Path) -> list[Path]:
    """The files in `folder` and below whose names say that they are images, sorted; hidden ones are left out."""
    found = (path for path in folder.rglob("*") if format_of(path) is not None and path.is_file())
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def read_image(path: Path) -> ImageFile:
    """An image file as it is: no bit is lost, nothing is converted except palettes and inks, to their colours."""
    kind = format_of(path)
    if kind is None:
        raise ImageFileError(f"cannot read {path}: it does not end in {', '.join(SUFFIXES)}; convert it")
    with explaining(path):
        check_signature(path, kind)
        check_installed(path, kind, ImageFileError, "read")
        return kind.read(path)


def read_grey(path: Path) -> NDArray[Any]:
    """An image file as a grey array (H, W): uint8, uint16 or float, in the units of the file.

    Colour is converted by its luma, Y = 0.299 R + 0.587 G + 0.114 B, in the type of the file; transparency is ignored.
    """
    image = read_image(path)
    with explaining(path):
        if image.is_stack:
            count = image.pixels.size // int(np.prod(image.pixels.shape[-3 if image.colour else -2 :]))
            raise ImageFileError(f"it has {count} pages or channels; save one image per file")
        return to_grey(image.pixels)


def write_image(path: Path, pixels: NDArray[Any], *, like: ImageFile) -> None:
    """Write pixels of the shape and type of `like`, or of its `values()`; the format is that of the name.

    Written whole, read back and compared, or not at all. A file of the same format keeps everything; of another, the
    colour profile, the resolution and the orientation. Missing pixels are what they were.
    """
    kind = check_writable(path, like)
    if pixels.shape != like.pixels.shape or pixels.dtype not in (like.pixels.dtype, like.values_dtype):
        raise InvalidInputError(
            f"the pixels are {pixels.dtype} {pixels.shape}; expected {like.pixels.dtype} {like.pixels.shape}"
        )
    expected = written = _rounded(pixels, like)
    if like.missing is not None:
        whole = like.missing.restored(written)
        expected = like.missing.left_out(whole)
        written = whole if kind is format_of(like.path) else expected
    with replacing(path) as temporary:
        with _complaining(path, kind):
            kept = kind.write(temporary, written, like)
        check_written(temporary, path, kind, expected if kept is None else kept, like)


def check_writable(path: Path, image: ImageFile) -> Format:
    """Refuse, before any work, a format that cannot hold the image; else the format."""
    kind = format_of(path)
    if kind is None:
        raise OutputFileError(f"cannot write {path}: it must be a name that ends in {', '.join(SUFFIXES)}")
    own = format_of(image.path)
    if objection := kind.objection(image, own=kind is own):
        fit = [other for other in FORMATS if other.package is None or other is own]
        names = [other.suffixes[0] for other in fit if other.objection(image, own=other is own) is None]
        choice = f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
        raise OutputFileError(f"cannot write {path}: {objection}; choose {choice}")
    check_installed(path, kind, OutputFileError, "write")
    return kind


@contextmanager
def _complaining(path: Path, kind: Format) -> Iterator[None]:
    """Whatever an encoder raises, as one line that names the result; a full disk is reported elsewhere."""
    with silent_decoders():
        try:
            yield
        except (HeatpriorError, OSError, MemoryError) as error:
            if isinstance(error, ImageFileError):
                raise OutputFileError(f"cannot write {path}: {error}") from error
            raise
        except Exception as error:
            why = " ".join(str(error).split())[:200]
            raise OutputFileError(
                f"cannot write {path}: {kind.name} does not take it ({type(error).__name__}: {why}); choose .npy"
            ) from error


def _rounded(pixels: NDArray[Any], like: ImageFile) -> NDArray[Any]:
    """Pixels in the type of the file; those computed as floats, because some were missing, are rounded to it."""
    if pixels.dtype == like.pixels.dtype:
        return pixels
    limits = np.iinfo(like.pixels.dtype)
    whole: NDArray[Any] = np.rint(np.clip(np.nan_to_num(pixels), limits.min, limits.max)).astype(like.pixels.dtype)
    return whole
