"""A measurement as it is used: data that are missing or less certain count less, and every use is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.pixels.gaps import fill_missing
from heatprior.restoration.operators.measurement import Data, Measurement


class Counted:
    """A measurement that counts how often it is applied, forth or back, and how many numbers were seen."""

    def __init__(self, measurement: Measurement) -> None:
        self.applications = 0
        self.seen = int(np.prod(measurement.data_shape) if measurement.blind is None else np.sum(~measurement.blind))
        self.seen *= 1 + measurement.is_complex
        self.measurement = replace(
            measurement, forward=self._counting(measurement.forward), adjoint=self._counting(measurement.adjoint)
        )

    def _counting(self, apply: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def counted(values: Any) -> Any:
            self.applications += 1
            return apply(values)

        return counted


def weighted(data: Data, measurement: Measurement, sigma: FloatArray) -> tuple[Data, Measurement, float]:
    """y / w, A / w and one noise level for data of noise w · level; what was not measured (NaN) is zero and blind."""
    missing = ~np.isfinite(data)
    if measurement.blind is not None:
        data, missing = np.where(measurement.blind, 0.0, data), missing & ~measurement.blind
    if sigma.ndim == 0 and not missing.any():
        return data, measurement, float(sigma)
    blind = missing if measurement.blind is None else missing | measurement.blind
    if blind.all():
        raise InvalidInputError("y holds nothing but NaN; give data that were measured")
    levels = np.broadcast_to(sigma, data.shape)
    level = float(np.sqrt(np.mean(np.square(levels[~blind]))))
    certainty = np.where(blind, 0.0, level / levels)
    known = np.where(missing, 0.0, data)

    def forward(image: FloatArray) -> Data:
        return np.asarray(certainty * measurement.forward(image))

    def adjoint(values: Data) -> FloatArray:
        return measurement.adjoint(certainty * values)

    def first_guess(_: Data) -> FloatArray:
        assert measurement.first_guess is not None
        filled = np.where(missing, np.nan, data)
        fill_missing(filled)
        return measurement.first_guess(filled)

    changed = replace(
        measurement,
        forward=forward,
        adjoint=adjoint,
        inverse=None,
        inverse_of_data=None,
        nearly_inverse=measurement.inverse or measurement.nearly_inverse,
        first_guess=measurement.first_guess and first_guess,
        blind=blind,
    )
    return certainty * known, changed, level
