"""How far a denoised image may be from the truth, pixel by pixel, and on the whole: from one probe of the denoiser.

For a posterior mean f(y) = E[X | Y = y] the covariance of what remains unknown is C times its derivative, Cov[X | Y] =
J_f(y) C: Tweedie's formula, differentiated once more. So one more run of the very same denoiser, on the image with a
tenth of the noise n added to it, tells the error of every pixel as n_p (f(y + n/10) − f(y))_p · 10 on average over n:
whatever the prior, the method, the scales, the colours and the noise model. Overlapping patches, which are correlated,
need no model, since what is probed is their average. Neighbouring pixels share an average, for one draw of n is noisy.

Denoisers that are not quite posterior means (averages, splitting, tuned priors) have errors of nearly this size; how
nearly is measured on validation images and kept on the prior's card (`Calibration`).

The same probe gives Stein's unbiased risk estimate: E ‖f − x‖² = E ‖f − y‖² − tr C + 2 tr J C, the PSNR without truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError, PriorFileError

PROBE = 0.1  # of the noise: much less, and jumps between shapes go unseen; much more is no derivative

WIDTH = 3.0  # pixels over which neighbours share an average, the standard deviation of a Gaussian
TRUNCATED = 3.0  # widths at which the Gaussian ends
LEAST_PART, MOST_PART = 1e-3, 4.0  # of the variance of the noise: no pixel is known better, or worse
CARD_ENTRY, COLUMNS = "standard_errors", ("sigmas", "probed", "actual", "powers")
LEAST_SIGMA = 1e-9  # has a logarithm


class Probe(NamedTuple):
    """How the denoised image answers to noise n that is added to the noisy one: J n, beside n itself."""

    drawn: FloatArray  # n, (..., H, W)
    answer: FloatArray  # (f(y + n/10) − f(y)) · 10


class PredictedPsnr(NamedTuple):
    """The PSNR that a denoised image is expected to have, in dB, and the standard error of that."""

    psnr: float
    stderr: float


@dataclass(frozen=True)
class Calibration:
    """Variance of the error = actual · s² (probed variance / (probed · s²))^power for noise of level s.

    `probed` is what is typical at a level, in parts of the variance of the noise, `actual` what the error then is; in
    between levels all are straight in logarithms. A power above one says that a denoiser does worse than its own
    derivative where it changes much, and better where it is sure of itself.
    """

    sigmas: tuple[float, ...] = (1.0,)  # ascending
    probed: tuple[float, ...] = (1.0,)
    actual: tuple[float, ...] = (1.0,)
    powers: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        columns = [np.array(x, np.float64) for x in (self.sigmas, self.probed, self.actual, self.powers)]
        if any(x.ndim != 1 or x.shape != columns[0].shape or not x.size for x in columns):
            raise InvalidInputError(f"{', '.join(COLUMNS)} must be lists of numbers of the same length")
        if not all(np.isfinite(x).all() and (x > 0).all() for x in columns) or (np.diff(columns[0]) <= 0).any():
            raise InvalidInputError(f"{', '.join(COLUMNS)} must be positive, and sigmas ascend")

    def variance(self, probed: FloatArray, sigma: FloatArray) -> FloatArray:
        """Of the error, given the probed variance and the level of the noise: (..., H, W)."""
        # One level for all pixels has strides of zero: it is looked up once.
        level = sigma[..., :1, :1] if sigma.ndim >= 2 and not any(sigma.strides[-2:]) else sigma
        noise = np.maximum(np.square(level), LEAST_SIGMA**2)
        place = np.log(noise) / 2.0
        usual, actual, power = (
            np.exp(np.interp(place, np.log(self.sigmas), np.log(values)))
            for values in (self.probed, self.actual, self.powers)
        )
        part = actual * np.power(np.maximum(probed / noise, LEAST_PART) / usual, power)
        return np.asarray(np.clip(part, LEAST_PART, MOST_PART) * noise)


def calibration_on(card: Mapping[str, Any], method: str) -> Calibration:
    """What a prior's card says of a method; if it says nothing, the probed variance is taken as it is."""
    entry = card.get(CARD_ENTRY)
    if entry is None:
        return Calibration()
    try:
        table = entry.get(method)
        return Calibration(*(tuple(table[key]) for key in COLUMNS)) if table else Calibration()
    except (AttributeError, InvalidInputError, KeyError, TypeError, ValueError) as error:
        raise PriorFileError(f'"{CARD_ENTRY}" of the prior\'s card: {error}') from error


def probe(
    denoise: Callable[[FloatArray], FloatArray], noisy: FloatArray, clean: FloatArray, drawn: FloatArray
) -> Probe:
    """Denoise once more, with a tenth of the noise `drawn` added; `clean` is the image denoised without it."""
    return Probe(drawn, (denoise(noisy + PROBE * drawn) - clean) / PROBE)


def probed_variance(found: Probe, alike: float = 1.0) -> FloatArray:
    """n J n, averaged over neighbours in the last two axes, not negative; NaN where pixels are missing.

    `alike` is how many pixels count as one where noise is correlated: as many more share an average.
    """
    from scipy.ndimage import gaussian_filter  # noqa: PLC0415 (slow to import)

    product = found.drawn * found.answer
    known = np.isfinite(product)
    width = WIDTH * float(np.sqrt(alike))
    over = (0.0,) * (product.ndim - 2) + (width, width)
    if known.all():
        return np.maximum(gaussian_filter(product, over, mode="nearest", truncate=TRUNCATED), 0.0)
    weights = gaussian_filter(known.astype(np.float32), over, mode="nearest", truncate=TRUNCATED)
    sums = gaussian_filter(np.where(known, product, 0.0), over, mode="nearest", truncate=TRUNCATED)
    return np.where(known, np.maximum(sums / np.maximum(weights, 1e-6), 0.0), np.nan)


def psnr_by_risk(
    noisy: FloatArray,
    clean: FloatArray,
    variance: FloatArray,
    found: Probe,
    white: float,
    *,
    doubt: float = 0.0,
    alike: float = 1.0,
) -> PredictedPsnr:
    """The PSNR by Stein's unbiased risk estimate; `variance` is that of the noise of every pixel.

    Its error has three parts: the noise has not exactly the variance that it should have (as far as the denoiser does
    not see that), one draw is not the trace, and `doubt`, the relative error of the variance where that was estimated.
    The first two are those of white noise on as many pixels as count, of `alike` one.
    """
    product = found.drawn * found.answer
    known = np.isfinite(product)
    count = int(known.sum()) / alike
    if not count:
        raise InvalidInputError("every pixel of the image is missing; nothing is known of its quality")
    variance = np.broadcast_to(variance, known.shape)[known]
    whole, squares = float(variance.mean()), float(np.square(variance).mean())
    trace, size = float(product[known].mean()), float(np.mean(np.square(found.answer[known]))) * whole
    risk = float(np.mean(np.square(clean[known] - noisy[known]))) - whole + 2.0 * trace
    by_noise = 2.0 * (squares - 4.0 * whole * trace + 4.0 * size) + 4.0 * whole * max(risk, 0.0)
    by_draw = 8.0 * max(size - trace**2, 0.0)
    by_level = abs(2.0 * trace - whole) * doubt
    error = float(np.sqrt((max(by_noise, 0.0) + by_draw) / count + by_level**2))
    risk = max(risk, error / 2.0, LEAST_PART * whole)  # an estimate of nearly nothing may come out negative
    decibels = 10.0 / np.log(10.0)
    return PredictedPsnr(float(decibels * np.log(white**2 / risk)), float(decibels * error / risk))
