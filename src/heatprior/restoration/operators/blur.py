"""Convolution with a known kernel, closed form by the Fourier transform where images are cyclic."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft2, next_fast_len, rfft2

from heatprior.arrays import FloatArray
from heatprior.restoration.operators.edges import check_edges, seen_through, within
from heatprior.restoration.operators.measurement import Measurement, two_sides
from heatprior.restoration.operators.point_spreads import as_kernel, transfer_function


@dataclass(frozen=True, eq=False)
class Blur:
    """y = k ∗ x: each pixel of y is a weighted sum of those around it in x, weights being the kernel turned by 180°.

    Parameters
    ----------
    kernel : array_like, (h, w)
        A point spread function: what one bright pixel becomes; its middle is pixel (h // 2, w // 2).
    edges : {"unknown", "cyclic"}
        Unknown: y has seen pixels beyond its edges that nobody knows; they are estimated and cut off. Cyclic: images go
        on periodically, as in many experiments and in no photograph.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> blurred = np.full((48, 48), 0.5)
    >>> hp.restore(blurred, hp.Blur(np.ones((3, 3)) / 9), 0.01).shape
    (48, 48)
    """

    kernel: ArrayLike
    edges: str = "unknown"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        check_edges(self.edges)

    @property
    def data_are_an_image(self) -> bool:
        """Always."""
        return True

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

    def forward(image: FloatArray) -> FloatArray:
        return np.asarray(irfft2(rfft2(image) * transfer, s=shape))

    def adjoint(data: FloatArray) -> FloatArray:
        return np.asarray(irfft2(rfft2(data) * transfer.conj(), s=shape))

    def inverse(right: FloatArray, ratio: float) -> FloatArray:
        return np.asarray(irfft2(rfft2(right) / (power + ratio), s=shape))

    return Measurement(shape, shape, forward, adjoint, inverse, first_guess=np.copy, is_cyclic=True)
