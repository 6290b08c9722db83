"""Validation of images and noise levels: the type and the scale of an image, and the noise level in its units."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.lazy import is_lazy

WHITES: dict[np.dtype[Any], float] = {  # full scale, by type
    **{np.dtype(name): float(np.iinfo(name).max) for name in ("uint8", "uint16", "uint32", "int16", "int32")},
    **{np.dtype(name): 1.0 for name in ("float16", "float32", "float64")},
}
LARGEST_FLOAT = 10.0  # of an image scaled to [0, 1], noise and glare included; beyond it the scale is another one
LARGEST_GREY = 1e9  # over full scale; beyond it squares might overflow float32
LARGEST_SIGMA = 10.0  # over full scale; beyond it a unit was mistaken
LEAST_SIGMA_OF_INTEGERS = 0.25  # weaker noise is lost in the rounding to whole numbers
DIM = 1 / 16  # integers of 16 bits or more that stay below this part of their range have another full scale


def as_pixels(image: ArrayLike) -> NDArray[Any]:
    """The image as an array of a type that has a scale, not empty; masked and infinite pixels are missing: NaN."""
    if is_lazy(image):
        raise InvalidInputError(
            "this looks at the whole image at once, for which a dask array is too large; compute a crop of it, "
            "or take hp.denoise or hp.estimate_noise, which work in blocks"
        )
    if np.ma.is_masked(image):
        if np.asarray(image).dtype.kind != "f":
            raise InvalidInputError("the image is masked but holds integers; convert it to float, with NaN for missing")
        image = np.ma.filled(image, np.nan)
    pixels = np.asarray(image)
    if pixels.dtype.newbyteorder("=") not in WHITES:
        raise InvalidInputError(
            f"the image is of type {pixels.dtype}; expected {', '.join(map(str, WHITES))}: convert it"
        )
    if pixels.ndim < 2 or pixels.size == 0:
        raise InvalidInputError(f"the image has shape {pixels.shape}; expected (H, W), or more axes in front of them")
    if pixels.dtype.kind == "f" and np.isinf(_extremes(pixels)).any():
        return np.where(np.isinf(pixels), pixels.dtype.type(np.nan), pixels)
    return pixels


def _extremes(pixels: NDArray[Any]) -> tuple[float, float]:
    """The least and the largest value that is not NaN."""
    return float(np.fmin.reduce(pixels, axis=None)), float(np.fmax.reduce(pixels, axis=None))


def as_white(white: float | None, pixels: NDArray[Any]) -> float:
    """The value that stands for full scale: as given, else by type; refused or doubted where that seems wrong."""
    if white is not None:
        if not (isinstance(white, int | float | np.integer | np.floating) and 0 < white < np.inf):
            raise InvalidInputError(f"white is {white!r}; expected the positive value that stands for full scale")
        largest = max(abs(end) for end in _extremes(pixels))
        if largest > LARGEST_GREY * white:
            raise InvalidInputError(
                f"the image has values up to {largest:g} but full scale (white) is {white:g}; set values that stand "
                "for missing pixels to NaN, or give the right full scale"
            )
        return float(white)
    default = type_white(pixels)
    if pixels.dtype.kind == "f":
        largest = max(abs(end) for end in _extremes(pixels))
        if largest > LARGEST_FLOAT:
            raise InvalidInputError(
                f"the image is of floats up to {largest:g}, not scaled to [0, 1]; give the value of full "
                "scale (white), such as 255"
            )
    elif pixels.dtype.itemsize >= 2 and 0 < (brightest := int(pixels.max())) < DIM * default:
        bits = 8 * pixels.dtype.itemsize
        warnings.warn(
            f"the largest value of this {bits}-bit image is {brightest}; if full scale is less than {default:.0f}, "
            f"give it (white), such as {2 ** brightest.bit_length() - 1}",
            stacklevel=3,
        )
    return default


def type_white(pixels: NDArray[Any]) -> float:
    """Full scale of the type of an image: the largest integer, or one."""
    return WHITES[pixels.dtype.newbyteorder("=")]


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


def warn_of_unlikely_units(sigma: ArrayLike, pixels: NDArray[Any], white: float) -> None:
    """Warn of a noise level that no such image can have: it was probably given in other units."""
    highest = float(np.max(sigma))
    if highest > white:
        warnings.warn(
            f"sigma is {highest:g}, more than full scale ({white:g}); give it in the units of the image", stacklevel=4
        )
    if pixels.dtype.kind != "f" and highest < LEAST_SIGMA_OF_INTEGERS:
        warnings.warn(
            f"sigma is {highest:g} but the image holds whole numbers up to {white:g}, which hide so little noise; "
            "give it in the units of the image",
            stacklevel=4,
        )


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


def integer_limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The range of an integer type, to the nearest numbers within it that float32 has."""
    limits = np.iinfo(dtype)
    highest = np.float32(limits.max)
    return float(limits.min), float(highest if int(highest) <= limits.max else np.nextafter(highest, np.float32(0)))
