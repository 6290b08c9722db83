"""Orthonormal wavelet bases of cyclic images: the bands in which the convolutional model is exact.

A scaling filter h, Σ_k h_k h_{k+2m} = δ_m, and its mirror g_k = (−1)^k h_{K−1−k} split a signal into a coarse and a
fine half, each of half the length, by an orthogonal transform; splitting the coarse half again and again, along rows
and columns, gives the bands. A band is a path of such splits along either axis, such as ("llh", "lll"): its filter is
the product of h and g at doubled frequencies, and every 2^depth-th response along each axis is a coefficient. All other
responses are coefficients of the same basis shifted by some pixels, which is what cycle spinning averages over.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.priors.bands import Shape, Spectrum

TOLERANCE = 1e-6  # of the orthonormality of a scaling filter: float32 leaves 1e-7
MOST_LEVELS = 12
DETAILS = (("l", "h"), ("h", "l"), ("h", "h"))
QUARTERS = (("l", "l"), *DETAILS)


def daubechies(order: int) -> FloatArray:
    """The shortest scaling filter with `order` vanishing moments, 2·order taps; order 1 is Haar's.

    |H|² = (cos²)^order P(sin²), P(x) = Σ_k C(order − 1 + k, k) x^k; of zeros z, 1/z the inner one is taken.
    """
    if not 1 <= order <= 8:
        raise InvalidInputError(f"order is {order}; expected 1 to 8 (beyond, rounding spoils the zeros)")
    taps = np.ones(1)
    for _ in range(order):
        taps = np.convolve(taps, [1.0, 1.0])
    for x in np.roots([comb(order - 1 + k, k) for k in reversed(range(order))]):
        middle = 1.0 - 2.0 * x  # (z + 1/z) / 2, since sin² = (2 − z − 1/z) / 4
        z = middle + np.sqrt(middle**2 - 1.0 + 0j)
        taps = np.convolve(taps, [1.0, -(z if abs(z) < 1.0 else 1.0 / z)])
    real = np.real(taps)
    return np.asarray(real * np.sqrt(2.0) / real.sum())


@dataclass(frozen=True, eq=False)
class WaveletBasis:
    """The scaling filter, the number of levels, and in how many of them, the finest, details are split once more."""

    scaling: FloatArray
    levels: int
    splits: int = 0

    def __post_init__(self) -> None:
        taps = np.array(self.scaling, np.float64)
        if taps.ndim != 1 or taps.size < 2 or taps.size % 2:
            raise InvalidInputError(f"the scaling filter has shape {taps.shape}; expected an even number of taps")
        shifted = [float(taps[2 * m :] @ taps[: taps.size - 2 * m]) for m in range(taps.size // 2)]
        errors = np.abs(np.subtract(shifted, [1.0, *[0.0] * (len(shifted) - 1)]))
        if not errors.max() < TOLERANCE or not abs(taps.sum() - np.sqrt(2.0)) < TOLERANCE:
            raise InvalidInputError(
                f"the scaling filter is not orthonormal (off by {errors.max():.2g}); take one such as daubechies(2)"
            )
        if not 1 <= self.levels <= MOST_LEVELS or not 0 <= self.splits < self.levels:
            raise InvalidInputError(
                f"{self.levels} levels and {self.splits} splits; expected 1 to {MOST_LEVELS} levels, and fewer splits"
            )
        taps.flags.writeable = False
        object.__setattr__(self, "scaling", taps)

    @cached_property
    def paths(self) -> tuple[tuple[str, str], ...]:
        """The splits of each band along columns and rows, fine bands first."""
        found = []
        for level in range(self.levels):
            for detail in DETAILS:
                down, across = ("l" * level + step for step in detail)
                further = QUARTERS if level < self.splits else (("", ""),)
                found += [(down + i, across + j) for i, j in further]
        return tuple(found)

    @property
    def count(self) -> int:
        """J, the number of bands."""
        return len(self.paths)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """How many pixels lie between two coefficients of a band, along each axis."""
        return tuple(2 ** len(down) for down, _ in self.paths)

    @property
    def unit(self) -> int:
        """What the sides of an image must be multiples of, to have a basis."""
        return int(2**self.levels)

    @property
    def shares(self) -> FloatArray:
        """One over the number of shifted bases that each response appears in, (J,)."""
        return 1.0 / np.square(self.strides, dtype=np.float64)

    @property
    def reach(self) -> int:
        """Pixels that the longest filter spans."""
        return (self.scaling.size - 1) * (self.unit - 1) + 1

    def spectrum(self, band: int, shape: Shape) -> Spectrum:
        """The filter of norm one on a grid of any size: (H, W // 2 + 1), complex."""
        down, across = self.paths[band]
        return np.multiply.outer(self._along(down, shape[0]), self._along(across, shape[1])[: shape[1] // 2 + 1])

    def _along(self, path: str, length: int) -> NDArray[np.complex128]:
        frequencies = 2.0 * np.pi * np.arange(length) / length
        mirror = self.scaling[::-1] * (-1.0) ** np.arange(self.scaling.size)
        result = np.ones(length, np.complex128)
        for level, step in enumerate(path):
            taps = self.scaling if step == "l" else mirror
            # A coefficient looks ahead of its place, so that those of Haar's basis belong to blocks that tile the grid.
            result *= np.exp(1j * np.multiply.outer(2.0**level * frequencies, np.arange(taps.size))) @ taps
        return result
