"""What an operator is: y = A x + noise, for real images x (H, W) and data y of any shape, real or complex.

`Operator` is what a user writes down; `on(data shape)` makes of it a `Measurement`, A itself. Where data are complex,
Aᵀ is the real part of the conjugate transpose, so that Re⟨A x, r⟩ = ⟨x, Aᵀ r⟩. The data's half of a step of restoring
is Tikhonov's: x = argmin_x ‖A x − y‖² / (2 sigma²) + ‖x − z‖² / (2 tau²). With ratio = sigma² / tau²,
x = z + (AᵀA + ratio)⁻¹ Aᵀ(y − A z) = z + Aᵀ(A Aᵀ + ratio)⁻¹(y − A z): by the operator's closed form if it has one, else
by conjugate gradients, which begin at z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from heatprior.arrays import FloatArray
from heatprior.border.gaps import fill_missing
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

    def on(self, data_shape: tuple[int, ...]) -> Measurement:
        """A for data of this shape; refused where they do not fit."""


def two_sides(data_shape: tuple[int, ...]) -> tuple[int, int]:
    """(h, w) of data that are an image."""
    if len(data_shape) != 2:
        raise InvalidInputError(f"the data have shape {data_shape}; expected an image (H, W)")
    return data_shape[0], data_shape[1]


class Counted:
    """A measurement that counts how often it is applied, forth or back, and how many numbers were seen."""

    def __init__(self, measurement: Measurement) -> None:
        self.applications = 0
        self.seen = int(np.prod(measurement.data_shape) if measurement.blind is None else np.sum(~measurement.blind))
        self.seen *= 1 + measurement.is_complex
        self.measurement = replace(
            measurement, forward=self._counting(measurement.forward), adjoint=self._counting(measurement.adjoint)
        )

    def _counting(self, apply: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def counted(values: Any) -> Any:
            self.applications += 1
            return apply(values)

        return counted


def weigh_data(data: Data, measurement: Measurement, sigma: FloatArray) -> tuple[Data, Measurement, float]:
    """y / w, A / w and one noise level for data of noise w · level; what was not measured (NaN) is zero and blind."""
    missing = ~np.isfinite(data)
    if measurement.blind is not None:
        data, missing = np.where(measurement.blind, 0.0, data), missing & ~measurement.blind
    if sigma.ndim == 0 and not missing.any():
        return data, measurement, float(sigma)
    blind = missing if measurement.blind is None else missing | measurement.blind
    if blind.all():
        raise InvalidInputError("y holds nothing but NaN; give data that were measured")
    levels = np.broadcast_to(sigma, data.shape)
    level = float(np.sqrt(np.mean(np.square(levels[~blind]))))
    certainty = np.where(blind, 0.0, level / levels)
    known = np.where(missing, 0.0, data)

    def first_guess(_: Data) -> FloatArray:
        assert measurement.first_guess is not None
        filled = np.where(missing, np.nan, data)
        fill_missing(filled)
        return measurement.first_guess(filled)

    changed = replace(
        measurement,
        forward=lambda image: np.asarray(certainty * measurement.forward(image)),
        adjoint=lambda values: measurement.adjoint(certainty * values),
        inverse=None,
        inverse_of_data=None,
        nearly_inverse=measurement.inverse or measurement.nearly_inverse,
        first_guess=measurement.first_guess and first_guess,
        blind=blind,
    )
    return certainty * known, changed, level


MOST_ROUNDS = 100  # of conjugate gradients in one step
PROBE_PRECISION = 0.05  # of conjugate gradients for a random image of variance one


def draw_to_data(
    measurement: Measurement, estimate: FloatArray, misfit: Data, ratio: float, precision: float
) -> FloatArray:
    """The estimate z (H, W), of which the `misfit` is y − A z, drawn to the data.

    Conjugate gradients stop when no more than `precision` (root mean square, grey levels) can be missing: the error is
    at most the residual over the least eigenvalue, which is at least the ratio.
    """
    if measurement.inverse_of_data is not None:
        return np.asarray(estimate + measurement.adjoint(measurement.inverse_of_data(misfit, ratio)))
    right = measurement.adjoint(misfit)
    if measurement.inverse is not None:
        return np.asarray(estimate + measurement.inverse(right, ratio))
    shape, pixels, nearly = estimate.shape, estimate.size, measurement.nearly_inverse

    def as_operator(function: Callable[[FloatArray], FloatArray]) -> LinearOperator:
        def matvec(values: FloatArray) -> FloatArray:
            return function(values.reshape(shape)).reshape(-1)

        return LinearOperator((pixels, pixels), matvec=matvec, dtype=np.float64)

    change, _ = cg(
        as_operator(lambda image: np.asarray(measurement.adjoint(measurement.forward(image)) + ratio * image)),
        right.reshape(-1).astype(np.float64),
        rtol=0.0,
        atol=precision * ratio * np.sqrt(pixels),
        maxiter=MOST_ROUNDS,
        M=None if nearly is None else as_operator(lambda image: nearly(image, ratio)),
    )
    return np.asarray(estimate + change.reshape(shape))


def undetermined_part(measurement: Measurement, ratio: float) -> float:
    """How much of an image the data leave undetermined, 0 to 1: the mean eigenvalue of ratio (AᵀA + ratio)⁻¹.

    By one random image n, of which the data step keeps that part when the data are zero.
    """
    image = np.random.default_rng(0).standard_normal(measurement.image_shape)
    kept = draw_to_data(measurement, image, -measurement.forward(image), ratio, PROBE_PRECISION)
    return float(np.clip(np.vdot(image, kept) / np.vdot(image, image), 0.0, 1.0))
