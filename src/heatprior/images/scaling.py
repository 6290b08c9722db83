"""Stored numbers ↔ values in units: value = slope · stored + intercept, as FITS, DICOM and NIfTI have it.

Where that gives whole numbers (slope 1), values are integers; else floats, which are rounded to what can be stored when
they are written.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError

INTEGERS = tuple(np.dtype(name) for name in ("uint8", "uint16", "int16", "uint32", "int32"))


class Scale(NamedTuple):
    """Slope, intercept, and the least and largest number that is stored, in its type (of either byte order)."""

    slope: float
    intercept: float
    dtype: np.dtype[Any]
    low: float
    high: float

    @classmethod
    def of(cls, dtype: np.dtype[Any], slope: float = 1.0, intercept: float = 0.0, bits: int | None = None) -> Scale:
        """The scale of numbers of a type, or of an integer type of which only some `bits` are used."""
        if not (math.isfinite(slope) and math.isfinite(intercept) and slope != 0):
            raise ImageFileError(f"its values are {slope:g} x + {intercept:g}, which is no scale; get a fresh copy")
        if dtype.kind == "f":
            return cls(slope, intercept, dtype, -math.inf, math.inf)
        limits = np.iinfo(dtype)
        bits = bits or limits.bits
        signed = dtype.kind == "i"
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        return cls(slope, intercept, dtype, max(low, limits.min), min(high, limits.max))

    @property
    def values_dtype(self) -> np.dtype[Any]:
        """The type of values: integers if all of them are whole and fit."""
        native = self.dtype.newbyteorder("=")
        if self.slope == 1 and self.intercept == 0:
            return native if native.kind == "f" or native in INTEGERS else np.dtype(np.float64)
        if self.dtype.kind != "f" and self.slope == 1 and self.intercept == int(self.intercept):
            least, most = self.low + self.intercept, self.high + self.intercept
            for dtype in INTEGERS:
                if np.iinfo(dtype).min <= least and most <= np.iinfo(dtype).max:
                    return dtype
        return np.dtype(np.float32 if self.dtype.itemsize <= 2 else np.float64)

    def values(self, stored: NDArray[Any]) -> NDArray[Any]:
        """Values in units."""
        dtype = self.values_dtype
        if self.slope == 1 and self.intercept == 0:
            return stored.astype(dtype, copy=False)
        if dtype.kind != "f":
            return (stored.astype(np.int64) + int(self.intercept)).astype(dtype)
        return (stored * np.float64(self.slope) + self.intercept).astype(dtype)

    def stored(self, values: NDArray[Any]) -> NDArray[Any]:
        """What is nearest to the values among the numbers that can be stored."""
        if self.slope == 1 and self.intercept == 0 and values.dtype == self.dtype.newbyteorder("="):
            return values.astype(self.dtype, copy=False)
        numbers = (values.astype(np.float64) - self.intercept) / self.slope
        if self.dtype.kind == "f":
            return numbers.astype(self.dtype)
        return np.rint(np.clip(np.nan_to_num(numbers), self.low, self.high)).astype(self.dtype)

    def number(self, value: float) -> float:
        """A stored number as a value."""
        return value * self.slope + self.intercept
