"""Noise as a value: its standard deviation at every pixel of an image (H, W), whether it is constant or varies.

Noise is white unless it has a spectrum. Everything that denoises takes a `Noise` and asks it for levels, some rows at a
time, so that a map of a large image need not be in memory as a whole. Grey levels are 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.noise_model.spectrum import NoiseSpectrum

SAME_LEVEL = 1.0 + 1e-6  # a map whose ends differ by less than this factor is constant

Rows = slice | IntArray
Levels = Callable[[FloatArray], FloatArray]  # of each level, another


class Noise(Protocol):
    """Gaussian noise whose standard deviation lies from `lowest` to `highest`.

    A prior that does not support correlated noise treats it as white noise of the same levels.
    """

    @property
    def spectrum(self) -> NoiseSpectrum | None:
        """How it is correlated from pixel to pixel; None if it is not."""
        ...

    @property
    def lowest(self) -> float:
        """The lowest level."""
        ...

    @property
    def highest(self) -> float:
        """The highest level."""
        ...

    @property
    def is_constant(self) -> bool:
        """Whether all pixels have the same level."""
        ...

    def rows(self, rows: Rows) -> FloatArray:
        """The levels of some rows of pixels, (rows, W), or () if all are the same."""
        ...

    def patches(self, rows: slice, size: int) -> FloatArray:
        """The levels of all patches in some rows, root mean squares over pixels: (rows − b + 1, W − b + 1), or ()."""
        ...

    def changed(self, levels: Levels, lowest: float, highest: float) -> Noise:
        """The noise whose levels are `levels` of these, all from `lowest` to `highest`."""
        ...

    def rearranged(self, read: Callable[[Callable[[Rows], FloatArray], Rows], FloatArray]) -> Noise:
        """The noise of an image whose rows `read` puts together from rows of this one, as where it is mirrored."""
        ...

    def halved(self, shape: tuple[int, int], factor: float) -> Noise:
        """The noise of an image (H, W) at half its size: the root mean square over 2×2 pixels, times `factor`."""
        ...


@dataclass(frozen=True)
class ConstantNoise:
    """The same level everywhere."""

    sigma: float
    spectrum: NoiseSpectrum | None = None

    @property
    def lowest(self) -> float:
        """The one level."""
        return self.sigma

    @property
    def highest(self) -> float:
        """The one level."""
        return self.sigma

    @property
    def is_constant(self) -> bool:
        """Always."""
        return True

    def rows(self, rows: Rows) -> FloatArray:  # noqa: ARG002
        """The one level, ()."""
        return np.asarray(self.sigma)

    def patches(self, rows: slice, size: int) -> FloatArray:  # noqa: ARG002
        """The one level, ()."""
        return np.asarray(self.sigma)

    def changed(self, levels: Levels, lowest: float, highest: float) -> ConstantNoise:  # noqa: ARG002
        """`levels` of the one level."""
        return ConstantNoise(float(levels(np.asarray(self.sigma))), self.spectrum)

    def rearranged(
        self,
        read: Callable[[Callable[[Rows], FloatArray], Rows], FloatArray],  # noqa: ARG002
    ) -> ConstantNoise:
        """The same."""
        return self

    def halved(self, shape: tuple[int, int], factor: float) -> ConstantNoise:  # noqa: ARG002
        """The level times `factor`."""
        spectrum, part = _halved(self.spectrum)
        return ConstantNoise(self.sigma * factor * part, spectrum)


@dataclass(frozen=True)
class NoiseMap:
    """A level for each pixel, some rows at a time, all from `lowest` to `highest`."""

    read: Callable[[Rows], FloatArray]  # rows → (rows, W)
    lowest: float
    highest: float
    spectrum: NoiseSpectrum | None = None

    @property
    def is_constant(self) -> bool:
        """Never; `as_noise` makes constant noise of a constant map."""
        return False

    def rows(self, rows: Rows) -> FloatArray:
        """(rows, W)."""
        return self.read(rows)

    def patches(self, rows: slice, size: int) -> FloatArray:
        """(rows − b + 1, W − b + 1), in float32."""
        return root_mean_squares(self.read(rows), size)

    def changed(self, levels: Levels, lowest: float, highest: float) -> NoiseMap:
        """Level by level."""
        return NoiseMap(lambda rows: levels(self.read(rows)), lowest, highest, self.spectrum)

    def rearranged(self, read: Callable[[Callable[[Rows], FloatArray], Rows], FloatArray]) -> NoiseMap:
        """Row by row."""
        return NoiseMap(lambda rows: read(self.read, rows), self.lowest, self.highest, self.spectrum)

    def halved(self, shape: tuple[int, int], factor: float) -> NoiseMap:
        """The last row or column stands for itself where there is no next one."""
        height, width = (-(-length // 2) for length in shape)
        spectrum, part = _halved(self.spectrum)
        factor *= part

        def read(wanted: Rows) -> FloatArray:
            numbers = np.arange(height)[wanted]
            pairs = []
            for offset in (0, 1):
                squares = np.square(self.read(np.minimum(2 * numbers + offset, shape[0] - 1)), dtype=np.float32)
                right = np.concatenate([squares[:, 1::2], squares[:, -1:]], axis=1)[:, :width]
                pairs.append((squares[:, ::2] + right) / 2.0)
            return np.asarray(factor * np.sqrt((pairs[0] + pairs[1]) / 2.0))

        return NoiseMap(read, self.lowest * factor, self.highest * factor, spectrum)


def as_noise(sigma: float | FloatArray | Noise) -> Noise:
    """A number, a map (H, W) or noise as noise; a map that is constant counts as one level."""
    if isinstance(sigma, ConstantNoise):
        return sigma
    if not isinstance(sigma, NoiseMap):
        values = np.asarray(sigma)
        sigma = NoiseMap(values.__getitem__, float(values.min()), float(values.max()))
    return ConstantNoise(sigma.lowest, sigma.spectrum) if sigma.highest <= sigma.lowest * SAME_LEVEL else sigma


def _halved(spectrum: NoiseSpectrum | None) -> tuple[NoiseSpectrum | None, float]:
    """Of the image at half its size, and how much more noise than white one is left there."""
    return (None, 1.0) if spectrum is None else spectrum.halved()


def mixed_noise(noises: Sequence[Noise], weights: FloatArray) -> Noise:
    """The noise of Σ_c weights_c x_c of independent channels: sqrt(Σ_c weights_c² sigma_c²)."""

    def together(levels: Sequence[FloatArray | float]) -> FloatArray:
        squares = [weight**2 * np.square(level) for weight, level in zip(weights, levels, strict=True)]
        return np.asarray(np.sqrt(sum(squares)))

    lowest, highest = (float(together([getattr(noise, end) for noise in noises])) for end in ("lowest", "highest"))
    if all(noise.is_constant for noise in noises):
        return ConstantNoise(lowest)
    return NoiseMap(lambda rows: together([noise.rows(rows) for noise in noises]), lowest, highest)


def root_mean_squares(levels: FloatArray, size: int) -> FloatArray:
    """Of a map over every patch: (H, W) → (H − b + 1, W − b + 1)."""
    squares = np.square(levels, dtype=np.float32)
    height, width = (length - size + 1 for length in squares.shape)
    columns = sum(squares[i : i + height] for i in range(1, size)) + squares[:height]
    return np.asarray(np.sqrt((sum(columns[:, i : i + width] for i in range(1, size)) + columns[:, :width]) / size**2))
