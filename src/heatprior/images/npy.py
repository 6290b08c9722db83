"""Arrays of numpy, .npy: (H, W) is grey; (H, W, 3 or 4) is colour if both sides are larger; all else are stacks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError
from heatprior.images.decoding import check_size
from heatprior.images.model import ImageFile, check_type, find_missing, split_samples


def read_array(path: Path) -> NDArray[Any]:
    """The array as it is; pickled objects are refused, and so is a shape that the file is too short for."""
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = reader(file)
        if dtype.hasobject:
            raise ImageFileError("it holds Python objects, not numbers; save an array of numbers")
        if min(shape, default=0) < 0:
            raise ImageFileError(f"it declares the shape {shape}; get a fresh copy")
        check_size(math.prod(shape) * dtype.itemsize, path.stat().st_size - file.tell(), expansion=1)
        file.seek(0)
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def read(path: Path) -> ImageFile:
    """Read an array as an image; its type, with the byte order, is in `native`."""
    array = read_array(path)
    check_type(array.dtype)
    if array.ndim < 2 or 0 in array.shape:
        raise ImageFileError(f"an array of shape {array.shape} is no image; expected (H, W), (H, W, 3) or a stack")
    native = array.dtype
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    colour, others = False, None
    if array.ndim == 3 and array.shape[2] in (3, 4) and min(array.shape[:2]) > array.shape[2]:
        array, colour, others = split_samples(array, 3)
    pixels, missing = find_missing(array)
    return ImageFile(path, pixels, colour, others, native=native, missing=missing)


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> None:
    """Write the array, in the byte order of the one that was read."""
    samples = np.ascontiguousarray(like.samples(pixels), pixels.dtype if like.native is None else like.native)
    with path.open("wb") as file:  # not by numpy.save, which hides why a disk does not take more
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(samples))
        file.write(samples.data)
