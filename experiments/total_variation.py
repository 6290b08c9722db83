"""Total variation for any measurement, to compare with: argmin_x ‖A x − y‖² / 2 + weight Σ |∇x|.

Chambolle and Pock's algorithm: the gradient by its dual; the data term by its closed form if it has one, else by its
dual too. Differences are cyclic or zero at the edge, as the measurement is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heatprior.restoration.entry_checks import examine
from heatprior.restoration.operators.measurement import Data, Measurement

Image = NDArray[np.float64]
BALANCE = 0.05  # of the two step sizes, for grey levels from 0 to 1


def gradient(image: Image, *, cyclic: bool) -> Image:
    """Differences to the next pixel below and on the right: (2, H, W)."""
    change = np.stack([np.roll(image, -1, axis) - image for axis in (0, 1)])
    if not cyclic:
        change[0, -1] = 0.0
        change[1, :, -1] = 0.0
    return change


def divergence(field: Image, *, cyclic: bool) -> Image:
    """Minus the adjoint of the gradient."""
    own = field.copy()
    if not cyclic:
        own[0, -1] = 0.0
        own[1, :, -1] = 0.0
    return sum((own[axis] - np.roll(own[axis], 1, axis) for axis in (0, 1)), np.zeros(field.shape[1:]))


def total_variation(data: Data, measurement: Measurement, weight: float, start: Image, rounds: int = 100) -> Image:
    """The image (H, W) after some rounds, from `start` on."""
    cyclic, inverse = measurement.is_cyclic, measurement.inverse
    norm = 1.0 if inverse is not None else examine(measurement).norm * 1.05
    size = np.sqrt(8.0 + (inverse is None))
    forth, back = BALANCE / size, 1.0 / (BALANCE * size)  # steps of the image, and of the duals
    x = lead = start.astype(np.float64)
    slopes = np.zeros((2, *x.shape))
    misfit = np.zeros_like(data)
    known = measurement.adjoint(data)
    for _ in range(rounds):
        slopes += back * gradient(lead, cyclic=cyclic)
        slopes /= np.maximum(1.0, np.sqrt(np.square(slopes).sum(axis=0)) / weight)
        before = x
        x = x + forth * divergence(slopes, cyclic=cyclic)
        if inverse is not None:
            x = inverse(known + x / forth, 1.0 / forth)
        else:  # of A / norm, whose data term is norm² ‖A x / norm − y / norm‖² / 2
            misfit = (misfit + back * (measurement.forward(lead) - data) / norm) / (1.0 + back / norm**2)
            x = x - forth * measurement.adjoint(misfit) / norm
        lead = 2.0 * x - before
    return x
