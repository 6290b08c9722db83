"""The arguments of priors, checked: patches (..., b·b) or images (..., H, W), and their noise levels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.threads import for_each

LARGEST_GREY = 1e9  # beyond it squares might overflow float32
LARGEST_SIGMA = 1e6  # beyond it squares might overflow


def as_patches(y: FloatArray, size: int) -> FloatArray:
    """Patches of size×size pixels as float32 or float64."""
    y = np.asarray(y)
    if not np.issubdtype(y.dtype, np.floating):
        raise InvalidInputError(f"patches are {y.dtype}; expected floats scaled to [0, 1] (divide 8-bit values by 255)")
    if y.ndim == 0 or y.shape[-1] != size**2:
        raise InvalidInputError(
            f"patches have {y.shape[-1] if y.ndim else 1} pixels but this prior acts on {size**2} "
            f"({size}×{size}); extract them with size={size}"
        )
    return y.astype(np.float32 if y.dtype.itemsize <= 4 else np.float64, copy=False)


def as_images(y: FloatArray) -> FloatArray:
    """Images (..., H, W) as float64, checked to be finite."""
    y = np.asarray(y)
    if not np.issubdtype(y.dtype, np.floating):
        raise InvalidInputError(f"images are {y.dtype}; expected floats scaled to [0, 1] (divide 8-bit values by 255)")
    if y.ndim < 2 or y.size == 0:
        raise InvalidInputError(f"images have shape {y.shape}; expected (H, W), or more axes in front of them")
    return in_double(y, "images")


def in_double(values: FloatArray, what: str = "patches") -> FloatArray:
    """Patches or images in float64, checked to be finite."""
    if not np.isfinite(values).all():
        raise InvalidInputError(f"{what} hold NaN or infinite values; fill or leave out such {what} first")
    if np.abs(values).max(initial=0.0) > LARGEST_GREY:
        raise InvalidInputError(f"{what} hold values beyond ±{LARGEST_GREY:g}; scale grey levels to [0, 1]")
    return values.astype(np.float64)


def as_sigma(sigma: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """`sigma` as one number per patch, (*shape), without copying a constant."""
    values = np.asarray(sigma)
    if values.dtype.kind not in "iuf":
        raise InvalidInputError(f"sigma is of type {values.dtype}; expected a number or an array of numbers")
    bad = values[~((values >= 0) & (values <= LARGEST_SIGMA))]
    if bad.size:
        raise InvalidInputError(
            f"sigma is {bad.flat[0]:g}; it must be finite and not negative, at most {LARGEST_SIGMA:g}: the standard "
            "deviation of the noise, grey levels being 0 to 1"
        )
    try:
        return np.broadcast_to(values.astype(np.float64, copy=False), shape)
    except ValueError as error:
        raise InvalidInputError(
            f"sigma has shape {values.shape} but the patches are {shape}; give one number, or one per patch"
        ) from error


def as_sigmas_of(count: int, sigma: ArrayLike) -> FloatArray:
    """The noise levels of `count` samples, (count,)."""
    if count < 0:
        raise InvalidInputError(f"count is {count}; expected 0 or more")
    return as_sigma(sigma, (count,))


def evaluate(
    function: Callable[[int, FloatArray, FloatArray], tuple[FloatArray, ...]],
    y: FloatArray,
    sigma: ArrayLike,
    size: int,
    chunk: int,
) -> tuple[FloatArray, ...]:
    """Arrays (..., ·) in the type of y, of function(start, y (n, a), sigma (n,)) on runs of patches, on all cores."""
    y = as_patches(y, size)
    flat, sigmas = y.reshape(-1, size**2), as_sigma(sigma, y.shape[:-1]).reshape(-1)

    def work(start: int) -> tuple[FloatArray, ...]:
        some = slice(start, start + chunk)
        return tuple(x.astype(y.dtype) for x in function(start, in_double(flat[some]), sigmas[some]))

    columns = zip(*for_each(work, range(0, max(len(flat), 1), chunk)), strict=True)
    return tuple(np.concatenate(parts).reshape(y.shape[:-1] + parts[0].shape[1:]) for parts in columns)
