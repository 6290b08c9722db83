"""How far each pixel of a denoised image may be from the truth: from one probe of the denoiser.

For a posterior mean f(y) = E[X | Y = y] the covariance of what remains unknown is C times its derivative, Cov[X | Y] =
J_f(y) C: Tweedie's formula, differentiated once more. So one more run of the very same denoiser, on the image with a
tenth of the noise n added to it, tells the error of every pixel as n_p (f(y + n/10) − f(y))_p · 10 on average over n:
whatever the prior, the method, the scales, the colours and the noise model. Overlapping patches, which are correlated,
need no model, since what is probed is their average. Neighbouring pixels share an average, for one draw of n is noisy.

Denoisers that are not quite posterior means (averages, splitting, tuned priors) have errors of nearly this size; how
nearly is measured on validation images and kept on the prior's card (`Calibration`).

The same probe tells the PSNR without the truth (`predicted_quality`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError, PriorFileError

PROBE = 0.1  # of the noise: much less, and jumps between shapes go unseen; much more is no derivative

WIDTH = 5.0  # pixels over which neighbours share an average, the standard deviation of a Gaussian
TRUNCATED = 3.0  # widths at which the Gaussian ends
LEAST_PART, MOST_PART = 1e-3, 1.5  # of the variance of the noise: no pixel is known better, or much worse than noisy
CARD_ENTRY, COLUMNS = "standard_errors", ("sigmas", "probed", "actual", "powers")
LEAST_SIGMA = 1e-9  # has a logarithm
Table = TypeVar("Table")


class Probe(NamedTuple):
    """How the denoised image answers to noise n that is added to the noisy one: J n, beside n itself."""

    drawn: FloatArray  # n, (..., H, W)
    answer: FloatArray  # (f(y + n/10) − f(y)) · 10


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
        noise = np.maximum(np.square(one_level(sigma)), LEAST_SIGMA**2).astype(probed.dtype)
        place = np.log(noise) / 2.0
        usual, actual, power = (
            np.interp(place, np.log(self.sigmas), np.log(values)).astype(probed.dtype)
            for values in (self.probed, self.actual, self.powers)
        )
        part = np.maximum(probed / noise, LEAST_PART)
        part = np.exp(actual + np.exp(power) * (np.log(part, out=part) - usual))
        return np.asarray(np.clip(part, LEAST_PART, MOST_PART) * noise)


def one_level(levels: FloatArray) -> FloatArray:
    """Levels (..., H, W) as (..., 1, 1) if one number was broadcast over the pixels: it is looked up once."""
    return levels[..., :1, :1] if levels.ndim >= 2 and not any(levels.strides[-2:]) else levels


def calibration_on(card: Mapping[str, Any], method: str) -> Calibration:
    """What a prior's card says of a method; if it says nothing, the probed variance is taken as it is."""
    return columns_on(card, CARD_ENTRY, method, COLUMNS, Calibration) or Calibration()


def columns_on(
    card: Mapping[str, Any], entry: str, method: str, names: Sequence[str], make: Callable[..., Table]
) -> Table | None:
    """A table by noise level that a prior's card has for a method, made from its columns; None if it has none."""
    tables = card.get(entry)
    if tables is None:
        return None
    try:
        table = tables.get(method)
        return make(*(tuple(table[name]) for name in names)) if table else None
    except (AttributeError, InvalidInputError, KeyError, TypeError, ValueError) as error:
        raise PriorFileError(f'"{entry}" of the prior\'s card: {error}') from error


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
