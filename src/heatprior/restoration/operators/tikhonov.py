"""The data's half of a step of restoring, by Tikhonov: x = argmin_x ‖A x − y‖² / (2 sigma²) + ‖x − z‖² / (2 tau²).

With ratio = sigma² / tau², x = z + (AᵀA + ratio)⁻¹ Aᵀ(y − A z): by the operator's closed form if it has one, else by
conjugate gradients, which begin at z, the prior's estimate of the step before. The closed form may be that of the data,
x = z + Aᵀ(A Aᵀ + ratio)⁻¹(y − A z), which is the same image.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from heatprior.arrays import FloatArray
from heatprior.restoration.operators.measurement import Data, Inverse, Measurement

MOST_ROUNDS = 100  # of conjugate gradients in one step
PROBE_PRECISION = 0.05  # of conjugate gradients for a random image of variance one


def drawn_to_data(
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
    shape, pixels = estimate.shape, estimate.size

    def normal(values: FloatArray) -> FloatArray:
        image = values.reshape(shape)
        return np.asarray(measurement.adjoint(measurement.forward(image)) + ratio * image).reshape(-1)

    change, _ = cg(
        LinearOperator((pixels, pixels), matvec=normal, dtype=np.float64),
        right.reshape(-1).astype(np.float64),
        rtol=0.0,
        atol=precision * ratio * np.sqrt(pixels),
        maxiter=MOST_ROUNDS,
        M=_preconditioner(measurement.nearly_inverse, ratio, shape),
    )
    return np.asarray(estimate + change.reshape(shape))


def undetermined_part(measurement: Measurement, ratio: float) -> float:
    """How much of an image the data leave undetermined, 0 to 1: the mean eigenvalue of ratio (AᵀA + ratio)⁻¹.

    By one random image n, of which the data step keeps that part when the data are zero.
    """
    image = np.random.default_rng(0).standard_normal(measurement.image_shape)
    kept = drawn_to_data(measurement, image, -measurement.forward(image), ratio, PROBE_PRECISION)
    return float(np.clip(np.vdot(image, kept) / np.vdot(image, image), 0.0, 1.0))


def _preconditioner(inverse: Inverse | None, ratio: float, shape: tuple[int, ...]) -> LinearOperator | None:
    if inverse is None:
        return None
    pixels = int(np.prod(shape))

    def matvec(values: FloatArray) -> FloatArray:
        return inverse(values.reshape(shape), ratio).reshape(-1)

    return LinearOperator((pixels, pixels), matvec=matvec, dtype=np.float64)
