"""Some frequencies were seen and the others not, as in magnetic resonance imaging: closed form, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import fft2, ifft2

from heatprior.arrays import FloatArray
from heatprior.display import describe_fields
from heatprior.errors import InvalidInputError
from heatprior.restoration.operators.measurement import Data, Measurement, as_seen, two_sides


@dataclass(frozen=True, eq=False)
class Fourier:
    """y = m · (orthonormal Fourier transform of x).

    Mask and data are in the order of `numpy.fft.fft2`, zero frequency first; y is ignored outside the mask. `sigma` is
    that of the real and of the imaginary part. The image is real, so each frequency also determines its mirror image.

    Parameters
    ----------
    mask : array_like, (H, W)
        True, or non-zero, where a frequency was measured.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> seen = np.random.default_rng(0).random((48, 48)) < 0.5
    >>> data = seen * np.fft.fft2(np.full((48, 48), 0.5), norm="ortho")
    >>> hp.restore(data, hp.operators.Fourier(seen), 0.01).shape
    (48, 48)
    """

    data_are_an_image: ClassVar[bool] = False
    mask: ArrayLike
    __repr__ = describe_fields

    def __post_init__(self) -> None:
        object.__setattr__(self, "mask", as_seen(self.mask, "frequency"))

    def on(self, data_shape: tuple[int, ...]) -> Measurement:
        """For data of the shape of the mask."""
        shape = two_sides(data_shape)
        seen = np.asarray(self.mask)
        if seen.shape != shape:
            raise InvalidInputError(f"the mask has shape {seen.shape} but the data {shape}; expected the same")
        mirrored = np.roll(seen[::-1, ::-1], (1, 1), axis=(0, 1))  # at −frequency
        often = (seen + mirrored.astype(np.float64)) / 2.0  # AᵀA of real images

        def forward(image: FloatArray) -> Data:
            return np.where(seen, fft2(image, norm="ortho"), 0.0)

        def adjoint(data: Data) -> FloatArray:
            return np.asarray(ifft2(np.where(seen, data, 0.0), norm="ortho").real)

        def inverse(right: FloatArray, ratio: float) -> FloatArray:
            return np.asarray(ifft2(fft2(right) / (often + ratio)).real)

        return Measurement(shape, shape, forward, adjoint, inverse, blind=~seen, is_complex=True, is_cyclic=True)
