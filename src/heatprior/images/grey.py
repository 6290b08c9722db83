"""Colour → grey: the luma of ITU-R BT.601, in the type of the image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError

LUMA = np.array([299.0, 587.0, 114.0]) / 1000.0  # of red, green and blue: ITU-R BT.601, as Pillow has it
LUMA_IN_BITS, BITS = np.array([19595, 38470, 7471], np.uint32), 16  # the same in 16 bits, which is how Pillow rounds
ROWS = 256  # at a time


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
    grey = np.empty(native.shape[:2], native.dtype)
    for top in range(0, len(native), ROWS):
        rows = native[top : top + ROWS, :, :3]
        if native.dtype == np.uint8:
            grey[top : top + ROWS] = (rows @ LUMA_IN_BITS + (1 << (BITS - 1))) >> BITS
        else:
            luma = rows @ LUMA
            grey[top : top + ROWS] = luma if native.dtype.kind == "f" else luma + 0.5
    return grey
