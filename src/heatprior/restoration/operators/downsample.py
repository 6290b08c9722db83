"""Smaller images: convolution, then every f-th pixel. Closed form by the Fourier transform where images are cyclic."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft2, rfft2

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.restoration.operators.blur import cyclic_blur
from heatprior.restoration.operators.edges import check_edges, seen_through, within
from heatprior.restoration.operators.measurement import Data, Measurement, two_sides
from heatprior.restoration.operators.point_spreads import as_kernel, bicubic_kernel, transfer_function

LARGEST_FACTOR = 16


@dataclass(frozen=True, eq=False)
class Downsample:
    """y = every `factor`-th pixel of k ∗ x in either direction.

    Parameters
    ----------
    factor : int
        Pixels of x, in either direction, for one of y.
    kernel : array_like, (h, w), or "bicubic"
        The antialiased reduction of most programs, or an array, of sum one as a rule. A pixel of y lies in the middle
        of the factor×factor pixels that it stands for, and so does the kernel where it can: where factor and kernel are
        not both even or both odd, it lies half a pixel further up and left.
    edges : {"unknown", "cyclic"}
        As for `Blur`.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> hp.restore(np.full((24, 24), 0.5), hp.Downsample(2), 0.01).shape
    (48, 48)
    """

    factor: int
    kernel: ArrayLike | str = "bicubic"
    edges: str = "unknown"

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

    @property
    def data_are_an_image(self) -> bool:
        """Always."""
        return True

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
    autocorrelation = blur.forward(blur.adjoint(_impulse(shape)))[::factor, ::factor]
    power = rfft2(autocorrelation).real

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

    def first_guess(data: Data) -> FloatArray:
        return np.repeat(np.repeat(data, factor, axis=0), factor, axis=1)

    return Measurement(
        shape, small, forward, adjoint, inverse, inverse_of_data, first_guess=first_guess, is_cyclic=True
    )


def _impulse(shape: tuple[int, int]) -> FloatArray:
    image = np.zeros(shape)
    image[0, 0] = 1.0
    return image
