"""Validation of the arguments of priors: patches (..., b·b) or images (..., H, W), and their noise levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError

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
