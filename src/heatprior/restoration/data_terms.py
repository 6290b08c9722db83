"""What the data say, apart from what the prior says: the second half of every step of splitting.

After the prior's half of a step there is an estimate z. The data term draws it towards what was observed:
x = argmin_x ‖x − y‖² w + ‖x − z‖² (1 − w) for an image with noise, which acts on each pixel by itself. So rows can be
done as the prior hands them over, in place, and no second image is in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.noise_model import Rows


class DataTerm(Protocol):
    """Observations that act on each pixel by itself."""

    def draw_to_data(self, estimate: FloatArray, rows: slice, weight: FloatArray) -> FloatArray:
        """The estimate (rows, W) of the prior, drawn to the data with this weight, 0 to 1; it may be overwritten."""
        ...


class Observed:
    """Every pixel was observed, with noise: x = w y + (1 − w) z."""

    def __init__(self, read: Callable[[Rows], FloatArray]) -> None:
        self._read = read  # rows of y

    def draw_to_data(self, estimate: FloatArray, rows: slice, weight: FloatArray) -> FloatArray:
        """Towards y, everywhere."""
        observed = self._read(rows).astype(np.float32, copy=False)
        return np.asarray(weight * (observed - estimate) + estimate)


class PartlyObserved:
    """Some pixels are missing (NaN): there the data say nothing, and x = z."""

    def __init__(self, read: Callable[[Rows], FloatArray]) -> None:
        self._read = read
        self._observed = Observed(read)

    def draw_to_data(self, estimate: FloatArray, rows: slice, weight: FloatArray) -> FloatArray:
        """Towards y where there is any."""
        drawn = self._observed.draw_to_data(estimate, rows, weight)
        return np.where(np.isnan(self._read(rows)), estimate, drawn)
