"""Any linear operator that scipy knows: matrices, sparse ones, `LinearOperator`s, and those of pylops."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.restoration.operators.measurement import Data, Measurement


@dataclass(frozen=True, eq=False)
class Linear:
    """y = A x with A (data, pixels): x are the pixels of an image of this `shape`, row by row."""

    matrix: Any  # what `scipy.sparse.linalg.aslinearoperator` takes
    shape: tuple[int, int]

    @property
    def data_are_an_image(self) -> bool:
        """Not that one knows."""
        return False

    def on(self, data_shape: tuple[int, ...]) -> Measurement:
        """For data of any shape, as many as the operator gives."""
        try:
            operator: LinearOperator = aslinearoperator(self.matrix)
        except TypeError as error:
            raise InvalidInputError(
                f"the operator is of type {type(self.matrix).__name__}; expected Blur, Mask, Downsample, "
                "Fourier, or what scipy.sparse.linalg.aslinearoperator takes"
            ) from error
        rows, columns = operator.shape
        if columns != prod(self.shape):
            raise InvalidInputError(
                f"the operator acts on {columns} pixels but shape {self.shape} has {prod(self.shape)}; give the shape "
                "of the image"
            )
        if rows != prod(data_shape):
            raise InvalidInputError(f"the operator gives {rows} data but y has shape {data_shape}; expected as many")

        def forward(image: FloatArray) -> Data:
            return np.asarray(operator.matvec(image.reshape(-1))).reshape(data_shape)

        def adjoint(data: Data) -> FloatArray:
            try:
                return np.asarray(operator.rmatvec(data.reshape(-1))).real.reshape(self.shape)
            except NotImplementedError as error:
                raise InvalidInputError("the operator has no adjoint; give it one (rmatvec)") from error

        is_complex = np.dtype(operator.dtype or np.float64).kind == "c"
        return Measurement(self.shape, data_shape, forward, adjoint, is_complex=is_complex)
