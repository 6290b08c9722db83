"""Counted photons as values whose noise is white: the generalised Anscombe transform, and its exact unbiased inverse.

A pixel is y = black + gain · Poisson(λ) + read noise. The transform (Starck, Murtagh, Bijaoui 1998) f(y) = 2 sqrt(z +
3/8 + s²), with z = (y − black) / gain and s = read noise / gain, has a standard deviation of nearly one from a few
counts on. What denoises f(y) estimates E[f | λ], and f⁻¹ of that is below λ: at one count by a fifth. The exact
unbiased inverse (Mäkitalo, Foi 2011, 2013) takes E[f | λ] to λ. Both moments of f are sums over counts of a Gaussian
integral, done by quadrature. Below a few counts the deviation of f is less, known as a function of λ, and so smooth
that λ from a blurred image is good enough: one count a pixel is denoised better by 1.1 dB.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError

SHIFT = 3.0 / 8.0
MOST_READ = 1e5  # photons of read noise: beyond it those of light are lost in float32
LEAST_PHOTON = 1e-3  # of one photon: no image is darker all over, unless it holds none
LEAST_READ = 1e-6  # below it there is none; a quadrature over so narrow a Gaussian would fail
MOST_COUNTS = 400.0  # to which there are tables; beyond it the asymptote is right to 1e-5 of a count
NODES = 401  # of λ, equally spaced in its square root, as f is
TAIL = 9.0  # standard deviations, beyond which a Gaussian is nothing
QUADRATURE = 96  # points over a Gaussian: more do not change the sixth decimal
BLUR = 2.0  # pixels, of the image that says where there are few counts; 1.5 and 3 are as good
LEAST_SIGMA = 0.05  # of stabilised values: where there were no counts at all the model says none
DARK = 0.25  # part of an image whose noise tells black level and read noise apart
DARKEST = 0.01  # quantile of brightness that the black level is not above
BLACK_LEVELS = 9  # that are tried
SECOND_DIFFERENCE = np.outer([1.0, -2.0, 1.0], [1.0, -2.0, 1.0]) / 6.0  # keeps the variance of white noise


@dataclass(frozen=True)
class PoissonGaussian:
    """Noise of photon counts and read-out: variance = gain · (x − black) + read_noise², in the units of the image.

    Parameters
    ----------
    gain : float
        The value of one photon.
    read_noise : float
        Standard deviation of the read-out noise.
    black : float
        Black level: the value of a pixel without photons.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> rate = np.tile(np.linspace(0.5, 4.0, 64), (64, 1))
    >>> photons = np.random.default_rng(0).poisson(rate)
    >>> denoised = hp.denoise(photons.astype(float), noise=hp.PoissonGaussian(gain=1.0))
    >>> bool(np.std(denoised - rate) < 0.2 * np.std(photons - rate))
    True
    """

    gain: float
    read_noise: float = 0.0
    black: float = 0.0

    def __post_init__(self) -> None:
        values = (self.gain, self.read_noise, self.black)
        if not (all(isinstance(value, Real) for value in values) and np.isfinite(values).all()) or not (
            self.gain > 0 <= self.read_noise <= MOST_READ * self.gain
        ):
            raise InvalidInputError(
                f"gain is {self.gain}, read_noise {self.read_noise}, black {self.black}; expected a gain above 0, read "
                f"noise from 0 to {MOST_READ:g} times that, and a black level, in the units of the image"
            )

    def scale(self, factor: float) -> PoissonGaussian:
        """The noise of the image times a factor."""
        return PoissonGaussian(factor * self.gain, factor * self.read_noise, factor * self.black)

    @property
    def _read_counts(self) -> float:
        """Read noise in counts: s."""
        counts = self.read_noise / self.gain
        return counts if counts > LEAST_READ else 0.0

    def check_fits(self, image: NDArray[Any]) -> None:
        """Refuse an image most of which is darker than no photons, or all of which is nothing beside one."""
        if np.isnan(image).all():  # which is refused as that
            return
        middle, brightest = float(np.nanmedian(image)) - self.black, float(np.nanmax(image)) - self.black
        if middle < -3.0 * self.read_noise - self.gain or 0.0 < brightest < LEAST_PHOTON * self.gain:
            raise InvalidInputError(
                f"the image has values around {middle + self.black:g}, up to {brightest + self.black:g}, but black is "
                f"{self.black:g} and the gain {self.gain:g}; give both in the units of the image"
            )

    def stabilise(self, image: FloatArray) -> FloatArray:
        """f(y): its noise has a standard deviation of about one."""
        counts = (np.asarray(image, np.float64) - self.black) / self.gain
        return np.asarray(2.0 * np.sqrt(np.maximum(counts + SHIFT + self._read_counts**2, 0.0)))

    def stabilised_range(self, white: float) -> float:
        """Of stabilised values: from black to white."""
        return float(np.ptp(self.stabilise(np.array([self.black, white]))))

    def unstabilise(self, stabilised: FloatArray) -> FloatArray:
        """The image black + gain · λ whose stabilised values have this mean: the exact unbiased inverse.

        Means below that of no counts go on below black, so that a black level a little too high cuts off nothing.
        """
        table = _moments(self._read_counts)
        mean = np.maximum(np.asarray(stabilised, np.float64), 0.0)
        counts = np.square(mean) / 4.0 + np.interp(mean, table.means, table.counts - np.square(table.means) / 4.0)
        return np.asarray(self.black + self.gain * counts)

    def stabilised_sigma(self, image: FloatArray) -> FloatArray:
        """The standard deviation of stabilised values where the noiseless image is this: one, but for few counts."""
        counts = np.maximum((np.asarray(image, np.float64) - self.black) / self.gain, 0.0)
        table = _moments(self._read_counts)
        return np.asarray(np.interp(np.sqrt(counts), np.sqrt(table.counts), table.sigmas))

    def sigma(self, image: FloatArray) -> FloatArray:
        """The standard deviation of the noise where the noiseless image is this."""
        light = np.maximum(np.asarray(image, np.float64) - self.black, 0.0)
        return np.asarray(np.sqrt(self.gain * light + self.read_noise**2))

    def sigma_of_stabilised(self, image: FloatArray) -> FloatArray:
        """The same, of a noisy image (H, W) without NaN: it is blurred first."""
        return np.maximum(self.stabilised_sigma(_blur(image)), LEAST_SIGMA)


def split_line(gain: float, offset: float, image: FloatArray) -> PoissonGaussian:
    """Counts of variance gain · x + offset; black level and read noise are told apart by the image (H, W) without NaN.

    The line fixes the transform and read_noise² − gain · black, not both. They differ in the noise of few counts: so
    that of the stabilised image where it is dark decides, between no read noise and a black level as dark as the image.
    """
    from scipy.ndimage import convolve  # noqa: PLC0415 (slow to import)

    no_variance = -offset / gain
    blurred = _blur(image)
    dark = blurred <= np.quantile(blurred, DARK)
    stabilised = PoissonGaussian(gain, 0.0, no_variance).stabilise(image)
    variance = float(np.square(convolve(stabilised, SECOND_DIFFERENCE, mode="reflect"))[dark].mean())
    highest = max(float(np.quantile(blurred, DARKEST)), no_variance)

    def miss(counts: PoissonGaussian) -> float:
        return abs(float(np.square(counts.stabilised_sigma(blurred[dark])).mean()) - variance)

    blacks = np.linspace(no_variance, highest, BLACK_LEVELS)
    read_noises = np.sqrt(gain * (blacks - no_variance))
    return min((PoissonGaussian(gain, float(s), float(b)) for s, b in zip(read_noises, blacks, strict=True)), key=miss)


def _blur(image: FloatArray) -> FloatArray:
    from scipy.ndimage import gaussian_filter  # noqa: PLC0415 (slow to import)

    return np.asarray(gaussian_filter(np.asarray(image, np.float64), BLUR))


class Moments(NamedTuple):
    """Of f at some λ: E[f | λ], and the standard deviation of f."""

    counts: FloatArray
    means: FloatArray
    sigmas: FloatArray


@lru_cache(maxsize=32)
def _moments(read_counts: float) -> Moments:
    """From no counts to `MOST_COUNTS`, at read noise s in counts."""
    counts = np.square(np.linspace(0.0, np.sqrt(MOST_COUNTS), NODES))
    numbers = np.arange(int(MOST_COUNTS + TAIL * np.sqrt(MOST_COUNTS)) + 1)
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(numbers[1:]))])
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.where(numbers == 0, 0.0, numbers * np.log(counts)[:, None])
    poisson = np.exp(exponents - counts[:, None] - log_factorials)
    poisson /= poisson.sum(axis=1, keepdims=True)
    first, second = _of_each_number(numbers + SHIFT + read_counts**2, read_counts)
    means = poisson @ first
    return Moments(counts, means, np.sqrt(np.maximum(poisson @ second - np.square(means), 0.0)))


def _of_each_number(centres: FloatArray, s: float) -> tuple[FloatArray, FloatArray]:
    """E[2 sqrt(v)] and E[4 v] for v = (centre + s n)₊, n standard normal.

    With v = r² the integrand is smooth, the square root's branch point at zero included.
    """
    if s == 0.0:
        return 2.0 * np.sqrt(centres), 4.0 * centres
    ends = np.sqrt(np.maximum(centres - TAIL * s, 0.0)), np.sqrt(centres + TAIL * s)
    points, weights = np.polynomial.legendre.leggauss(QUADRATURE)
    half = (ends[1] - ends[0])[:, None] / 2.0
    r = ends[0][:, None] + half * (1.0 + points)
    density = np.exp(-0.5 * np.square((np.square(r) - centres[:, None]) / s)) / (s * np.sqrt(2.0 * np.pi))
    measure = 2.0 * r * density * half * weights
    return np.asarray((2.0 * r * measure).sum(axis=1)), np.asarray((4.0 * r**2 * measure).sum(axis=1))
