"""What is asked of an operator before it is used: that its adjoint is one, how strong it is, and whether it is a turn.

All of that is found with one random image: what holds for it, holds with probability one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heatprior.errors import InvalidInputError
from heatprior.restoration.operators.measurement import Data, Measurement

TOLERANCE = 1e-4  # of the dot test, relative: single precision passes, an interpolation left out does not
TURN_TOLERANCE = 1e-6  # of AᵀA x = c x, relative
ROUNDS = 8  # of the power method, to a few per cent


class Nature(NamedTuple):
    """What was found."""

    norm: float  # about the largest singular value of A
    is_turn: bool  # AᵀA is a multiple of the identity: Aᵀy is the image with white noise


def examine(measurement: Measurement) -> Nature:
    """Dot-test the adjoint, Re⟨A x, r⟩ = ⟨x, Aᵀ r⟩, refuse a wrong one, and find the norm of the operator."""
    rng = np.random.default_rng(0)
    image = rng.standard_normal(measurement.image_shape)
    data = measurement.forward(image)
    if not np.isfinite(data).all():
        raise InvalidInputError("the operator gives NaN or infinite data for a finite image; mend it")
    if not data.any():
        raise InvalidInputError("the operator gives nothing but zeros; it says nothing about the image")
    back = _tested(measurement, image, data, data)
    noise = rng.standard_normal(data.shape) + (1j * rng.standard_normal(data.shape) if measurement.is_complex else 0.0)
    _tested(measurement, image, data, noise)
    strength = float(np.vdot(image, back).real / np.vdot(image, image).real)
    if float(np.linalg.norm(back - strength * image)) <= TURN_TOLERANCE * float(np.linalg.norm(back)):
        return Nature(float(np.sqrt(strength)), is_turn=True)
    for _ in range(ROUNDS):
        back = measurement.adjoint(measurement.forward(back / np.linalg.norm(back)))
    return Nature(float(np.sqrt(np.linalg.norm(back))), is_turn=False)


def _tested(measurement: Measurement, image: Data, data: Data, other: Data) -> Data:
    """Aᵀ of `other`, where `data` are A of the image."""
    back = measurement.adjoint(other)
    one, two = np.vdot(other, data).real, np.vdot(image, back).real
    allowed = TOLERANCE * float(np.linalg.norm(other) * np.linalg.norm(data))
    if not abs(one - two) <= allowed:
        raise InvalidInputError(
            f"the operator's adjoint is not one: ⟨Ax, r⟩ = {one:.6g} but ⟨x, Aᵀr⟩ = {two:.6g} for random x and r; "
            "give the transpose (rmatvec) of what matvec does"
        )
    return back
