"""DICOM, by pydicom: grey (rescaled to its units) or RGB, one frame or many; the whole header stays."""

from __future__ import annotations

import math
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pydicom.pixels
from numpy.typing import NDArray

from heatprior.errors import ImageFileError
from heatprior.images.decoding import COPIES, ROOM, available_memory, check_inflated, check_padding, check_size
from heatprior.images.model import ImageFile, Origin, Scale, find_missing

GREY = ("MONOCHROME1", "MONOCHROME2")
HALVED = "YBR_FULL_422"  # with half as many colours as brightnesses
COLOUR = ("RGB", "YBR_FULL", HALVED, "YBR_ICT", "YBR_RCT")
SIDES = ("NumberOfFrames", "Rows", "Columns", "SamplesPerPixel")
PREAMBLE = 132  # bytes, "DICM" included
MOST_INFLATED = 1 << 32  # bytes, where the system does not say what memory is free


def read(path: Path) -> ImageFile:
    """Read an image in its units (Hounsfield and the like), by RescaleSlope and RescaleIntercept."""
    _check_deflated(path)
    _check_length(path)
    about = pydicom.dcmread(path)
    kind = str(about.get("PhotometricInterpretation", "none"))
    if "PixelData" not in about:
        raise ImageFileError("it holds no pixels, or pixels of floats; give a DICOM with a picture")
    if kind not in GREY + COLOUR:
        raise ImageFileError(f"it holds no picture that is grey or RGB (its kind is {kind}); convert it")
    bits, used, colour = int(about.BitsAllocated), int(about.BitsStored), kind in COLOUR
    if bits not in (8, 16, 32) or not 0 < used <= bits:
        raise ImageFileError(f"it has {bits} bits per pixel, {used} used; expected 8, 16 or 32")
    dtype = np.dtype(f"{'i' if about.PixelRepresentation else 'u'}{bits // 8}")
    syntax = about.file_meta.TransferSyntaxUID
    plain = not (syntax.is_compressed or syntax.is_deflated)
    declared = _samples(about) * dtype.itemsize
    if plain and kind == HALVED:
        declared = declared * 2 // 3
    check_size(declared, path.stat().st_size, *([1] if plain else []))
    stored = _decode(about)
    if stored.dtype != dtype:
        raise ImageFileError(f"its pixels are {stored.dtype} where {dtype} was declared; convert it")
    if colour and dtype.kind != "u":
        raise ImageFileError(f"its colours are {dtype}; expected numbers without a sign: convert it")
    scale, padding = Scale.of(dtype), list[float | None]()
    if colour and kind != "RGB" and not syntax.is_compressed:  # which decoders give as RGB
        stored = np.asarray(pydicom.pixels.convert_color_space(stored, kind, "RGB"))
    if not colour:
        scale = Scale.of(dtype, _number(about, "RescaleSlope", 1.0), _number(about, "RescaleIntercept", 0.0), used)
        stored = np.clip(stored, scale.low, scale.high)  # bits beyond the used ones once held overlays
        ends = [about.get(name) for name in ("PixelPaddingValue", "PixelPaddingRangeLimit")]
        padding = [None if end is None else scale.number(float(end)) for end in ends]
    pixels, missing = find_missing(np.ascontiguousarray(scale.values(stored)), *padding)
    return ImageFile(path, pixels, colour, None, native=Origin(path.resolve(), scale), missing=missing)


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> NDArray[Any]:
    """Write `pixels`, uncompressed, under the header of their origin, as a derived image of its own identity."""
    origin: Origin = like.native
    about = pydicom.dcmread(origin.path)
    stored = origin.scale.encode(pixels)
    little = bool(about.file_meta.TransferSyntaxUID.is_little_endian)  # a header is not turned into the other order
    order = stored.dtype.newbyteorder("<" if little else ">")
    about.PixelData = stored.astype(order).tobytes() + b"\0" * (stored.nbytes % 2)
    about["PixelData"].VR = "OW" if stored.itemsize > 1 else "OB"
    about["PixelData"].is_undefined_length = False
    if like.colour:
        about.PhotometricInterpretation, about.PlanarConfiguration = "RGB", 0
    uids = pydicom.uid
    about.file_meta.TransferSyntaxUID = uids.ExplicitVRLittleEndian if little else uids.ExplicitVRBigEndian
    kinds = list(about.get("ImageType") or ["", "SECONDARY"])
    about.ImageType = ["DERIVED", *(kinds[1:] or ["SECONDARY"])]
    identity = uids.generate_uid(entropy_srcs=["heatprior", str(about.get("SOPInstanceUID", ""))])
    about.SOPInstanceUID = about.file_meta.MediaStorageSOPInstanceUID = identity
    if any(element.VR is None for element in about.values()):  # of files that are not encoded as they say, too
        list(about.iterall())  # looks up what each element is
    about.save_as(path, little_endian=little, implicit_vr=False, enforce_file_format=True, overwrite=True)
    return origin.scale.read_back(stored, like.missing)


def _decode(about: Any) -> NDArray[Any]:
    """The stored numbers, in the byte order of this machine."""
    syntax = about.file_meta.TransferSyntaxUID
    try:
        stored = about.pixel_array
    except (RuntimeError, NotImplementedError) as error:
        if not syntax.is_compressed:
            raise
        why = " ".join(str(error).split())
        known = "" if "missing dependencies" in why else f" ({why[-120:]})"
        raise ImageFileError(
            f"its compression, {syntax.name}, is beyond what is installed{known}: pip install 'pylibjpeg[all]', or "
            "save it without compression"
        ) from error
    return np.asarray(stored, stored.dtype.newbyteorder("="))


def _check_deflated(path: Path) -> None:
    """Refuse a deflated file that inflates to more than memory holds, before pydicom does."""
    about = pydicom.filereader.read_file_meta_info(path)
    if not getattr(about.get("TransferSyntaxUID"), "is_deflated", False):
        return
    start = PREAMBLE + 12 + int(about.get("FileMetaInformationGroupLength") or 0)
    free = available_memory()
    with path.open("rb") as file:
        file.seek(start)
        try:
            check_inflated(file.read(), MOST_INFLATED if free is None else free // COPIES, raw=True)
        except ImageFileError:
            raise ImageFileError("it inflates to more than memory holds; cut it into parts") from None


def _check_length(path: Path) -> None:
    """Refuse a large file whose image is small, before pydicom reads all of it."""
    stored = path.stat().st_size
    if stored <= ROOM:
        return
    with path.open("rb") as file:
        head = BytesIO(file.read(ROOM))
    about = pydicom.dcmread(head, stop_before_pixels=True, specific_tags=["BitsAllocated", *SIDES])
    if not about.file_meta.TransferSyntaxUID.is_deflated:
        check_padding(_samples(about) * int(about.BitsAllocated) // 8, stored)


def _samples(about: Any) -> int:
    """How many numbers the header declares."""
    return math.prod(int(about.get(name) or 1) for name in SIDES)


def _number(about: Any, name: str, default: float) -> float:
    value = about.get(name)
    return default if value is None or value == "" else float(value)
