"""How noise is correlated from pixel to pixel: the power spectrum of a stationary field, without its strength.

Noise n of spectrum S has the autocovariance E[n(x) n(x + lag)] = r(lag), the Fourier transform of S. Demosaicing,
compression and the smoothing within a camera leave little of it at high frequencies, and neighbours are correlated.
A spectrum that is nowhere negative gives a covariance matrix for patches of any size, and that of a reduced image.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError

LEAST_POWER = 1e-5  # of the mean: no frequency is free of noise, if only because grey levels are rounded


@dataclass(frozen=True, eq=False)
class NoiseSpectrum:
    """Power at the P×P frequencies of a torus, in the order of `numpy.fft`, scaled to the mean one; P is even.

    White noise has the power one everywhere. The variance of a pixel is then one as well.
    """

    power: FloatArray

    def __post_init__(self) -> None:
        power = np.array(self.power, np.float64)
        if power.ndim != 2 or power.shape[0] != power.shape[1] or len(power) % 2 or len(power) < 4:
            raise InvalidInputError(f"the spectrum has shape {power.shape}; expected (P, P) with P even, 4 or more")
        if not (np.isfinite(power).all() and power.min() >= 0 and power.max() > 0):
            raise InvalidInputError("the spectrum holds NaN, infinite or negative power; give what a variance can be")
        power = (power + at_negative_frequencies(power)) / 2.0
        power = np.maximum(power, LEAST_POWER * power.mean())
        power /= power.mean()
        power.flags.writeable = False
        object.__setattr__(self, "power", power)

    @classmethod
    def white(cls, side: int = 32) -> NoiseSpectrum:
        """The same power at every frequency."""
        return cls(np.ones((side, side)))

    @property
    def side(self) -> int:
        """P."""
        return len(self.power)

    @cached_property
    def autocovariance(self) -> FloatArray:
        """r at all lags of the torus, (P, P); r[0, 0] = 1, and the correlation of neighbours is r[0, 1] and r[1, 0]."""
        return np.asarray(np.fft.ifft2(self.power).real)

    def covariance(self, size: int) -> FloatArray:
        """C of the noise on a patch of size×size pixels, (a, a), with ones on its diagonal."""
        if size > self.side:
            raise InvalidInputError(f"the spectrum has {self.side} frequencies; patches of {size} pixels need as many")
        return patch_covariance(self.power, size)

    def halved(self) -> tuple[NoiseSpectrum, float]:
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

    @property
    def length(self) -> float:
        """How far noise is correlated, in pixels: the root mean square lag, weighed by r²; 0 for white noise."""
        lags = np.minimum(np.arange(self.side), self.side - np.arange(self.side))
        squares = self.autocovariance**2
        distance = lags[:, None] ** 2 + lags[None, :] ** 2
        return float(np.sqrt((squares * distance).sum() / squares.sum()))

    def length_error(self, power_error: float) -> float:
        """Of `length`, if the power at every frequency has this relative error, independent of the others.

        By the chain rule: length² = Σ r² lag² / Σ r², and r is the Fourier transform of the power.
        """
        if self.length < 1e-6:
            return 0.0
        lags = np.minimum(np.arange(self.side), self.side - np.arange(self.side))
        r, distance = self.autocovariance, lags[:, None] ** 2 + lags[None, :] ** 2
        slope = r * (distance - self.length**2) / (self.length * np.square(r).sum())  # of the length by r
        by_power = np.fft.fft2(slope).real / self.power.size
        # S(f) and S(−f) are one number: its slope is twice that of each, and there are half as many.
        return float(power_error * np.sqrt(2.0 * np.square(by_power * self.power).sum()))


def at_negative_frequencies(power: FloatArray) -> FloatArray:
    """S(−f)."""
    return np.asarray(np.roll(power[::-1, ::-1], 1, axis=(0, 1)))


def lags_within(size: int, side: int) -> tuple[FloatArray, FloatArray]:
    """Rows and columns, on a torus, of the lag between any two pixels of a patch: (a, a) each."""
    places = np.arange(size)
    between = (places[:, None] - places[None, :]) % side
    ones = np.ones_like(between)
    return np.kron(between, ones), np.kron(ones, between)


def patch_covariance(power: FloatArray, size: int) -> FloatArray:
    """The covariance (a, a) of patches of noise of this power (P, P), which need not have the mean one."""
    rows, columns = lags_within(size, len(power))
    return np.asarray(np.fft.ifft2(power).real[rows, columns])
