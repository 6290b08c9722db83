"""Convolution with a known kernel, and what is left of it on every f-th pixel: blurred images, and smaller ones.

Both have a closed form by the Fourier transform where images are cyclic. Where the edges are unknown the image reaches
further than what was seen, as far as the kernel does: on the larger image the operator is cyclic, and only the inner
part of its data was observed, A = (window) · (cyclic operator). That has no closed form, but the cyclic inverse is so
near to it that a few steps of conjugate gradients do the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft2, next_fast_len, rfft2

from heatprior.arrays import FloatArray
from heatprior.display import describe_fields
from heatprior.errors import InvalidInputError
from heatprior.restoration.operators.measurement import Data, Measurement, Window, two_sides

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
            f"the kernel has {kernel.shape[1]}×{kernel.shape[0]} pixels but the image only {shape[1]}×{shape[0]}; "
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


EDGES = ("unknown", "cyclic")


def check_edges(edges: str) -> None:
    """Refuse what edges cannot be."""
    if edges not in EDGES:
        raise InvalidInputError(f"edges is {edges!r}; expected {' or '.join(map(repr, EDGES))}")


def within(start: Sequence[int], shape: tuple[int, int]) -> Window:
    """The window of this shape that begins there."""
    return slice(start[0], start[0] + shape[0]), slice(start[1], start[1] + shape[1])


def seen_through(cyclic: Measurement, window: Window, inside: Window) -> Measurement:
    """A cyclic measurement of which only the data in the `window` were seen; `inside` is the image wanted."""
    shape = (window[0].stop - window[0].start, window[1].stop - window[1].start)
    margins = [(part.start, total - part.stop) for part, total in zip(window, cyclic.data_shape, strict=True)]
    guess = cyclic.first_guess
    assert guess is not None
    return Measurement(
        cyclic.image_shape,
        shape,
        forward=lambda image: cyclic.forward(image)[window],
        adjoint=lambda data: cyclic.adjoint(np.pad(data, margins)),
        nearly_inverse=cyclic.inverse,
        first_guess=lambda data: guess(np.pad(data, margins, mode="edge")),
        inside=inside,
    )


@dataclass(frozen=True, eq=False)
class Blur:
    """y = k ∗ x: convolution with a point spread function.

    Parameters
    ----------
    kernel : array_like, (h, w)
        The point spread function, the image of a single bright pixel; its centre is pixel (h // 2, w // 2).
    edges : {"unknown", "cyclic"}
        "unknown": pixels beyond the edges of y have contributed to it; they are estimated, and cut off at the end.
        "cyclic": images are periodic.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> blurred = np.full((48, 48), 0.5)
    >>> hp.restore(blurred, hp.operators.Blur(np.ones((3, 3)) / 9), 0.01).shape
    (48, 48)
    """

    data_are_an_image: ClassVar[bool] = True
    kernel: ArrayLike
    edges: str = "unknown"
    __repr__ = describe_fields

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        check_edges(self.edges)

    def on(self, data_shape: tuple[int, ...]) -> Measurement:
        """For data (H, W)."""
        shape = two_sides(data_shape)
        kernel = np.asarray(self.kernel)
        transfer_function(kernel, shape)  # refuses kernels that are larger than what was seen
        if self.edges == "cyclic":
            return cyclic_blur(kernel, shape)
        if kernel.size == 1:
            return replace(cyclic_blur(kernel, shape), is_cyclic=False)
        before = (kernel.shape[0] - 1 - kernel.shape[0] // 2, kernel.shape[1] - 1 - kernel.shape[1] // 2)
        height, width = (next_fast_len(n + k - 1, real=True) for n, k in zip(shape, kernel.shape, strict=True))
        inside = within(before, shape)
        return seen_through(cyclic_blur(kernel, (height, width)), inside, inside)


def cyclic_blur(kernel: FloatArray, shape: tuple[int, int], centre: tuple[int, ...] | None = None) -> Measurement:
    """(AᵀA + ratio)⁻¹ divides by |K|² + ratio, frequency by frequency."""
    transfer = transfer_function(kernel, shape, centre)
    power = np.abs(transfer) ** 2
    return Measurement(
        shape,
        shape,
        forward=lambda image: np.asarray(irfft2(rfft2(image) * transfer, s=shape)),
        adjoint=lambda data: np.asarray(irfft2(rfft2(data) * transfer.conj(), s=shape)),
        inverse=lambda right, ratio: np.asarray(irfft2(rfft2(right) / (power + ratio), s=shape)),
        first_guess=np.copy,
        is_cyclic=True,
    )


LARGEST_FACTOR = 16


@dataclass(frozen=True, eq=False)
class Downsample:
    """y = every `factor`-th pixel of k ∗ x in either direction.

    Parameters
    ----------
    factor : int
        Pixels of x for one of y, in either direction.
    kernel : array_like, (h, w), or "bicubic"
        "bicubic", the antialiased reduction of most programs, or an array, usually of sum one. A pixel of y is at the
        centre of its factor×factor pixels, and so is the kernel; if factor and kernel are not both even or both odd, it
        is half a pixel further up and left.
    edges : {"unknown", "cyclic"}
        As for `Blur`.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> hp.restore(np.full((24, 24), 0.5), hp.operators.Downsample(2), 0.01).shape
    (48, 48)
    """

    data_are_an_image: ClassVar[bool] = True
    factor: int
    kernel: ArrayLike | str = "bicubic"
    edges: str = "unknown"
    __repr__ = describe_fields

    def __post_init__(self) -> None:
        if not isinstance(self.factor, int | np.integer) or not 1 <= self.factor <= LARGEST_FACTOR:
            raise InvalidInputError(
                f"the factor is {self.factor!r}; expected a whole number from 1 to {LARGEST_FACTOR}"
            )
        if isinstance(self.kernel, str) and self.kernel != "bicubic":
            raise InvalidInputError(f"the kernel is {self.kernel!r}; expected 'bicubic' or an array (h, w)")
        kernel = bicubic_kernel(self.factor) if isinstance(self.kernel, str) else as_kernel(self.kernel)
        object.__setattr__(self, "kernel", kernel)
        check_edges(self.edges)

    def on(self, data_shape: tuple[int, ...]) -> Measurement:
        """For data (h, w); the image has (factor h, factor w) pixels."""
        small, f, kernel = two_sides(data_shape), int(self.factor), np.asarray(self.kernel)
        transfer_function(kernel, (f * small[0], f * small[1]))  # refuses kernels that are larger than the image
        if self.edges == "cyclic":
            return cyclic_downsample(kernel, f, small)
        # pixels of y, on either side, that the kernel reaches beyond its own block
        beyond = [-(-max(0, (side - f + 1) // 2) // f) for side in kernel.shape]
        if not any(beyond):
            return replace(cyclic_downsample(kernel, f, small), is_cyclic=False)
        window = within(beyond, small)
        inside = within((f * beyond[0], f * beyond[1]), (f * small[0], f * small[1]))
        whole = (small[0] + 2 * beyond[0], small[1] + 2 * beyond[1])
        return seen_through(cyclic_downsample(kernel, f, whole), window, inside)


def cyclic_downsample(kernel: FloatArray, factor: int, small: tuple[int, int]) -> Measurement:
    """(AᵀA + ratio)⁻¹ = (1 − Aᵀ (A Aᵀ + ratio)⁻¹ A) / ratio, by Woodbury: A Aᵀ is cyclic on the small image.

    Frequencies that fall onto one another when pixels are left out add up there: A Aᵀ multiplies by the mean of |K|²
    over the factor² of them.
    """
    shape = (factor * small[0], factor * small[1])
    # the kernel covers the pixels of a block from (factor − side) // 2 on; a convolution turns it by 180°
    centre = tuple((factor - side) // 2 + side - 1 for side in kernel.shape)
    blur = cyclic_blur(kernel, shape, centre)
    autocorrelation = irfft2(np.abs(transfer_function(kernel, shape, centre)) ** 2, s=shape)
    power = rfft2(autocorrelation[::factor, ::factor]).real

    def forward(image: FloatArray) -> Data:
        return blur.forward(image)[::factor, ::factor]

    def adjoint(data: Data) -> FloatArray:
        spread = np.zeros(shape)
        spread[::factor, ::factor] = data
        return blur.adjoint(spread)

    def inverse_of_data(data: Data, ratio: float) -> Data:
        return np.asarray(irfft2(rfft2(data) / (power + ratio), s=small))

    def inverse(right: FloatArray, ratio: float) -> FloatArray:
        return np.asarray((right - adjoint(inverse_of_data(forward(right), ratio))) / ratio)

    return Measurement(
        shape,
        small,
        forward,
        adjoint,
        inverse,
        inverse_of_data,
        first_guess=lambda data: data.repeat(factor, axis=0).repeat(factor, axis=1),
        is_cyclic=True,
    )
