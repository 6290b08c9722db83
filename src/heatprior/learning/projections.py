"""The nearest bank of orthogonal filters: Algorithm 1 of the paper, section 4.1 and its appendix.

Filters are the rows of `filters` (J, a), the transpose of the paper's K. A bank is feasible if its rows are pairwise
orthogonal, filters = diag(D) O with O Oᵀ = Id and D ≥ 0. The distance ‖diag(D) O − K‖_F, Eq. (20), is minimised over O
and over D in turn; each has a closed form, so the distance never rises.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy.linalg import helmert

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError

CONVERGED = 1e-14  # relative fall of the squared distance in one step below which the iteration stops
MOST_STEPS = 10_000
LEAST_SQUARED_RATIO = 1e-8  # leaves eight digits, which the polishing step doubles


class OrthogonalIterate(NamedTuple):
    """One step of Algorithm 1: the feasible filters, and their squared distance to the given ones."""

    filters: FloatArray
    squared_distance: float


def project_orthogonal(filters: FloatArray, *, steps: int | None = 3, zero_mean: bool = True) -> FloatArray:
    """The feasible bank that Algorithm 1 reaches in `steps` polar decompositions; `None` runs it to convergence.

    A filter that depends on the others, or is tiny beside them, may end as zero: feasible, but of no use in a bank.

    With `zero_mean` every filter also sums to zero, exactly: the iteration runs in the space of such filters. That
    is the projection onto both constraints, since a zero-mean bank is as far from a filter's mean whatever it is.
    """
    if steps is not None and steps < 1:
        raise InvalidInputError(f"steps is {steps}; expected 1 or more, or None for convergence")
    if steps is not None:
        given, basis = _check(filters, zero_mean)
        *_, (scales, directions) = islice(_alternating(given @ basis.T), steps)
        return np.asarray((scales[:, None] * directions) @ basis)
    previous = np.inf
    for iterate in islice(orthogonal_iterates(filters, zero_mean=zero_mean), MOST_STEPS):
        if previous - iterate.squared_distance <= CONVERGED * iterate.squared_distance:
            break
        previous = iterate.squared_distance
    return iterate.filters


def orthogonal_iterates(filters: FloatArray, *, zero_mean: bool = True) -> Iterator[OrthogonalIterate]:
    """The iterates of Algorithm 1 from D = Id on, without end. Each is feasible."""
    given, basis = _check(filters, zero_mean)
    for scales, directions in _alternating(given @ basis.T):
        feasible = (scales[:, None] * directions) @ basis
        yield OrthogonalIterate(feasible, float(((feasible - given) ** 2).sum()))


def _alternating(coordinates: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
    """D and O in turn, from D = Id on, for filters in coordinates of the admissible ones."""
    scales = np.ones(len(coordinates))
    while True:
        directions = polar_factor(scales[:, None] * coordinates)
        scales = np.maximum((directions * coordinates).sum(axis=1), 0.0)
        yield scales, directions


def _check(filters: FloatArray, zero_mean: bool) -> tuple[FloatArray, FloatArray]:
    """The filters in float64, and a basis of those that may be."""
    given = np.asarray(filters, dtype=np.float64)
    if given.ndim != 2 or not 1 <= len(given) <= given.shape[1] - zero_mean or not np.isfinite(given).all():
        raise InvalidInputError(
            f"filters of shape {given.shape} cannot be made orthogonal{' and zero-mean' if zero_mean else ''}; "
            "give finite filters as rows, at most one per free dimension"
        )
    return given, _admissible(given.shape[1], zero_mean)


@lru_cache(maxsize=8)
def _admissible(pixels: int, zero_mean: bool) -> FloatArray:
    """A basis of the filters that may be, as rows."""
    return np.asarray(helmert(pixels) if zero_mean else np.eye(pixels))


def polar_factor(matrix: FloatArray) -> FloatArray:
    """The matrix with orthonormal rows nearest to `matrix` (J, a), J ≤ a: (M Mᵀ)^(−1/2) M.

    Through the eigenvectors of the J×J Gram matrix, half the time of a singular value decomposition. That squares the
    condition number: a Newton–Schulz step corrects the rounding, and nearly dependent rows take the other branch.
    """
    squares, axes = np.linalg.eigh(matrix @ matrix.T)
    if squares[0] > LEAST_SQUARED_RATIO * squares[-1]:
        nearly = (axes / np.sqrt(squares)) @ (axes.T @ matrix)
        return np.asarray(1.5 * nearly - 0.5 * (nearly @ nearly.T) @ nearly)
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(left @ right)
