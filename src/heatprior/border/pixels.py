"""Validation of images and noise levels: what holds an image, type, channels, and the noise level in its units.

An array, a list, a masked array, xarray, a picture of Pillow, a tensor: as it comes, so it goes.

Colour is three grey images, brightness and two differences, mixed orthogonally so that their noise stays white.
Brightness is the mean (R + G + B) / 3, a grey image again. The differences of natural images are weak; CHROMA scales
them up to what a prior of grey images expects: 4 is the best at sigma 10, 25 and 50 (paper/evaluations/colour.py;
with 1, the orthonormal mix, PSNR is half a decibel less and more).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from os import PathLike
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from heatprior.arrays import ChannelAxis, FloatArray
from heatprior.errors import InvalidInputError

WHITES: dict[np.dtype[Any], float] = {  # full scale, by type
    **{np.dtype(name): float(np.iinfo(name).max) for name in ("uint8", "uint16", "uint32", "int16", "int32")},
    **{np.dtype(name): 1.0 for name in ("float16", "float32", "float64")},
}
TYPE_NAMES = ", ".join(map(str, WHITES))
LARGEST_GREY = 1e9  # over full scale; beyond it squares might overflow float32
WIDEST = (1e-30, 1e30)  # factors for which float32 will do
LARGEST_OFFSET = 3e4  # over full scale; around values beyond it float32 has steps of a grey level of 255
LEAST_WHITE = 1e-305  # below it one over full scale is beyond float64
LARGEST_SIGMA = 10.0  # over full scale; beyond it a unit was mistaken
LEAST_SIGMA_OF_INTEGERS = 0.25  # weaker noise is lost in the rounding to whole numbers
CHROMA = 4.0  # norm of the rows of the differences
WIDER = {"int8": ("int16",), "int64": ("int32", "uint32"), "uint64": ("uint32",)}  # others become these
PILLOW_MODES = ("L", "I", "I;16", "F", "RGB", "RGBA")
MOSTLY = 0.5  # of the pixels: a channel with noise never has so many of one value
ALONE = np.ones((1, 1))  # the mix of a channel by itself
COLOUR = np.array(  # orthogonal rows
    [
        np.full(3, 1 / 3),
        np.array([1.0, 0.0, -1.0]) / np.sqrt(2) * CHROMA,
        np.array([1.0, -2.0, 1.0]) / np.sqrt(6) * CHROMA,
    ]
)


class Held(NamedTuple):
    """The array that an object holds, where its colours are, the type of the result, and how to hold that again."""

    array: Any  # of numpy, or of dask
    channel_axis: ChannelAxis
    dtype: np.dtype[Any] | None  # of the result, where it is not that of the array
    wrap: Callable[[Any], Any]


def unwrap(image: Any, channel_axis: ChannelAxis = None, dtype: DTypeLike | None = None) -> Held:
    """Take the array out of an object, in a type that has a scale, what is masked as NaN; `dtype` is the result's."""
    if isinstance(image, str | PathLike):
        raise InvalidInputError(
            f"the image is a path, {str(image)!r}; read it first, as by skimage.io.imread, or run: heatprior denoise "
            f"{image}"
        )
    if _comes_from(image, "xarray"):
        if not hasattr(image, "dims") or not hasattr(image, "data") or hasattr(image, "data_vars"):
            raise InvalidInputError(f"the image is a {type(image).__name__} of xarray; give one DataArray of it")
        inner = unwrap(image.data, channel_axis, dtype)

        def label(result: Any) -> Any:  # unless it has another size: its coordinates would be wrong
            again = inner.wrap(result)
            return image.copy(data=again) if again.shape == image.shape else again

        return inner._replace(wrap=label)
    if _comes_from(image, "PIL"):
        if dtype is not None:
            raise InvalidInputError("dtype is for arrays, since a picture's mode has its own; give np.asarray(picture)")
        return _unwrap_picture(image, channel_axis)
    if _comes_from(image, "torch"):
        return _unwrap_tensor(image, channel_axis, dtype)
    if isinstance(image, list | tuple):
        masked = any(isinstance(part, np.ma.MaskedArray) for part in image)
        try:
            image = np.ma.array(image) if masked else np.asarray(image)
        except ValueError as error:  # of numpy, which speaks of sequences
            raise InvalidInputError("the image is a list whose rows differ in length; make them equal") from error
    if isinstance(image, np.ma.MaskedArray):
        return _unwrap_masked(image, channel_axis, dtype)
    narrow = _widen_integers(image)
    return Held(narrow, channel_axis, None if narrow is image else image.dtype, lambda result: result)


