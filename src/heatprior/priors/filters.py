"""The filter bank: J pairwise orthogonal filters on b×b patches, Eq. (10)."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.display import as_html, tile
from heatprior.errors import InvalidInputError
from heatprior.locks import cached_property

NORMS = (1e-9, 1e9)  # of filters that float32 files can hold
ORTHOGONALITY_TOLERANCE = 1e-5  # largest cosine between two filters: a hundred roundings of float32


@dataclass(frozen=True, eq=False)
class FilterBank:
    """Filters k_j that are pairwise orthogonal, of any positive norm.

    The paper's K is the transpose of `matrix`. With zero-mean filters J is at most b² − 1, and patches are described up
    to their brightness.

    Parameters
    ----------
    matrix : ndarray, (J, b·b)
        One filter per row.

    Examples
    --------
    >>> import heatprior as hp
    >>> bank = hp.FilterBank.dct(7)
    >>> bank.count, bank.pixels
    (48, 49)
    """

    matrix: FloatArray

    def __repr__(self) -> str:
        return f"<FilterBank: {self.count} filters of {self.size}×{self.size} pixels>"

    def _repr_html_(self) -> str:
        return as_html(repr(self), self.draw_small(), 3)

    def draw_small(self) -> FloatArray:
        """The filters side by side, by rising norm, each from black to white."""
        order = np.argsort(self.norms, kind="stable")
        return tile([self.matrix[j].reshape(self.size, self.size) for j in order])

    def __post_init__(self) -> None:
        if np.iscomplexobj(self.matrix):
            raise InvalidInputError("filters are complex; expected real ones")
        matrix = np.array(self.matrix, dtype=np.float64)
        if matrix.ndim != 2 or isqrt(matrix.shape[1]) ** 2 != matrix.shape[1] or matrix.size == 0:
            raise InvalidInputError(f"filters have shape {matrix.shape}; expected (filters, pixels of a square patch)")
        if len(matrix) > matrix.shape[1]:
            raise InvalidInputError(
                f"{len(matrix)} filters on {matrix.shape[1]} pixels cannot be orthogonal; give at most one per pixel"
            )
        if not np.isfinite(matrix).all():
            raise InvalidInputError("filters hold NaN or infinite values")
        norms = np.linalg.norm(matrix, axis=1)
        if not norms.min() > 0:
            raise InvalidInputError(f"filter {norms.argmin()} is zero; every filter needs a positive norm")
        if norms.min() < NORMS[0] or norms.max() > NORMS[1]:
            raise InvalidInputError(
                f"norms of filters go from {norms.min():g} to {norms.max():g}; expected {NORMS[0]:g} to {NORMS[1]:g}"
            )
        directions = matrix / norms[:, None]
        cosines = np.abs(directions @ directions.T - np.eye(len(matrix)))
        if cosines.max() > ORTHOGONALITY_TOLERANCE:
            i, j = np.unravel_index(cosines.argmax(), cosines.shape)
            raise InvalidInputError(
                f"filters {i} and {j} are not orthogonal (cosine {cosines.max():.2g}); "
                "project them with heatprior.learning.patch_training.project_orthogonal"
            )
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    @classmethod
    def dct(cls, size: int) -> FilterBank:
        """The discrete cosine basis on size×size patches without its constant: J = size² − 1 filters of norm one."""
        if size < 2:
            raise InvalidInputError(f"size is {size}; a patch needs at least 2×2 pixels to have any structure")
        numbers = np.arange(size)
        waves = np.cos(np.pi / size * numbers[:, None] * (numbers + 0.5)) * np.sqrt(2.0 / size)
        waves[0] = size**-0.5
        return cls(np.kron(waves, waves)[1:])

    @property
    def count(self) -> int:
        """J, the number of filters."""
        return int(self.matrix.shape[0])

    @property
    def pixels(self) -> int:
        """a = b², the pixels of a patch."""
        return int(self.matrix.shape[1])

    @property
    def size(self) -> int:
        """b, the side of a patch."""
        return isqrt(self.pixels)

    @cached_property
    def norms(self) -> FloatArray:
        """‖k_j‖, (J,): how much noise each response picks up."""
        return np.asarray(np.linalg.norm(self.matrix, axis=1))

    def analyse(self, patches: FloatArray) -> FloatArray:
        """Responses ⟨k_j, p⟩: (..., a) → (..., J)."""
        return patches @ self.matrix.T

    def synthesise(self, responses: FloatArray) -> FloatArray:
        """Σ_j k_j u_j, the adjoint of `analyse`: (..., J) → (..., a)."""
        return responses @ self.matrix

    def reconstruct(self, responses: FloatArray) -> FloatArray:
        """Σ_j k_j u_j / ‖k_j‖², the patch in the span of the filters that has these responses."""
        return self.synthesise(responses / self.norms**2)
