"""Some pixels were seen and the others not: closed form, pixel by pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray
from heatprior.border.gaps import fill_missing
from heatprior.display import describe_fields
from heatprior.errors import InvalidInputError
from heatprior.restoration.operators.measurement import Data, Measurement, as_seen, two_sides


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
        shape = two_sides(data_shape)
        seen = np.asarray(self.mask)
        if seen.shape != shape:
            raise InvalidInputError(f"the mask has shape {seen.shape} but the image {shape}; expected the same")

        def masked(values: Data) -> Data:
            return np.where(seen, values, 0.0)

        def inverse(right: FloatArray, ratio: float) -> FloatArray:
            return np.asarray(right / (seen + ratio))

        def first_guess(data: Data) -> FloatArray:
            image = np.where(seen, data, np.nan)
            fill_missing(image)
            return np.asarray(image)

        return Measurement(shape, shape, masked, masked, inverse, first_guess=first_guess, blind=~seen)