def _comes_from(image: object, package: str) -> bool:
    """Whether an object is of a package, which whoever gives it has imported."""
    return package in sys.modules and any(kind.__module__.partition(".")[0] == package for kind in type(image).__mro__)


def _widen_integers(image: Any) -> Any:
    """Convert integers of 8 bits with a sign, or of 64 bits, to a type with a scale that holds them; leave all else."""
    name = str(getattr(image, "dtype", ""))
    if not isinstance(image, np.ndarray) or name not in WIDER or image.size == 0:
        return image
    low, high = int(image.min()), int(image.max())
    for wider in WIDER[name]:
        limits = np.iinfo(wider)
        if limits.min <= low and high <= limits.max:
            return image.astype(wider)
    raise InvalidInputError(f"the image is {name} with values from {low} to {high}; convert it to float64")


def _unwrap_picture(image: Any, channel_axis: ChannelAxis) -> Held:
    if image.mode not in PILLOW_MODES:
        raise InvalidInputError(f"the picture is of mode {image.mode!r}; convert it, as by image.convert('RGB')")
    pixels = np.asarray(image)
    axis = -1 if channel_axis is None and pixels.ndim == 3 else channel_axis
    return Held(pixels, axis, None, sys.modules["PIL.Image"].fromarray)


def _unwrap_tensor(image: Any, channel_axis: ChannelAxis, dtype: DTypeLike | None) -> Held:
    if image.device.type != "cpu":
        raise InvalidInputError(
            f"the image is a tensor on {image.device}; give image.cpu(), or take a module of heatprior.torch"
        )
    array = image.detach().numpy()
    return unwrap(array, channel_axis, dtype)._replace(wrap=sys.modules["torch"].from_numpy)


def _unwrap_masked(image: np.ma.MaskedArray[Any, Any], channel_axis: ChannelAxis, dtype: DTypeLike | None) -> Held:
    mask, data = np.ma.getmaskarray(image), np.ma.getdata(image)
    if not mask.any():
        inner = unwrap(data, channel_axis, dtype)
        return inner._replace(wrap=lambda result: np.ma.array(result, mask=mask))
    is_float = data.dtype.kind == "f"
    wide = data.dtype if is_float else np.dtype(np.float32 if data.dtype.itemsize < 4 else np.float64)

    def mask_again(result: NDArray[Any]) -> Any:
        missing = np.isnan(result)
        if not is_float and dtype is None:
            limits = np.iinfo(data.dtype)
            result = np.rint(np.clip(np.nan_to_num(result), limits.min, limits.max)).astype(data.dtype)
        if result.shape != mask.shape:
            return result
        np.copyto(result, data, where=mask & missing, casting="unsafe")  # as numpy keeps what is masked
        return np.ma.array(result, mask=mask)

    return Held(np.where(mask, np.nan, data).astype(wide), channel_axis, None, mask_again)


def is_lazy(image: object) -> bool:
    """Whether this is a dask array, which is computed later, block by block."""
    return hasattr(type(image), "__dask_graph__") and image.__dask_graph__() is not None  # type: ignore[attr-defined]


def room_of(image: object) -> ModuleType | None:
    """The room that computes a dask array; None for an array that is here, and for what becomes one."""
    return import_module("heatprior.large.arrays") if is_lazy(image) else None


def as_pixels(image: ArrayLike) -> NDArray[Any]:
    """The image as an array of a type that has a scale, not empty; masked and infinite pixels are missing: NaN."""
    if is_lazy(image):
        raise InvalidInputError(
            "this looks at the whole image at once, for which a dask array is too large; compute a crop of it, "
            "or take hp.denoise or hp.estimate_noise, which work in blocks"
        )
    pixels = np.asarray(unwrap(image).array)
    if pixels.dtype.newbyteorder("=") not in WHITES:
        raise InvalidInputError(f"the image is of type {pixels.dtype}; expected {TYPE_NAMES}: convert it")
    if pixels.ndim < 2 or pixels.size == 0:
        raise InvalidInputError(f"the image has shape {pixels.shape}; expected (H, W), or more axes in front of them")
    if pixels.dtype.kind == "f" and np.isinf(_extremes(pixels)).any():
        return np.where(np.isinf(pixels), pixels.dtype.type(np.nan), pixels)
    return pixels


def as_result_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """The type that is asked for, which must be one that an image can have."""
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        wanted = np.dtype(object)
    if wanted not in WHITES and wanted.name not in WIDER:
        raise InvalidInputError(f"dtype is {dtype!r:.40}; expected {TYPE_NAMES}")
    return wanted


def _extremes(pixels: NDArray[Any]) -> tuple[float, float]:
    """The least and the largest value that is not NaN."""
    return float(np.fmin.reduce(pixels, axis=None)), float(np.fmax.reduce(pixels, axis=None))


