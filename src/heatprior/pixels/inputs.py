"""What may be denoised, checked at the border: the type and the scale of an image, and the noise level in its units."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError

WHITES = {np.dtype("u1"): 255.0, np.dtype("u2"): 65535.0, np.dtype("f4"): 1.0, np.dtype("f8"): 1.0}
LARGEST_FLOAT = 10.0  # of an image scaled to [0, 1], noise and glare included; beyond it the scale is another one
LARGEST_SIGMA = 10.0  # over full scale; beyond it a unit was mistaken
DIM = 1 / 16  # a 16-bit image that stays below this part of its scale comes from a camera of fewer bits


def as_pixels(image: ArrayLike) -> NDArray[Any]:
    """The image as an array of a type that has a scale, not empty, without infinite values; masked pixels are NaN."""
    if np.ma.is_masked(image):
        if np.asarray(image).dtype.kind != "f":
            raise InvalidInputError("the image is masked but holds integers; convert it to float, with NaN for missing")
        image = np.ma.filled(image, np.nan)
    pixels = np.asarray(image)
    if pixels.dtype.newbyteorder("=") not in WHITES:
        raise InvalidInputError(
            f"the image is of type {pixels.dtype}; expected uint8, uint16, float32 or float64: convert it"
        )
    if pixels.ndim < 2 or pixels.size == 0:
        raise InvalidInputError(f"the image has shape {pixels.shape}; expected (H, W), or more axes in front of them")
    if (
        pixels.dtype.kind == "f"
        and np.isinf([np.fmax.reduce(pixels, axis=None), np.fmin.reduce(pixels, axis=None)]).any()
    ):
        raise InvalidInputError("the image holds infinite values; set them to NaN, which means missing")
    return pixels


def as_white(white: float | None, pixels: NDArray[Any]) -> float:
    """The value that stands for full scale: as given, else by type; refused or doubted where that seems wrong."""
    if white is not None:
        if not (isinstance(white, int | float | np.integer | np.floating) and 0 < white < np.inf):
            raise InvalidInputError(f"white is {white!r}; expected the positive value that stands for full scale")
        return float(white)
    default = WHITES[pixels.dtype.newbyteorder("=")]
    if pixels.dtype.kind == "f":
        largest = max(float(np.fmax.reduce(pixels, axis=None)), -float(np.fmin.reduce(pixels, axis=None)))
        if largest > LARGEST_FLOAT:
            raise InvalidInputError(
                f"the image is of floats up to {largest:g}, not scaled to [0, 1]; give the value of full "
                "scale (white), such as 255"
            )
    elif pixels.dtype.itemsize == 2 and 0 < (brightest := int(pixels.max())) < DIM * default:
        warnings.warn(
            f"the largest value of this 16-bit image is {brightest}; if full scale is less than 65535, give it "
            f"(white), such as {2 ** brightest.bit_length() - 1}",
            stacklevel=3,
        )
    return default


def as_channels(pixels: NDArray[Any], channel_axis: int | None) -> NDArray[Any]:
    """A view (..., channels, H, W)."""
    if channel_axis is None:
        return pixels[..., None, :, :]
    if not isinstance(channel_axis, int | np.integer) or not -pixels.ndim <= channel_axis < pixels.ndim:
        raise InvalidInputError(f"channel_axis is {channel_axis!r}; the image has axes 0 to {pixels.ndim - 1}")
    if pixels.ndim < 3:
        raise InvalidInputError(
            f"the image has shape {pixels.shape}, which leaves no room for channels; leave out channel_axis"
        )
    return np.moveaxis(pixels, channel_axis, -3)


def in_unit_range(pixels: NDArray[Any], white: float) -> FloatArray:
    """Grey levels from 0 to 1, in float32."""
    return np.asarray(np.multiply(pixels, 1.0 / white, dtype=np.float32))


def as_noise_level(sigma: ArrayLike, pixels: NDArray[Any], channel_axis: int | None, white: float) -> FloatArray:
    """The noise level in the units of the image: one number, one per channel (channels, 1, 1), or a map (..., H, W)."""
    if np.ma.is_masked(sigma):
        raise InvalidInputError("sigma holds masked values; give a positive number for every pixel")
    values = np.asarray(sigma)
    if values.dtype.kind not in "iuf":
        raise InvalidInputError(
            f"sigma is {values.dtype}, such as {sigma!r:.40}; expected a number or an array of numbers"
        )
    lowest, highest = (values.min(), values.max()) if values.size else (np.nan, np.nan)
    if values.size > 1 and np.isnan(lowest):
        raise InvalidInputError("sigma is a map that holds NaN; give a positive number for every pixel")
    if not 0 < lowest <= highest < np.inf:
        bad = lowest if not lowest > 0 else highest
        raise InvalidInputError(f"sigma is {bad:g}; expected a positive number, in the units of the image")
    if highest > LARGEST_SIGMA * white:
        raise InvalidInputError(
            f"sigma is {highest:g} but full scale is {white:g}; give sigma in the units of the image, or the value of "
            "full scale (white)"
        )
    channels = as_channels(pixels, channel_axis)
    if values.ndim == 0 or values.shape == channels.shape[-2:]:
        return values
    if values.shape == pixels.shape:
        return as_channels(values, channel_axis)
    if channel_axis is not None and values.shape == channels.shape[-3:-2]:
        return values[:, None, None]
    raise InvalidInputError(
        f"sigma has shape {values.shape} but the image {pixels.shape}; expected one number, "
        + ("" if channel_axis is None else f"{channels.shape[-3]} numbers (one per channel), ")
        + f"or a map {channels.shape[-2:]} or {pixels.shape}"
    )
