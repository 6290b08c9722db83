"""Some pixels, or some frequencies, as in magnetic resonance imaging, were seen and the others not: in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import fft2, ifft2

from heatprior.arrays import FloatArray
from heatprior.border.gaps import fill_missing
from heatprior.display import describe_fields
from heatprior.errors import InvalidInputError
from heatprior.restoration.operators.measurement import Data, Measurement


@dataclass(frozen=True, eq=False)
class Mask:
    """y = m x: only the pixels in the mask were observed; other values of y are ignored.

    Parameters
    ----------
    mask : array_like, (H, W)
        True, or non-zero, where a pixel was observed.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> seen = np.ones((48, 48), bool)
    >>> seen[20:24] = False
    >>> hp.restore(np.full((48, 48), 0.5), hp.operators.Mask(seen), 0.01).shape
    (48, 48)
    """

    data_are_an_image: ClassVar[bool] = True  # with gaps
    mask: ArrayLike
    __repr__ = describe_fields

    def __post_init__(self) -> None:
        object.__setattr__(self, "mask", as_seen(self.mask, "pixel"))

    def on(self, data_shape: tuple[int, ...]) -> Measurement:
        """For data of the shape of the mask."""
        seen = np.asarray(self.mask)
        shape = check_shape(seen, data_shape, "image")

        def masked(values: Data) -> Data:
            return np.where(seen, values, 0.0)

        def inverse(right: FloatArray, ratio: float) -> FloatArray:
            return np.asarray(right / (seen + ratio))

        def first_guess(data: Data) -> FloatArray:
            image = np.where(seen, data, np.nan)
            fill_missing(image)
            return np.asarray(image)

        return Measurement(shape, shape, masked, masked, inverse, first_guess=first_guess, blind=~seen)


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
        seen = np.asarray(self.mask)
        shape = check_shape(seen, data_shape, "data")
        mirrored = np.roll(seen[::-1, ::-1], (1, 1), axis=(0, 1))  # at −frequency
        often = (seen + mirrored.astype(np.float64)) / 2.0  # AᵀA of real images
        return Measurement(
            shape,
            shape,
            forward=lambda image: np.where(seen, fft2(image, norm="ortho"), 0.0),
            adjoint=lambda data: np.asarray(ifft2(np.where(seen, data, 0.0), norm="ortho").real),
            inverse=lambda right, ratio: np.asarray(ifft2(fft2(right) / (often + ratio)).real),
            blind=~seen,
            is_complex=True,
            is_cyclic=True,
        )


def as_seen(mask: ArrayLike, what: str) -> NDArray[np.bool_]:
    """A mask (H, W) that is True, or not zero, where `what` was seen; refused if that is nowhere."""
    values = np.asarray(mask)
    if values.ndim != 2 or values.dtype.kind not in "iufb":
        raise InvalidInputError(f"the mask has shape {values.shape} and type {values.dtype}; expected (H, W), bool")
    if not values.any():
        raise InvalidInputError(f"the mask has no valid {what}; it must be True, or not zero, where it was seen")
    return np.asarray(values != 0)


def check_shape(seen: NDArray[np.bool_], data_shape: tuple[int, ...], what: str) -> tuple[int, int]:
    """The shape of a mask; refuses data of another."""
    if seen.shape != data_shape:
        raise InvalidInputError(f"the mask has shape {seen.shape} but the {what} {data_shape}; expected the same")
    return seen.shape[0], seen.shape[1]
