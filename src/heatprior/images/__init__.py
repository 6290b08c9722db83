"""Image files ↔ arrays, in the type and units that they have: PNG, JPEG, TIFF, .npy, BMP, WebP; FITS, DICOM, NIfTI.

`read_image` gives the pixels and what belongs to them, which `write_image` keeps; docs/files.md says what that is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import HeatpriorError, ImageFileError, InvalidInputError, OutputFileError
from heatprior.files import replacing
from heatprior.images.decoding import explain_read_errors, silence_decoders
from heatprior.images.model import DTYPES
from heatprior.images.model import ImageFile as ImageFile

TWO_PARTS = (".nii.gz", ".fits.gz", ".ome.tif", ".ome.tiff", ".ome.zarr")
BLOCK = 1 << 22  # pixels compared at a time
# Root mean square of what a lossy format may change, in grey levels. At quality 95 the steps of the coefficients are
# 6.7 (brightness) and 9.1 (colour) in root mean square; all wrong by half a step, blue is wrong by 3.4 + 1.77 × 4.6.
LOSS = 16.0
MULTIPLIED = "TIFF"  # the format whose colours may be multiplied by transparency
REMEDY = "choose .npy, or another format"
LUMA = np.array([299.0, 587.0, 114.0]) / 1000.0  # of red, green and blue: ITU-R BT.601, as Pillow has it
LUMA_IN_BITS, BITS = np.array([19595, 38470, 7471], np.uint32), 16  # the same in 16 bits, which is how Pillow rounds
ROWS = 256  # at a time
LONGEST_SIGNATURE = 512
ANY_NUMBER = 1 << 16  # of extra samples per pixel
BYTES = (np.dtype(np.uint8),)
NOT_HALF = tuple(dtype for dtype in DTYPES if dtype != np.float16)


@dataclass(frozen=True)
class Format:
    """A file format: how to recognise, read and write it, and what it can hold."""

    name: str
    suffixes: tuple[str, ...]
    signature: bytes  # a regular expression for the first bytes
    module: str  # in this package, with `read` and `write`; of "module:name", with `read_name` and `write_name`
    dtypes: tuple[np.dtype[Any], ...] = DTYPES
    colour: bool = True
    stacks: bool = False
    others: int = 0  # samples that a pixel may have beside its brightness
    lossy: bool = False
    free: bool = True  # else it is only written from a file of the same format
    package: str | None = None  # what must be installed, by the extra that is called as the module
    bare: bool = False  # it knows of channels only by the shape

    def find(self, verb: str) -> Any:
        """`read(path)`, or `write(path, pixels, like)`, which returns the pixels if they will be read back rounded."""
        module, _, name = self.module.partition(":")
        return getattr(import_module(f"heatprior.images.{module}"), f"{verb}_{name}" if name else verb)

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
    Format("JPEG", (".jpg", ".jpeg"), rb"\xff\xd8", "pillow:jpeg", BYTES, lossy=True),
    Format("TIFF", (".tif", ".tiff"), rb"II[*+]\0|MM\0[*+]", "tiff", stacks=True, others=ANY_NUMBER),
    Format(".npy", (".npy",), rb"\x93NUMPY", "npy", stacks=True, others=1, bare=True),
    Format("BMP", (".bmp",), rb"BM", "pillow:bmp", BYTES),
    Format("WebP", (".webp",), rb"(?s)RIFF....WEBP", "pillow:webp", BYTES, others=1),
    Format(
        "FITS", (".fits", ".fit", ".fts"), rb"SIMPLE  =", "fits", NOT_HALF, colour=False, stacks=True,
        package="astropy",
    ),
    Format("DICOM", (".dcm", ".dicom"), rb"(?s).{128}DICM", "dicom", stacks=True, free=False, package="pydicom"),
    Format(
        "NIfTI", (".nii", ".nii.gz"), rb"(?s)\x1f\x8b|.{344}n\+1\0|....n\+2\0", "nifti", NOT_HALF, colour=False,
        stacks=True, package="nibabel",
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
    return next((kind for kind in FORMATS if name.endswith(kind.suffixes) and name not in kind.suffixes), None)


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
        what = f"but {others[0].name}; rename it" if others else "although its name says so; get a fresh copy"
        raise ImageFileError(f"it is not {kind.name}, {what}")


def check_installed(path: Path, kind: Format, error: type[HeatpriorError], doing: str) -> None:
    """Refuse a format whose package is not installed, and name the extra that brings it."""
    if kind.package is not None and find_spec(kind.package) is None:
        raise error(
            f"cannot {doing} {path}: {kind.name} needs {kind.package}, which is not installed: "
            f"pip install 'heatprior[{kind.module}]'"
        )


def image_files(folder: Path) -> list[Path]:
    """All image files in `folder` and below, by suffix, sorted; hidden ones are left out."""
    found = (path for path in folder.rglob("*") if format_of(path) is not None and path.is_file())
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def name_result(name: str, done: str) -> str:
    """photo.png → photo-denoised.png; of a folder or a store too: scans-denoised, volume-denoised.ome.zarr."""
    suffix = next((ending for ending in TWO_PARTS if name.lower().endswith(ending)), "")
    suffix = name[len(name) - len(suffix) :] if suffix else Path(name).suffix
    return f"{name.removesuffix(suffix)}-{done}{suffix}"


def read_image(path: Path) -> ImageFile:
    """Read an image file without loss; only palettes and CMYK are converted, to RGB."""
    kind = format_of(path)
    with explain_read_errors(path):
        if kind is None:
            path.stat()
            raise ImageFileError(f"its name does not end in {', '.join(SUFFIXES)}; convert it")
        check_signature(path, kind)
        check_installed(path, kind, ImageFileError, "read")
        image: ImageFile = kind.find("read")(path)
        return image


def read_grey(path: Path) -> NDArray[Any]:
    """Read an image file as a grey array (H, W), in its type and units: the luma of colours, no transparency."""
    image = read_image(path)
    with explain_read_errors(path):
        if image.stack:
            raise ImageFileError(f"it has {prod(image.stack)} pages or channels; save one image per file")
        return to_grey(image.pixels)


def to_grey(pixels: NDArray[Any]) -> NDArray[Any]:
    """Convert an image (H, W), or (H, W, channels) with 1 or 3 colours and perhaps transparency, to grey (H, W)."""
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and not 1 <= pixels.shape[2] <= 4) or 0 in pixels.shape:
        raise ImageFileError(f"an array of shape {pixels.shape} is no image; expected (H, W), or (H, W, 1 to 4)")
    if pixels.dtype.kind != "f" and pixels.dtype not in (np.dtype("u1"), np.dtype("u2"), np.dtype(">u2")):
        raise ImageFileError(f"pixels of type {pixels.dtype} have no known scale; expected uint8, uint16 or float")
    native = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)
    if native.ndim == 2 or native.shape[2] <= 2:
        return native if native.ndim == 2 else native[..., 0]
    grey = np.empty(native.shape[:2], native.dtype)
    for top in range(0, len(native), ROWS):
        rows = native[top : top + ROWS, :, :3]
        if native.dtype == np.uint8:
            grey[top : top + ROWS] = (rows @ LUMA_IN_BITS + (1 << (BITS - 1))) >> BITS
        else:
            luma = rows @ LUMA
            grey[top : top + ROWS] = luma if native.dtype.kind == "f" else luma + 0.5
    return grey


def write_image(path: Path, pixels: NDArray[Any], *, like: ImageFile) -> None:
    """Write pixels of the shape and type of `like`, or of its `values()`; the format is that of the name.

    The file is written, read back and compared before it gets its name. In the same format all metadata is kept; in
    another one the colour profile, resolution and orientation, and colours without the transparency by which TIFF may
    multiply them. Missing pixels are as they were.
    """
    kind = check_writable(path, like)
    if pixels.shape != like.pixels.shape or pixels.dtype not in (like.pixels.dtype, like.values_dtype):
        raise InvalidInputError(
            f"the pixels are {pixels.dtype} {pixels.shape}; expected {like.pixels.dtype} {like.pixels.shape}"
        )
    own = kind is format_of(like.path)
    if pixels.dtype != like.pixels.dtype:  # computed as floats, because some were missing
        limits = np.iinfo(like.pixels.dtype)
        pixels = np.rint(np.clip(np.nan_to_num(pixels), limits.min, limits.max)).astype(like.pixels.dtype)
    expected = written = pixels
    if like.missing is not None:
        whole = like.missing.put_back(written)
        expected = like.missing.blank(whole)
        written = whole if own else expected
    if like.multiplied_by is not None and kind.name != MULTIPLIED:
        expected = written = like.divide(written)
    with replacing(path) as temporary:
        with _explain_write_errors(path, kind):
            kept = kind.find("write")(temporary, written, like if own else replace(like, native=None))
        check_written(temporary, path, kind, expected if kept is None else kept, like)


def check_writable(path: Path, image: ImageFile) -> Format:
    """The format that `path` names; raises OutputFileError, before any work, if it cannot hold the image."""
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
def _explain_write_errors(path: Path, kind: Format) -> Iterator[None]:
    """Turn whatever an encoder raises into one line that names the result; a full disk is reported elsewhere."""
    with silence_decoders():
        try:
            yield
        except ImageFileError as error:
            raise OutputFileError(f"cannot write {path}: {error}") from error
        except FileNotFoundError as error:  # whose copy, or whose header, was to hold the result
            raise OutputFileError(f"cannot write {path}: {error.filename} is gone; put it back") from error
        except (HeatpriorError, OSError, MemoryError):
            raise
        except Exception as error:
            why = " ".join(str(error).partition("Traceback (most recent")[0].split())[:200]
            raise OutputFileError(
                f"cannot write {path}: {kind.name} does not take it ({type(error).__name__}: {why}); choose .npy"
            ) from error


def check_written(path: Path, name: Path, kind: Format, pixels: NDArray[Any], like: ImageFile) -> None:
    """Refuse the file at `path`, to be called `name`, unless it holds `pixels` and the other samples of `like`."""
    try:
        with explain_read_errors(path):
            again = kind.find("read")(path)
    except ImageFileError as error:
        reason = str(error).removeprefix(f"cannot read {path}: ").removesuffix("; get a fresh copy")
        raise OutputFileError(f"cannot write {name}: the result could not be read back: {reason}; {REMEDY}") from error
    if not (_agree(again, pixels, like, kind) and _agree_beside(again.others, like.others)):
        raise OutputFileError(f"cannot write {name}: the file did not keep the result, pixel for pixel; {REMEDY}")


def _agree(again: ImageFile, pixels: NDArray[Any], like: ImageFile, kind: Format) -> bool:
    found = again.pixels
    if like.colour and not again.colour:  # a format without grey, in which the colours agree
        found = np.broadcast_to(found[..., None], (*found.shape, 3))
    if found.shape != pixels.shape or found.dtype != pixels.dtype:
        return False
    step = max(1, BLOCK * len(found) // max(1, found.size))
    blocks = ((found[k : k + step], pixels[k : k + step]) for k in range(0, len(found), step))
    if kind.lossy:
        squares = (np.square(one.astype(np.float32) - other).sum(dtype=np.float64) for one, other in blocks)
        return float(sum(squares)) <= LOSS**2 * pixels.size
    return all(np.array_equal(one, other, equal_nan=one.dtype.kind == "f") for one, other in blocks)


def _agree_beside(found: NDArray[Any] | None, others: NDArray[Any] | None) -> bool:
    """Whether transparency came back as it was; none at all is the same as opaque throughout."""
    if others is None or found is None:
        present = found if others is None else others
        return present is None or (present.dtype.kind == "u" and bool((present == np.iinfo(present.dtype).max).all()))
    return bool(np.array_equal(found, others, equal_nan=others.dtype.kind == "f"))