def check_white(white: float, pixels: NDArray[Any]) -> float:
    """Refuse a full scale that cannot be that of the image."""
    if not (isinstance(white, int | float | np.integer | np.floating) and LEAST_WHITE < white <= sys.float_info.max):
        raise InvalidInputError(f"white is {white!r:.40}; expected the positive value that stands for full scale")
    low, high = _extremes(pixels)
    check_offset(low if low > 0 else min(high, 0.0), white)
    largest = max(abs(low), abs(high))
    too_large = largest > LARGEST_GREY * white
    if too_large or 0 < LARGEST_GREY * largest < white:  # float32 has no noise of so little a part
        remedy = "set values that stand for missing pixels to NaN, or " * too_large + "give the right full scale"
        raise InvalidInputError(f"the image has values up to {largest:g} but full scale (white) is {white:g}; {remedy}")
    return float(white)


def check_offset(middle: float, white: float) -> None:
    """Refuse an image whose values lie so far from zero that float32 would lose what they differ by."""
    if abs(middle) > LARGEST_OFFSET * white:
        raise InvalidInputError(
            f"the image has values around {middle:g} but full scale is {white:g}, too little beside it; subtract "
            "that first, or give the right full scale (white)"
        )


def type_white(pixels: NDArray[Any]) -> float:
    """Full scale of the type of an image: the largest integer, or one."""
    return WHITES[pixels.dtype.newbyteorder("=")]


def axis_or_none(channel_axis: ChannelAxis) -> int | None:
    """The axis, or None if there is none, be it by default or for sure, ()."""
    return None if isinstance(channel_axis, tuple) and not channel_axis else channel_axis


def as_channels(pixels: NDArray[Any], channel_axis: ChannelAxis) -> NDArray[Any]:
    """View an image as channels (..., C, H, W)."""
    if (channel_axis := axis_or_none(channel_axis)) is None:
        return pixels[..., None, :, :]
    if not isinstance(channel_axis, int | np.integer) or not -pixels.ndim <= channel_axis < pixels.ndim:
        raise InvalidInputError(f"channel_axis is {channel_axis!r}; the image has axes 0 to {pixels.ndim - 1}")
    if pixels.ndim < 3:
        raise InvalidInputError(
            f"the image has shape {pixels.shape}, which leaves no room for channels; leave out channel_axis"
        )
    return np.moveaxis(pixels, channel_axis, -3)


def mix_channels(channels: Sequence[NDArray[Any]] | NDArray[Any], weights: FloatArray) -> FloatArray:
    """Σ_c weights_c x_c in float32, or float64 if weights are beyond that; x itself, no copy, where that will do."""
    if len(channels) == 1 and weights[0] == 1 and channels[0].dtype == np.float32:
        return np.asarray(channels[0], np.float32)
    dtype = enough_for(float(np.abs(weights).max()))
    total: FloatArray = np.multiply(channels[0], weights[0], dtype=dtype)
    for channel, weight in zip(channels[1:], weights[1:], strict=True):
        total += np.multiply(channel, weight, dtype=dtype)
    return total


def is_alpha(channels: NDArray[Any]) -> bool:
    """Whether the last of four channels (..., 4, H, W) is transparency."""
    return channels.shape[-3] == 4 and is_transparency(channels[..., -1, :, :])


def is_transparency(values: NDArray[Any]) -> bool:
    """Whether most of a channel is exactly opaque, its largest value, or clear."""
    return bool(np.mean((values == np.max(values)) | (values == 0)) > MOSTLY)


def in_unit_range(pixels: NDArray[Any], white: float) -> FloatArray:
    """Scale pixels to grey levels from 0 to 1, in float32."""
    return np.asarray(np.multiply(pixels, 1.0 / white, dtype=enough_for(1.0 / white)), np.float32)


def enough_for(factor: float) -> type[np.float32 | np.float64]:
    """The type in which pixels are multiplied by such a factor: float32 has neither 1e300 nor 1e-300."""
    return np.float32 if WIDEST[0] < factor < WIDEST[1] else np.float64


def check_one_level(sigma: ArrayLike) -> None:
    """Refuse a noise level that is not one positive number."""
    level = np.asarray(sigma, np.float64)
    if level.ndim or not 0 < float(level) < np.inf:
        given = f"of shape {level.shape}" if level.ndim else f"{float(level):g}"
        raise InvalidInputError(f"sigma is {given}; expected one positive number, in the units of the image")


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


def as_noise_level(sigma: ArrayLike, pixels: NDArray[Any], channel_axis: ChannelAxis, white: float) -> FloatArray:
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
    if (channel_axis := axis_or_none(channel_axis)) is not None and values.shape == channels.shape[-3:-2]:
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
