"""Directions of patches that tell of the noise: those in which clean patches are weak beside it.

They tell most about the noise, and suffer least where the image is not what the prior expects. A prior that is a
product over filters has its filters; a mixture of Gaussians the axes of its mean covariance. In either, the density of
the responses in some directions is exact: the other experts integrate to one, and so do Gaussians in the other axes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.patch import PatchPrior

WEAK_FILTERS, FEWEST_FILTERS = 0.2, 12  # of the noise: clean responses on average; at least every twelfth filter
WEAK_AXES, FEWEST_AXES = 0.1, 6  # of a mixture, which knows better what clean patches look like

NoisePrior = PatchPrior | GaussianMixturePrior  # what noise can be estimated with


class Directions(NamedTuple):
    """J orthonormal directions as patches, how far clean patches spread in each, and which to use."""

    unit: FloatArray  # (J, a)
    spread: FloatArray  # (J,)
    weak: float  # of the noise: a spread that is weak
    fewest: int


def directions(prior: NoisePrior) -> Directions:
    """All the directions of a prior."""
    if isinstance(prior, PatchPrior):
        experts, norms = prior.experts, prior.filters.norms
        spread = np.sqrt(experts.weights @ experts.means**2 + experts.base_sigma**2) / norms
        unit = prior.filters.matrix / norms[:, None]
        return Directions(unit, spread, WEAK_FILTERS, -(-len(norms) // FEWEST_FILTERS))
    shares = np.exp(prior.log_weights) @ prior.contrasts  # (K,)
    variances, axes = np.linalg.eigh(np.tensordot(shares, prior.covariances, 1))
    return Directions(axes.T @ prior.basis, np.sqrt(variances), WEAK_AXES, -(-len(variances) // FEWEST_AXES))


def filters_below(prior: NoisePrior, sigma: float) -> IntArray:
    """Numbers of the directions in which clean patches are weak beside noise of level `sigma`, or the weakest ones."""
    _, spread, weak, fewest = directions(prior)
    order = np.argsort(spread, kind="stable")
    return np.sort(order[: max(int((spread < weak * sigma).sum()), fewest)])


def repetition(prior: NoisePrior, filters: IntArray, stride: int) -> float:
    """How often a likelihood that adds up patches `stride` pixels apart counts the same noise.

    The variance of its score over its curvature where there is nothing but noise: Σ corr² over all pairs of responses
    that overlap, for each response.
    """
    unit = directions(prior).unit[filters]
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
