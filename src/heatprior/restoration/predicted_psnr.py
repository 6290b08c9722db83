"""What PSNR a denoised image should have, without the truth: two estimates of its risk, weighed by their variances.

Stein's is unbiased for any image and denoiser: E ‖f − x‖² = E ‖f − y‖² − tr C + 2 tr J C. But the noise of n pixels has
not exactly the variance that it should have, which is much beside the error that is left of strong noise. Another one
does not see that: nearly a constant, plus a part of the trace, plus a part of how much stronger what was removed is,
blurred, than what is removed of noise alone, learnt on validation images and kept on the prior's card. Where the two
contradict each other, nothing is predicted: the noise is not what was given, or the image is unlike any photograph.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan, pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.priors.schedules import TableOverSigma, read_table

CARD_ENTRY, COLUMNS = "risk", ("sigmas", "stein", "constant", "trace", "structure", "spread")
BLUR = (0.25, 0.5, 0.25)  # of what was removed, along either axis: a standard deviation of 0.7 pixels
ALIKE = pi  # pixels that count as one after it: Σ of the squared correlations
CONTRADICTION = 3.0  # standard errors of the difference of both estimates
LEAST_PART = 1e-3  # of the variance of the noise
DECIBELS = 10.0 / np.log(10.0)


class Probe(NamedTuple):
    """How the denoised image answers to noise n that is added to the noisy one: J n, beside n itself."""

    drawn: FloatArray  # n, (..., H, W)
    answer: FloatArray  # (f(y + n/10) − f(y)) · 10


class PredictedPsnr(NamedTuple):
    """The PSNR that a denoised image is expected to have, in dB, and the standard error of that.

    Both are NaN where nothing can be predicted: the noise is not what was given, as where it was clipped at black or
    white, or the image is unlike any photograph.
    """

    psnr: float
    stderr: float

    def __repr__(self) -> str:
        return f"PredictedPsnr({self.psnr:.1f} ± {self.stderr:.1f} dB)"


def read_risk_table(card: Mapping[str, Any], method: str) -> TableOverSigma | None:
    """What a prior's card says of the risk of a method, if anything.

    Risk = constant · s² + trace · (n J n) + structure · (what was removed, blurred, squared, beyond noise). `stein`
    corrects the trace in Stein's estimate, which a probe that is no infinitesimal one gets a little wrong; `spread` is
    the relative error of the risk from image to image.
    """

    def make(sigmas: tuple[float, ...], *columns: tuple[float, ...]) -> TableOverSigma:
        if not all(spread > 0.0 for spread in columns[-1]):
            raise InvalidInputError(f"spread is {columns[-1]}; expected numbers above 0")
        return TableOverSigma(sigmas, columns)

    return read_table(card, CARD_ENTRY, COLUMNS, make, section=method)


class Ingredients(NamedTuple):
    """What risk is estimated from, for every pixel, in squared units of the image; zero where pixels are missing."""

    removed: FloatArray  # squared: (f − y)²
    trace: FloatArray  # n J n
    through: FloatArray  # (J n)²
    blurred: FloatArray  # what was removed, blurred, squared
    of_noise: FloatArray  # the same of n − J n: what would be there if nothing but noise were removed
    known: FloatArray  # whether the pixel is there, 0 or 1


def ingredients(removed: FloatArray, found: Probe) -> Ingredients:
    """From what was removed, y − f (..., H, W), and the probe."""
    trace = found.drawn * found.answer
    known = np.isfinite(trace)
    drawn, answer = found
    if not known.all():
        removed, drawn, answer, trace = (np.where(known, values, 0.0) for values in (removed, drawn, answer, trace))
    blurred, of_noise = (np.square(_blur(values)) for values in (removed, drawn - answer))
    return Ingredients(np.square(removed), trace, np.square(answer), blurred, of_noise, known)


class _Estimate(NamedTuple):
    """Of the mean squared error: its variance, and how it moves with the logarithm of the variance of the noise."""

    risk: float
    variance: float
    slope: float

    def without(self, excess: float) -> _Estimate:
        """Had the variance of the noise been taken for smaller by this part."""
        return self._replace(risk=self.risk - excess * self.slope)


def predict_psnr(
    parts: Ingredients,
    levels: FloatArray,
    full: float,
    *,
    table: TableOverSigma | None = None,
    excess: float = 0.0,
    doubt: float = 0.0,
    alike: float = 1.0,
) -> PredictedPsnr:
    """The PSNR, full scale being `full`; `levels` are the standard deviations of the noise, (..., H, W).

    Where the variance of the noise was estimated, `excess` is the part by which it is too large on average, and `doubt`
    its relative error. `alike` is how many pixels count as one where noise is correlated.
    """
    count = float(np.count_nonzero(parts.known))
    if not count:
        raise InvalidInputError("every pixel of the image is missing; nothing is known of its quality")
    sigma = levels
    values = None if table is None else tuple(column.astype(sigma.dtype) for column in table.at(sigma / full))
    stein = _by_stein(parts, sigma, 1.0 if values is None else values[0], count, alike).without(excess)
    learnt = None if values is None else _by_table(parts, sigma, values, count).without(excess)
    least = LEAST_PART * _mean(np.square(sigma), parts, count)
    if learnt is None:
        risk, error, sound = _alone(stein, doubt)
    elif doubt and alike > 1.0:  # Stein's needs the covariance of the noise, which is then in doubt as a whole
        risk, error, sound = _alone(learnt, doubt)
    else:
        risk, error, sound = _weigh(stein, learnt, doubt)
    if not sound:
        return PredictedPsnr(nan, nan)
    risk = max(risk, error / 2.0, least)  # an estimate of nearly nothing may come out negative
    return PredictedPsnr(float(DECIBELS * np.log(full**2 / risk)), float(DECIBELS * error / risk))


def _by_stein(
    parts: Ingredients, sigma: FloatArray, factor: FloatArray | float, count: float, alike: float
) -> _Estimate:
    """‖f − y‖² − tr C + 2 tr J C, each over the number of pixels.

    Its variance has two parts, that of the noise itself, as far as the denoiser does not see it, and that of one draw
    instead of the trace; both are those of white noise on as many pixels as count.
    """
    variance = np.square(sigma)
    whole, squares = (_mean(values, parts, count) for values in (variance, np.square(variance)))
    trace = _mean(factor * parts.trace, parts, count)
    size = _mean(parts.through, parts, count) * whole
    risk = _mean(parts.removed, parts, count) - whole + 2.0 * trace
    by_noise = 2.0 * (squares - 4.0 * whole * trace + 4.0 * size) + 4.0 * whole * max(risk, 0.0)
    by_draw = 8.0 * max(size - trace**2, 0.0)
    return _Estimate(risk, (max(by_noise, 0.0) + by_draw) * alike / count, 2.0 * trace - whole)


def _by_table(parts: Ingredients, sigma: FloatArray, values: tuple[FloatArray, ...], count: float) -> _Estimate:
    """What is learnt: off by another part for every image, and a little because what was removed holds noise, too."""
    _, constant, trace, structure, spread = values
    steady = _mean(constant * np.square(sigma), parts, count) + _mean(trace * parts.trace, parts, count)
    of_noise = _mean(structure * parts.of_noise, parts, count)
    risk = steady + _mean(structure * parts.blurred, parts, count) - of_noise
    risk = max(risk, _mean(parts.through, parts, count) / 2.0)
    variance = (_mean(spread, parts, count) * risk) ** 2 + 4.0 * ALIKE * of_noise**2 / count
    return _Estimate(risk, variance, steady - of_noise)


def _alone(one: _Estimate, doubt: float) -> tuple[float, float, bool]:
    """The risk, its standard error, and whether it makes sense: none is below zero."""
    error = sqrt(one.variance + (one.slope * doubt) ** 2)
    return one.risk, error, one.risk > -CONTRADICTION * error


def _weigh(stein: _Estimate, learnt: _Estimate, doubt: float) -> tuple[float, float, bool]:
    """The same for both estimates by least variance; a doubt about the noise moves both."""
    first, second = (one.variance + (one.slope * doubt) ** 2 for one in (stein, learnt))
    both = stein.slope * learnt.slope * doubt**2
    apart = first + second - 2.0 * both
    weight = min(max((second - both) / apart, 0.0), 1.0)
    risk = weight * stein.risk + (1.0 - weight) * learnt.risk
    variance = weight**2 * first + (1.0 - weight) ** 2 * second + 2.0 * weight * (1.0 - weight) * both
    return risk, sqrt(max(variance, 0.0)), abs(stein.risk - learnt.risk) < CONTRADICTION * sqrt(apart)


def _blur(values: FloatArray) -> FloatArray:
    from scipy.ndimage import convolve1d  # noqa: PLC0415 (slow to import)

    rows = convolve1d(values, BLUR, axis=-2, mode="nearest")
    return np.asarray(convolve1d(rows, BLUR, axis=-1, mode="nearest"))


def _mean(values: FloatArray, parts: Ingredients, count: float) -> float:
    """Over the pixels that are there; one level stands for all."""
    if values.size == 1:
        return float(values.ravel()[0])
    if values.shape != parts.known.shape or count < parts.known.size:
        values = values * parts.known
    return float(np.sum(values, dtype=np.float64)) / count
