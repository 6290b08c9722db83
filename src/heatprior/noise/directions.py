"""Directions of patches that reveal the noise: those in which clean patches are weak compared with it.

They are most informative about the noise, and most robust where the image is not what the prior expects.
"""

from __future__ import annotations

import numpy as np

from heatprior.arrays import IntArray
from heatprior.priors.protocol import NoiseDirections


def weak_directions(directions: NoiseDirections, sigma: float) -> IntArray:
    """Numbers of the directions in which clean patches are weak beside noise of level `sigma`, or the weakest ones."""
    _, spread, weak, fewest = directions
    order = np.argsort(spread, kind="stable")
    return np.sort(order[: max(int((spread < weak * sigma).sum()), fewest)])


def repetition(directions: NoiseDirections, chosen: IntArray, stride: int) -> float:
    """How often a likelihood that adds up patches `stride` pixels apart counts the same noise.

    The variance of its score over its curvature where there is nothing but noise: Σ corr² over all pairs of responses
    that overlap, for each response.
    """
    unit = directions.unit[chosen]
    size = round(unit.shape[1] ** 0.5)
    unit = unit.reshape(-1, size, size)
    shifts = range(-((size - 1) // stride) * stride, size, stride)
    total = 0.0
    for i in shifts:
        for j in shifts:
            here = unit[:, max(0, i) : size + min(0, i), max(0, j) : size + min(0, j)].reshape(len(unit), -1)
            there = unit[:, max(0, -i) : size + min(0, -i), max(0, -j) : size + min(0, -j)].reshape(len(unit), -1)
            total += float(np.square(here @ there.T).sum())
    return total / len(unit)
