"""What holds an image: array, list, masked array, xarray, picture of Pillow or tensor; as it comes, so it goes.

None of the packages is imported: whoever gives such an object has done so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import ChannelAxis
from heatprior.errors import InvalidInputError

WIDER = {"int8": ("int16",), "int64": ("int32", "uint32"), "uint64": ("uint32",)}  # in what other integers are kept
PILLOW_MODES = ("L", "I", "I;16", "F", "RGB", "RGBA")


class Held(NamedTuple):
    """The array that an object holds, where its colours are, the type of the result, and how to hold that again."""

    array: Any  # of numpy, or of dask
    channel_axis: ChannelAxis
    dtype: np.dtype[Any] | None  # of the result, where it is not that of the array
    wrap: Callable[[Any], Any]


def unwrap(image: Any, channel_axis: ChannelAxis = None) -> Held:
    """The array in an object, of a type that has a scale; what is masked is NaN."""
    if isinstance(image, str | PathLike):
        raise InvalidInputError(
            f"the image is a path, {str(image)!r}; read it first, as by skimage.io.imread, or run: heatprior denoise "
            f"{image}"
        )
    if _comes_from(image, "xarray"):
        if not hasattr(image, "dims") or not hasattr(image, "data") or hasattr(image, "data_vars"):
            raise InvalidInputError(f"the image is a {type(image).__name__} of xarray; give one DataArray of it")
        inner = unwrap(image.data, channel_axis)
        return inner._replace(wrap=lambda result: _label(inner.wrap(result), image))
    if _comes_from(image, "PIL"):
        return _unwrap_picture(image, channel_axis)
    if _comes_from(image, "torch"):
        return _unwrap_tensor(image, channel_axis)
    if isinstance(image, np.ma.MaskedArray):
        return _unwrap_masked(image, channel_axis)
    if isinstance(image, list | tuple):
        image = np.asarray(image)
    narrow = _in_known_type(image)
    return Held(narrow, channel_axis, None if narrow is image else image.dtype, lambda result: result)


def _label(result: Any, image: Any) -> Any:
    """The result as an array of xarray, unless it has another size: its coordinates would be wrong."""
    return image.copy(data=result) if result.shape == image.shape else result


def _comes_from(image: object, package: str) -> bool:
    return package in sys.modules and any(kind.__module__.partition(".")[0] == package for kind in type(image).__mro__)


def _in_known_type(image: Any) -> Any:
    """Integers of other lengths as those that hold their values; everything else as it is."""
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
    if channel_axis is None and pixels.ndim == 3:
        channel_axis = -1
    make = sys.modules["PIL.Image"].fromarray
    return Held(pixels, channel_axis, None, make)


def _unwrap_tensor(image: Any, channel_axis: ChannelAxis) -> Held:
    if image.device.type != "cpu":
        raise InvalidInputError(
            f"the image is a tensor on {image.device}; give image.cpu(), or take a module of heatprior.torch"
        )
    array = image.detach().numpy()
    narrow = _in_known_type(array)
    make = sys.modules["torch"].from_numpy
    return Held(narrow, channel_axis, None if narrow is array else array.dtype, make)


def _unwrap_masked(image: np.ma.MaskedArray[Any, Any], channel_axis: ChannelAxis) -> Held:
    mask, data = np.ma.getmaskarray(image), np.ma.getdata(image)
    if not mask.any():
        inner = unwrap(data, channel_axis)
        return inner._replace(wrap=lambda result: np.ma.array(result, mask=mask))
    if data.dtype.kind == "f":
        return Held(np.where(mask, np.nan, data).astype(data.dtype), channel_axis, None, lambda r: _mask(r, mask))
    wide = np.float32 if data.dtype.itemsize < 4 else np.float64
    floats = np.where(mask, np.nan, data).astype(wide)

    def mask_again(result: NDArray[Any]) -> Any:
        limits = np.iinfo(data.dtype)
        whole = np.rint(np.clip(np.nan_to_num(result), limits.min, limits.max)).astype(data.dtype)
        return _mask(whole, mask)

    return Held(floats, channel_axis, None, mask_again)


def _mask(result: NDArray[Any], mask: NDArray[np.bool_]) -> Any:
    return np.ma.array(result, mask=mask) if result.shape == mask.shape else result
