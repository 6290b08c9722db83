"""The cubic spline through values at equal steps, between them at equal finer steps: a matrix times the values.

It does without scipy.interpolate, whose import takes longer than the denoising of a photograph in one step.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from heatprior.arrays import FloatArray


def refined(values: FloatArray, parts: int) -> FloatArray:
    """`values` (n, …) at equal steps, each step divided into `parts`: (parts (n − 1) + 1, …).

    Not-a-knot: the third derivative is continuous at the last but one points, too. Through two or three points goes the
    line or the parabola.
    """
    count = len(values)
    flat = np.reshape(values, (count, -1))
    return np.asarray(_matrix(count, parts) @ flat).reshape(-1, *np.shape(values)[1:])


@lru_cache(maxsize=32)
def _matrix(count: int, parts: int) -> FloatArray:
    """What makes the finer values of the values."""
    places = np.arange(parts * (count - 1) + 1) / parts
    if count < 4:
        to_powers = np.linalg.inv(np.vander(np.arange(float(count)), count))
        return np.asarray(np.vander(places, count) @ to_powers)
    # Slopes d: d₋ + 4 d + d₊ = 3 (y₊ − y₋) inside; at the ends the first two pieces are one polynomial.
    system = 4.0 * np.eye(count) + np.eye(count, k=1) + np.eye(count, k=-1)
    right = 3.0 * (np.eye(count, k=1) - np.eye(count, k=-1))
    system[0], system[-1], right[0], right[-1] = 0.0, 0.0, 0.0, 0.0
    system[0, :2], right[0, :3] = (1.0, 2.0), (-2.5, 2.0, 0.5)
    system[-1, -2:], right[-1, -3:] = (2.0, 1.0), (-0.5, -2.0, 2.5)
    slopes = np.linalg.solve(system, right)
    first = np.minimum(places.astype(int), count - 2)
    s = (places - first)[:, None]
    identity = np.eye(count)
    return np.asarray(
        (1 + 2 * s) * (1 - s) ** 2 * identity[first]
        + s**2 * (3 - 2 * s) * identity[first + 1]
        + s * (1 - s) ** 2 * slopes[first]
        + s**2 * (s - 1) * slopes[first + 1]
    )
