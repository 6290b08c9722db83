"""Noise as a value: how strong it is at every pixel of an image (H, W), and how it is correlated between pixels.

Everything that denoises takes a `Noise` and asks it for levels, some rows at a time, so that a map of a large image
need not be in memory as a whole. Grey levels are 0 to 1. Noise is white unless it has a `NoiseSpectrum`: noise n of
spectrum S has the autocovariance E[n(x) n(x + lag)] = r(lag), the Fourier transform of S. Demosaicing, compression and
the smoothing within a camera leave little of it at high frequencies, and neighbours are correlated. A spectrum that is
nowhere negative gives a covariance matrix for patches of any size, and that of an image at half its size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.display import describe_fields
from heatprior.errors import InvalidInputError
from heatprior.locks import cached_property

SAME_LEVEL = 1.0 + 1e-6  # a map whose ends differ by less than this factor is constant

Rows = slice | IntArray
Levels = Callable[[FloatArray], FloatArray]  # of each level, another
LEAST_POWER = 1e-5  # of the mean: no frequency is free of noise, if only because grey levels are rounded


@dataclass(frozen=True)
class Noise:
    """Gaussian noise: its standard deviation at every pixel, from `lowest` to `highest`, some rows at a time.

    A prior that does not support correlated noise treats it as white noise of the same levels.
    """

    read: Callable[[Rows], FloatArray] | None  # rows → (rows, W); None if all pixels have the same level
    lowest: float
    highest: float
    spectrum: NoiseSpectrum | None = None  # how it is correlated from pixel to pixel; None if it is not

    @classmethod
    def constant(cls, sigma: float, spectrum: NoiseSpectrum | None = None) -> Noise:
        """Noise of the same level everywhere."""
        return cls(None, sigma, sigma, spectrum)

    @property
    def is_constant(self) -> bool:
        """Whether all pixels have the same level; of a map that does, `as_noise` makes constant noise."""
        return self.read is None

    def rows(self, rows: Rows) -> FloatArray:
        """The levels of some rows of pixels, (rows, W), or () if all are the same."""
        return np.asarray(self.lowest) if self.read is None else self.read(rows)

    def patches(self, rows: slice, size: int) -> FloatArray:
        """The levels of all patches in some rows, root mean squares over pixels: (rows − b + 1, W − b + 1), or ()."""
        return np.asarray(self.lowest) if self.read is None else root_mean_squares(self.read(rows), size)

    def change(self, levels: Levels, lowest: float, highest: float) -> Noise:
        """The noise whose levels are `levels` of these, all from `lowest` to `highest`."""
        if self.is_constant:
            return Noise.constant(float(levels(np.asarray(self.lowest))), self.spectrum)
        return Noise(lambda rows: levels(self.rows(rows)), lowest, highest, self.spectrum)

    def rearrange(self, read: Callable[[Callable[[Rows], FloatArray], Rows], FloatArray]) -> Noise:
        """The noise of an image whose rows `read` puts together from rows of this one, as where it is mirrored."""
        return self if self.is_constant else replace(self, read=lambda rows: read(self.rows, rows))

    def halve(self, shape: tuple[int, int], factor: float) -> Noise:
        """The noise of an image (H, W) at half its size: root mean squares over 2×2 pixels or fewer, times `factor`."""
        spectrum, part = (None, 1.0) if self.spectrum is None else self.spectrum.halve()
        factor *= part
        height, width = (-(-length // 2) for length in shape)

        def read(wanted: Rows) -> FloatArray:
            numbers = np.arange(height)[wanted]
            pairs = []
            for offset in (0, 1):
                squares = np.square(self.rows(np.minimum(2 * numbers + offset, shape[0] - 1)), dtype=np.float32)
                right = np.concatenate([squares[:, 1::2], squares[:, -1:]], axis=1)[:, :width]
                pairs.append((squares[:, ::2] + right) / 2.0)
            return np.asarray(factor * np.sqrt((pairs[0] + pairs[1]) / 2.0))

        own = None if self.is_constant else read
        return Noise(own, self.lowest * factor, self.highest * factor, spectrum)


def as_noise(sigma: float | FloatArray | Noise) -> Noise:
    """A number, a map (H, W) or noise as noise; a map that is constant counts as one level."""
    if not isinstance(sigma, Noise):
        values = np.asarray(sigma)
        sigma = Noise(values.__getitem__, float(values.min()), float(values.max()))
    return Noise.constant(sigma.lowest, sigma.spectrum) if sigma.highest <= sigma.lowest * SAME_LEVEL else sigma


def mix_noise(noises: Sequence[Noise], weights: FloatArray) -> Noise:
    """The noise of Σ_c weights_c x_c of independent channels: sqrt(Σ_c weights_c² sigma_c²)."""

    def together(levels: Sequence[FloatArray | float]) -> FloatArray:
        squares = [weight**2 * np.square(level) for weight, level in zip(weights, levels, strict=True)]
        return np.asarray(np.sqrt(sum(squares)))

    lowest, highest = (float(together([getattr(noise, end) for noise in noises])) for end in ("lowest", "highest"))
    if all(noise.is_constant for noise in noises):
        return Noise.constant(lowest)
    return Noise(lambda rows: together([noise.rows(rows) for noise in noises]), lowest, highest)


def root_mean_squares(levels: FloatArray, size: int) -> FloatArray:
    """Root mean squares of a map over every patch: (H, W) → (H − b + 1, W − b + 1)."""
    squares = np.square(levels, dtype=np.float32)
    height, width = (length - size + 1 for length in squares.shape)
    columns = sum(squares[i : i + height] for i in range(1, size)) + squares[:height]
    return np.asarray(np.sqrt((sum(columns[:, i : i + width] for i in range(1, size)) + columns[:, :width]) / size**2))


@dataclass(frozen=True, eq=False)
class NoiseSpectrum:
    """Power at the P×P frequencies of a torus, in the order of `numpy.fft`, scaled to the mean one; P is even.

    White noise has the power one everywhere. The variance of a pixel is then one as well.
    """

    power: FloatArray
    __repr__ = describe_fields

    def __post_init__(self) -> None:
        power = np.array(self.power, np.float64)
        if power.ndim != 2 or power.shape[0] != power.shape[1] or len(power) % 2 or len(power) < 4:
            raise InvalidInputError(f"the spectrum has shape {power.shape}; expected (P, P) with P even, 4 or more")
        if not (np.isfinite(power).all() and power.min() >= 0 and power.max() > 0):
            raise InvalidInputError("the spectrum holds NaN, infinite or negative power; give what a variance can be")
        power = (power + np.roll(power[::-1, ::-1], 1, axis=(0, 1))) / 2.0  # at −f, too
        power = np.maximum(power, LEAST_POWER * power.mean())
        power /= power.mean()
        power.flags.writeable = False
        object.__setattr__(self, "power", power)

    @property
    def side(self) -> int:
        """P, the number of frequencies along each side."""
        return len(self.power)

    @cached_property
    def autocovariance(self) -> FloatArray:
        """r at all lags of the torus, (P, P); r[0, 0] = 1, and the correlation of neighbours is r[0, 1] and r[1, 0]."""
        return np.asarray(np.fft.ifft2(self.power).real)

    def covariance(self, size: int) -> FloatArray:
        """C of the noise on a patch of size×size pixels, (a, a), with ones on its diagonal."""
        if size > self.side:
            raise InvalidInputError(f"the spectrum has {self.side} frequencies; patches of {size} pixels need as many")
        places = np.arange(size)
        between = (places[:, None] - places) % self.side
        ones = np.ones_like(between)
        return np.asarray(self.autocovariance[np.kron(between, ones), np.kron(ones, between)])

    def halve(self) -> tuple[NoiseSpectrum, float]:
        """The spectrum of the noise in the image reduced by two, and its deviation over that of white noise there.

        The reduced image keeps the frequencies below a half and nothing else, so its spectrum is that part of this one,
        read at twice as many frequencies: between those of the torus by the Fourier series of the autocovariance.
        """
        twice = 2 * self.side
        finer = self._on_torus((twice, twice))
        low = np.fft.fftfreq(self.side, 1.0 / self.side).astype(np.int64) % twice
        part = finer[np.ix_(low, low)]
        return NoiseSpectrum(part), float(np.sqrt(part.mean()))

    def field(self, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
        """A draw of Gaussian noise of this spectrum and of variance one: (H, W)."""
        torus = (shape[0] + self.side, shape[1] + self.side)  # so that opposite edges have nothing in common
        power = self._on_torus(torus)
        white = np.fft.fft2(rng.standard_normal(torus))
        drawn = np.fft.ifft2(white * np.sqrt(power / power.mean())).real
        return np.asarray(drawn[: shape[0], : shape[1]])

    def _on_torus(self, shape: tuple[int, int]) -> FloatArray:
        """The power at the frequencies of a larger torus: the Fourier series of the autocovariance."""
        near = np.arange(1 - self.side // 2, self.side // 2)
        lags = np.zeros(shape)
        lags[np.ix_(near % shape[0], near % shape[1])] = self.autocovariance[np.ix_(near % self.side, near % self.side)]
        return np.maximum(np.fft.fft2(lags).real, LEAST_POWER)

    @property
    def pixels_alike(self) -> float:
        """How many pixels of this noise tell as little of a variance as one of white noise: Σ r², 1 if it is white."""
        return float(np.square(self.autocovariance).sum())
