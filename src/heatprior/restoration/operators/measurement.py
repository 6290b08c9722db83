"""What an operator is: y = A x + noise, for real images x (H, W) and data y of any shape, real or complex.

`Operator` is what a user writes down, such as `hp.Blur(kernel)`: it does not know sizes. `on(data shape)` makes of it a
`Measurement`, A itself. Where data are complex, Aᵀ stands for the real part of the conjugate transpose, so that
Re⟨A x, r⟩ = ⟨x, Aᵀ r⟩: real and imaginary part are data like any others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError

Data = NDArray[Any]  # real or complex
Inverse = Callable[[FloatArray, float], FloatArray]  # of an image or of data, and a ratio of variances
Window = tuple[slice, slice]


@dataclass(frozen=True)
class Measurement:
    """A linear map A from images of one shape to data of one shape."""

    image_shape: tuple[int, int]  # of x, what lies beyond the edges included where that is unknown
    data_shape: tuple[int, ...]
    forward: Callable[[FloatArray], Data]  # A x
    adjoint: Callable[[Data], FloatArray]  # Aᵀ r, real
    inverse: Inverse | None = None  # (AᵀA + ratio I)⁻¹ in closed form, if there is one
    inverse_of_data: Inverse | None = None  # (A Aᵀ + ratio I)⁻¹ of data, likewise, where data are fewer than pixels
    nearly_inverse: Inverse | None = None  # something near it, symmetric and positive, for conjugate gradients
    first_guess: Callable[[Data], FloatArray] | None = None  # an image to begin with, if data look like one
    inside: Window | None = None  # the part of x that is the result, if that is not all
    blind: NDArray[np.bool_] | None = None  # of the shape of the data: those that say nothing, if there are any
    is_complex: bool = False
    is_cyclic: bool = False  # images go on periodically beyond their edges; they are mirrored there if not


class Operator(Protocol):
    """What happens to images of any size."""

    @property
    def data_are_an_image(self) -> bool:
        """Whether y is an image with white noise: then its noise can be estimated, and it may have colours."""
        ...

    def on(self, data_shape: tuple[int, ...]) -> Measurement:
        """A for data of this shape; refused where they do not fit."""
        ...


def as_seen(mask: ArrayLike, what: str) -> NDArray[np.bool_]:
    """A mask (H, W) that is True, or not zero, where `what` was seen; refused if that is nowhere."""
    values = np.asarray(mask)
    if values.ndim != 2 or values.dtype.kind not in "iufb":
        raise InvalidInputError(f"the mask has shape {values.shape} and type {values.dtype}; expected (H, W), bool")
    if not values.any():
        raise InvalidInputError(f"the mask has no valid {what}; it must be True, or not zero, where it was seen")
    return np.asarray(values != 0)


def two_sides(data_shape: tuple[int, ...]) -> tuple[int, int]:
    """(h, w) of data that are an image."""
    if len(data_shape) != 2:
        raise InvalidInputError(f"the data have shape {data_shape}; expected an image (H, W)")
    return data_shape[0], data_shape[1]
