"""DICOM, by pydicom: grey (rescaled to its units) or RGB, one frame or many; the whole header stays.

The result is a derived image: it gets an identity of its own, made from that of the original, and says DERIVED.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError, OutputFileError
from heatprior.images.limits import check_size
from heatprior.images.missing import part_missing
from heatprior.images.model import Format, ImageFile
from heatprior.images.scaling import Scale

GREY = ("MONOCHROME1", "MONOCHROME2")
COLOUR = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT")


class Origin(NamedTuple):
    """The file that the image comes from, and how its numbers are stored."""

    path: Path
    scale: Scale


def read(path: Path) -> ImageFile:
    """The image in units: Hounsfield and the like, by RescaleSlope and RescaleIntercept."""
    import pydicom  # noqa: PLC0415 (an extra, and slow to import)

    about = pydicom.dcmread(path)
    kind = str(about.get("PhotometricInterpretation", "none"))
    if "PixelData" not in about or kind not in GREY + COLOUR:
        raise ImageFileError(f"it holds no picture that is grey or RGB (its kind is {kind}); convert it")
    bits, used = int(about.BitsAllocated), int(about.BitsStored)
    if bits not in (8, 16, 32) or not 0 < used <= bits:
        raise ImageFileError(f"it has {bits} bits per pixel, {used} used; expected 8, 16 or 32")
    dtype = np.dtype(f"{'i' if about.PixelRepresentation else 'u'}{bits // 8}")
    shape = [int(about.get(name) or 1) for name in ("NumberOfFrames", "Rows", "Columns", "SamplesPerPixel")]
    plain = not about.file_meta.TransferSyntaxUID.is_compressed
    check_size(math.prod(shape) * dtype.itemsize, path.stat().st_size, *([1] if plain else []))
    stored = about.pixel_array
    colour = kind in COLOUR
    if stored.dtype != dtype or (colour and dtype != np.uint8):
        raise ImageFileError(f"its pixels are {stored.dtype} where {dtype} was declared; convert it")
    if colour:
        scale = Scale.of(dtype)
        stored = _as_rgb(about, stored)
    else:
        scale = Scale.of(dtype, _number(about, "RescaleSlope", 1.0), _number(about, "RescaleIntercept", 0.0), used)
        stored = np.clip(stored, scale.low, scale.high)  # bits beyond the used ones once held overlays
    padding = None if colour else about.get("PixelPaddingValue")
    pixels, missing = part_missing(
        np.ascontiguousarray(scale.values(stored)), None if padding is None else scale.number(float(padding))
    )
    white = abs(scale.slope) * ((1 << used) - 1)
    return ImageFile(
        path, pixels, colour, None, native=Origin(path.resolve(), scale), missing=missing, full_scale=white
    )


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> NDArray[Any] | None:
    """Write `pixels`, uncompressed, under the header of the file that `like` came from."""
    import pydicom  # noqa: PLC0415

    if not isinstance(like.native, Origin):
        raise OutputFileError("DICOM is written from DICOM only")
    origin, scale = like.native
    try:
        about = pydicom.dcmread(origin)
    except FileNotFoundError as error:
        raise OutputFileError(f"{origin} is gone; its header was to hold the result") from error
    stored = scale.stored(pixels)
    about.PixelData = stored.astype(stored.dtype.newbyteorder("<")).tobytes() + b"\0" * (stored.nbytes % 2)
    about["PixelData"].VR = "OW" if stored.itemsize > 1 else "OB"
    about["PixelData"].is_undefined_length = False
    if like.colour:
        about.PhotometricInterpretation, about.PlanarConfiguration = "RGB", 0
    about.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    _derive(about)
    about.save_as(path, little_endian=True, implicit_vr=False, enforce_file_format=True, overwrite=True)
    if scale.values_dtype.kind == "f":
        kept = np.ascontiguousarray(scale.values(stored))
        return kept if like.missing is None else like.missing.left_out(kept)
    return None


def _derive(about: Any) -> None:
    from pydicom.uid import generate_uid  # noqa: PLC0415

    kinds = list(about.get("ImageType") or ["", "SECONDARY"])
    about.ImageType = ["DERIVED", *(kinds[1:] or ["SECONDARY"])]
    identity = str(about.get("SOPInstanceUID", ""))
    about.SOPInstanceUID = about.file_meta.MediaStorageSOPInstanceUID = generate_uid(
        entropy_srcs=["heatprior", identity]
    )


def _as_rgb(about: Any, stored: NDArray[Any]) -> NDArray[Any]:
    from pydicom.pixels import convert_color_space  # noqa: PLC0415

    kind = str(about.PhotometricInterpretation)
    if kind == "RGB" or about.file_meta.TransferSyntaxUID.is_compressed:  # which decoders give as RGB
        return stored
    return np.asarray(convert_color_space(stored, kind, "RGB"))


def _number(about: Any, name: str, default: float) -> float:
    value = about.get(name)
    return default if value is None or value == "" else float(value)


FORMAT = Format(
    name="DICOM",
    suffixes=(".dcm", ".dicom"),
    signature=rb"(?s).{128}DICM",
    read=read,
    write=write,
    stacks=True,
    free=False,
    package="pydicom",
    extra="dicom",
)
