"""Image files → grey arrays as they come: 8 bit, 16 bit or float. PNG, JPEG, TIFF and .npy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError
from heatprior.images import arrays, png
from heatprior.images.model import explaining

PILLOW_SUFFIXES = (".png", ".jpg", ".jpeg")
TIFF_SUFFIXES = (".tif", ".tiff")
SUFFIXES = (*PILLOW_SUFFIXES, *TIFF_SUFFIXES, ".npy")
LUMA = np.array([299.0, 587.0, 114.0]) / 1000.0  # of red, green and blue: ITU-R BT.601, as Pillow has it


def read_grey(path: Path) -> NDArray[Any]:
    """An image file as a grey array (H, W): uint8, uint16 or float, in the units of the file.

    Colour is converted by its luma, Y = 0.299 R + 0.587 G + 0.114 B, in the type of the file; transparency is ignored.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ImageFileError(f"cannot read {path}: it does not end in {', '.join(SUFFIXES)}; convert it")
    with explaining(path):
        if path.stat().st_size == 0:
            raise ImageFileError(f"cannot read {path}: the file is empty; get a fresh copy")
        if suffix == ".npy":
            pixels = arrays.read_array(path)
        elif suffix == ".png" and png.has_wide_colours(path):
            pixels = png.read(path).pixels
        elif suffix in TIFF_SUFFIXES and _needs_tifffile(path):
            pixels = _read_with_tifffile(path)
        else:
            pixels = _read_with_pillow(path)
        return to_grey(pixels)


def to_grey(pixels: NDArray[Any]) -> NDArray[Any]:
    """An image (H, W), or (H, W, channels) with 1 or 3 colours and perhaps transparency, as grey (H, W)."""
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and not 1 <= pixels.shape[2] <= 4) or 0 in pixels.shape:
        raise ImageFileError(f"an array of shape {pixels.shape} is no image; expected (H, W), or (H, W, 1 to 4)")
    if pixels.dtype.kind != "f" and pixels.dtype not in (np.dtype("u1"), np.dtype("u2"), np.dtype(">u2")):
        raise ImageFileError(f"pixels of type {pixels.dtype} have no known scale; expected uint8, uint16 or float")
    native = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)
    if native.ndim == 2:
        return native
    if native.shape[2] <= 2:
        return native[..., 0]
    luma = native[..., :3] @ LUMA
    return luma.astype(native.dtype) if native.dtype.kind == "f" else (luma + 0.5).astype(native.dtype)


def _read_with_pillow(path: Path) -> NDArray[Any]:
    from PIL import Image  # noqa: PLC0415 (slow to import)

    with Image.open(path) as image:
        if image.mode == "I":  # how older Pillows read grey PNGs of 16 bits
            wide = np.asarray(image)
            if wide.min() < 0 or wide.max() > np.iinfo(np.uint16).max:
                raise ImageFileError(f"cannot read {path}: it has 32 bits per pixel; convert it to 16 bits")
            return wide.astype(np.uint16)
        if image.mode.startswith("I;16") or image.mode == "F":
            return np.asarray(image)
        return np.asarray(image.convert("L"))


def _needs_tifffile(path: Path) -> bool:
    """Whether Pillow, which knows more compressions, would refuse this TIFF or lose bits of it."""
    from PIL import Image, TiffImagePlugin, UnidentifiedImageError  # noqa: PLC0415

    try:
        with Image.open(path) as image:
            bits = image.tag_v2.get(TiffImagePlugin.BITSPERSAMPLE, (1,)) if hasattr(image, "tag_v2") else (8,)
            pages = getattr(image, "n_frames", 1)
            if pages > 1:
                raise ImageFileError(f"cannot read {path}: it has {pages} pages; save one image per file")
            return len(bits) > 1 and max(bits) > 8
    except UnidentifiedImageError:
        return True


def _read_with_tifffile(path: Path) -> NDArray[Any]:
    from tifffile import TiffFile  # noqa: PLC0415

    with TiffFile(path) as file:
        page = file.pages.first
        if len(file.pages) > 1:
            raise ImageFileError(f"cannot read {path}: it has {len(file.pages)} pages; save one image per file")
        pixels = page.asarray()
        return np.moveaxis(pixels, 0, -1) if page.axes.startswith("S") else pixels
