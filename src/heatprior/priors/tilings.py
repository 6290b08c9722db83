"""The plane of frequencies cut into rings and orientations: the disjoint supports of section 3.2.

Ring s holds the frequencies with 2^−(s+1) < 2 max(|f_y|, |f_x|) ≤ 2^−s, the innermost all that are left but zero; each
ring is cut into equal angles. A set holds with a frequency its negative, so that the filters are real; at the Nyquist
frequency, which is its own negative along one axis, that needs care.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.errors import InvalidInputError
from heatprior.priors.bands import Shape, Spectrum

NO_BAND = -1  # the band of frequency zero: brightness is not modelled
MOST_SCALES = 64
ROUNDING = 1e-9  # of an angle: those on a border go to one side, whatever the size of the image


@dataclass(frozen=True)
class Tiling:
    """scales × orientations bands; band j is ring j // orientations, from the highest frequencies inwards."""

    scales: int
    orientations: int

    def __post_init__(self) -> None:
        for name in ("scales", "orientations"):
            if not 1 <= getattr(self, name) <= MOST_SCALES:
                raise InvalidInputError(f"{name} is {getattr(self, name)}; expected 1 to {MOST_SCALES}")

    @property
    def count(self) -> int:
        """J, the number of bands."""
        return self.scales * self.orientations

    @property
    def shares(self) -> FloatArray:
        """Every response counts whole: the bands share no frequency."""
        return np.ones(self.count)

    def labels(self, shape: Shape) -> IntArray:
        """The band of every frequency of the plane, (H, W), in the order of the Fourier transform."""
        return _labels(self, shape)

    def spectrum(self, band: int, shape: Shape) -> Spectrum:
        """The characteristic function of the set Γ_j, on half the plane: (H, W // 2 + 1)."""
        return np.asarray(self.labels(shape)[:, : shape[1] // 2 + 1] == band, np.float64)


@lru_cache(maxsize=4)
def _labels(tiling: Tiling, shape: Shape) -> IntArray:
    down, across = (np.fft.fftfreq(length) for length in shape)
    down = down[:, None]
    largest = np.maximum(np.abs(down), np.abs(across))
    with np.errstate(divide="ignore"):
        ring = np.minimum(np.floor(-np.log2(2.0 * largest) + ROUNDING), tiling.scales - 1)
    turn = np.arctan2(down, across) / np.pi + 0.5 / tiling.orientations + ROUNDING
    angle = np.floor(np.mod(turn, 1.0) * tiling.orientations)
    labels = (ring * tiling.orientations + np.minimum(angle, tiling.orientations - 1)).astype(np.int16)
    labels[0, 0] = NO_BAND
    negative = np.roll(labels[::-1, ::-1], 1, axis=(0, 1))  # the labels of −f
    result: IntArray = np.minimum(labels, negative)
    result.flags.writeable = False
    return result
