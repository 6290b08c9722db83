"""Blur kernels: what may be one, its transfer function, and those that have a name (Gaussian, motion, bicubic)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import rfft2

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError

REACH_OF_GAUSSIANS = 4.0  # standard deviations: beyond them less than 1e-4 of the weight lies
LONGEST = 2000.0  # pixels that a kernel with a name may reach, to either side: none needs more, and few have memory
FINENESS = 16  # points in a pixel along a motion
BICUBIC_SHARPNESS = -0.5  # of Keys' kernel: as in MATLAB, Pillow and the literature on super-resolution


def as_kernel(kernel: ArrayLike) -> FloatArray:
    """A kernel (h, w) of finite numbers in float64, as given; its sum need not be one."""
    values = np.asarray(kernel)
    if values.ndim != 2 or values.size == 0 or values.dtype.kind not in "iufb":
        raise InvalidInputError(f"the kernel has shape {values.shape} and type {values.dtype}; expected numbers (h, w)")
    values = values.astype(np.float64)
    if not (np.isfinite(values).all() and values.any()):
        raise InvalidInputError("the kernel holds NaN or infinite numbers, or nothing but zeros; give a point spread")
    return values


def transfer_function(
    kernel: FloatArray, shape: tuple[int, int], centre: tuple[int, ...] | None = None
) -> NDArray[np.complex128]:
    """Of a cyclic convolution on images (H, W), as `rfft2` gives it; `centre` is the pixel that stays in place."""
    if kernel.shape[0] > shape[0] or kernel.shape[1] > shape[1]:
        raise InvalidInputError(
            f"the kernel has {kernel.shape[0]}×{kernel.shape[1]} pixels but the image only {shape[0]}×{shape[1]}; "
            "give a smaller kernel, or crop its empty border"
        )
    centre = centre or (kernel.shape[0] // 2, kernel.shape[1] // 2)
    whole = np.zeros(shape)
    whole[: kernel.shape[0], : kernel.shape[1]] = kernel
    return np.asarray(rfft2(np.roll(whole, (-centre[0], -centre[1]), axis=(0, 1))), np.complex128)


def gaussian_kernel(deviation: float) -> FloatArray:
    """A Gaussian of this standard deviation in pixels, of sum one."""
    most = LONGEST / REACH_OF_GAUSSIANS
    if not 0 < deviation <= most:
        raise InvalidInputError(
            f"the Gaussian's standard deviation is {deviation:g}; expected a positive number, at most {most:g}"
        )
    reach = int(np.ceil(REACH_OF_GAUSSIANS * deviation))
    line = np.exp(-0.5 * np.square(np.arange(-reach, reach + 1) / deviation))
    kernel = np.outer(line, line)
    return np.asarray(kernel / kernel.sum())


def motion_kernel(length: float, degrees: float) -> FloatArray:
    """A straight motion over `length` pixels, `degrees` anticlockwise from the right, of sum one."""
    most = 2 * LONGEST
    if not (np.isfinite(degrees) and 1 <= length <= most):
        raise InvalidInputError(
            f"the motion is {length:g} pixels at {degrees:g}°; expected a length of 1 to {most:g}, and a finite angle"
        )
    reach = int(np.ceil(length / 2))
    along = np.linspace(-0.5, 0.5, int(np.ceil(length * FINENESS)) + 1) * (length - 1)
    rows = reach - np.sin(np.deg2rad(degrees)) * along
    columns = reach + np.cos(np.deg2rad(degrees)) * along
    kernel = np.zeros((2 * reach + 1, 2 * reach + 1))
    for i in (0, 1):
        for j in (0, 1):  # every point is shared by the four pixels around it
            row, column = np.floor(rows) + i, np.floor(columns) + j
            part = np.clip(1.0 - np.abs(rows - row), 0, 1) * np.clip(1.0 - np.abs(columns - column), 0, 1)
            inside = part > 0
            np.add.at(kernel, (row[inside].astype(int), column[inside].astype(int)), part[inside])
    return np.asarray(kernel / kernel.sum())


def bicubic_kernel(factor: int) -> FloatArray:
    """Keys' cubic, stretched by `factor`: what reducing an image with antialiasing does; of sum one."""
    count = 4 * factor - factor % 2  # odd if the factor is: both then have a pixel in their middle
    places = np.abs(np.arange(count) - (count - 1) / 2.0) / factor  # from the middle, in pixels of the reduced image
    a = BICUBIC_SHARPNESS
    near = ((a + 2.0) * places - (a + 3.0)) * places**2 + 1.0
    far = a * (((places - 5.0) * places + 8.0) * places - 4.0)
    line = np.where(places < 1, near, np.where(places < 2, far, 0.0))
    line /= line.sum()
    return np.outer(line, line)
