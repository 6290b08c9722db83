"""Total variation for any measurement, to compare with: argmin_x ‖A x − y‖² / 2 + weight Σ |∇x|.

Chambolle and Pock's algorithm: the gradient by its dual, the data term by the data step of `hp.restore`. Differences
are cyclic or zero at the edge, as the measurement is.
"""

from __future__ import annotations

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.restoration.operators.measurement import Data, Measurement, draw_to_data

Image = FloatArray
GREY_LEVELS = 0.1  # by which an image changes, about: it balances the two step sizes
PRECISION = 1e-3  # of conjugate gradients, in grey levels


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
    cyclic = measurement.is_cyclic
    forth = GREY_LEVELS / weight / np.sqrt(8.0)  # steps of the image, and of the dual, which is as large as the weight
    back = weight / GREY_LEVELS / np.sqrt(8.0)
    x: Image = start.astype(np.float64)
    lead: Image = x
    slopes = np.zeros((2, *x.shape))
    for _ in range(rounds):
        slopes += back * gradient(lead, cyclic=cyclic)
        slopes /= np.maximum(1.0, np.sqrt(np.square(slopes).sum(axis=0)) / weight)
        before, moved = x, x + forth * divergence(slopes, cyclic=cyclic)
        x = draw_to_data(measurement, moved, data - measurement.forward(moved), 1.0 / forth, PRECISION)
        lead = 2.0 * x - before
    return x
