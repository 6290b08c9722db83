"""The nearest bank of orthogonal filters: Algorithm 1 of the paper, section 4.1 and its appendix.

Filters are the rows of `filters` (J, a), the transpose of the paper's K. A bank is feasible if its rows are pairwise
orthogonal, filters = diag(D) O with O Oᵀ = Id and D ≥ 0. The distance ‖diag(D) O − K‖_F, Eq. (20), is minimised over O
and over D in turn; each has a closed form, so the distance never rises.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import helmert

from heatprior.arrays import FloatArray

CONVERGED = 1e-14  # relative fall of the squared distance in one step below which the iteration stops
MOST_STEPS = 10_000


class OrthogonalIterate(NamedTuple):
    """One step of Algorithm 1: the feasible filters, and their squared distance to the given ones."""

    filters: FloatArray
    squared_distance: float


def project_orthogonal(filters: FloatArray, *, steps: int | None = 3, zero_mean: bool = True) -> FloatArray:
    """The feasible bank that Algorithm 1 reaches in `steps` polar decompositions; `None` runs it to convergence.

    With `zero_mean` every filter also sums to zero, exactly: the iteration runs in the space of such filters. That
    is the projection onto both constraints, since a zero-mean bank is as far from a filter's mean whatever it is.
    """
    previous = np.inf
    for step, iterate in enumerate(orthogonal_iterates(filters, zero_mean=zero_mean), start=1):
        gain = previous - iterate.squared_distance
        if step == (steps or MOST_STEPS) or (
            steps is None and gain <= CONVERGED * max(iterate.squared_distance, 1e-300)
        ):
            break
        previous = iterate.squared_distance
    return iterate.filters


def orthogonal_iterates(filters: FloatArray, *, zero_mean: bool = True) -> Iterator[OrthogonalIterate]:
    """The iterates of Algorithm 1 from D = Id on, without end. Each is feasible."""
    given = np.asarray(filters, dtype=np.float64)
    basis = helmert(given.shape[1]) if zero_mean else np.eye(given.shape[1])  # rows span the admissible filters
    coordinates = given @ basis.T
    scales = np.ones(len(given))
    while True:
        directions = polar_factor(scales[:, None] * coordinates)
        scales = np.maximum((directions * coordinates).sum(axis=1), 0.0)
        feasible = (scales[:, None] * directions) @ basis
        yield OrthogonalIterate(feasible, float(((feasible - given) ** 2).sum()))


def polar_factor(matrix: FloatArray) -> FloatArray:
    """The matrix with orthonormal rows nearest to `matrix` (J, a), J ≤ a: U Vᵀ of its singular value decomposition."""
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(left @ right)
