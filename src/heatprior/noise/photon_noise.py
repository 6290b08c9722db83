"""Noise that changes with brightness, as of photons counted and then read out: variance = gain · x + offset.

Gain and offset maximise Σ_k log Σ_c π_c f_c(block_k, sqrt(gain · x_k + offset)), x_k being the mean of a block, which
zero-mean filters leave as it is. Blocks of like brightness share the weights π of the contrasts: in dark regions
contrasts are weaker.

Why many pixels have the lowest value: because values below it were cut off, or because no photons were counted. Noise
that was cut off at a floor is weaker near it, and so are counts near none; but beyond the floor's reach the former
stays the same, the latter goes on to grow. Both are models of the noise of blocks, and the likelihood decides. Where it
cannot, below two counts or so, the values are whole numbers of counts, and the gain is their step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import erf
from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.noise.levels import LocalLevels, clipping
from heatprior.noise.likelihood import Blocks, relative_densities, values_at
from heatprior.noise.stabilisation import PoissonGaussian

BLOCK = 5  # patches along the side of a block
GROUPS = 4  # of like brightness
ENDS = (0.05, 0.95)  # quantiles of brightness: the variance there is what is looked for
TURNS, STEPS = 6, 10  # of the fit, and of EM for the weights in each
PSEUDO_COUNT = 0.02  # of the blocks of a group: pseudo-counts for the usual contrasts
LEAST_VARIANCE = 1e-8
LEAST_RANGE = 1e-3  # of brightness, below which a slope cannot be estimated
DIFFERENCE = 0.02  # of log sigma, in second differences
# From end to end, of log sigma: with less one level is as good, and texture in bright parts looks the same.
LEAST_CHANGE = float(np.log(1.3))

# Chosen on validation images with noise of 10, 25 and 50 cut off at 0, and with 1 to 100 counts; not on real ones.
MARGIN = 10.0  # of log-likelihood, by which counts must be likelier
MOST_AT_FLOOR = 0.2  # of the variance in bright parts: what counts may have at the floor
FEW_VALUES = 100  # distinct ones, among which steps are looked for
MOST_PIXELS = 2**18  # about, that are looked at for them
SAME_STEP = 0.15  # relative difference between gain and step, and offset over the square of the step
LEAST_PART = 1e-4  # of the variance before cutting off that is left, at least
OCTAVE_ABOVE = 0.7  # of log sigma: noise before it was cut off is stronger than what is left of it
LEVELS = 80


class Affine(NamedTuple):
    """variance = gain · x + offset, of grey levels from 0 to 1, with the standard errors of both."""

    gain: float
    offset: float
    gain_error: float
    offset_error: float

    def log_sigma(self, brightness: FloatArray) -> FloatArray:
        """Of pixels or blocks of this brightness."""
        return np.asarray(0.5 * np.log(np.maximum(self.gain * brightness + self.offset, LEAST_VARIANCE)))

    def is_worth_while(self, brightness: FloatArray) -> bool:
        """Whether the noise of an image of this brightness changes by so much that one level would not do."""
        low, high = self.log_sigma(np.quantile(brightness, ENDS))
        return bool(abs(high - low) > LEAST_CHANGE)


def fit_affine(
    log_sigmas: FloatArray, blocks: Blocks, start: float, repeated: float, model_error: float
) -> Affine | None:
    """The fit, begun at log sigma `start` for all; None if the image has one brightness only.

    `repeated` is how often the likelihood counts the same, `model_error` a relative error of sigma that no likelihood
    knows of; it is taken to be independent at both ends of the range of brightness.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 (slow to import)

    used = blocks.usable
    x = blocks.means[used]
    if used.sum() < GROUPS or (ends := np.quantile(x, ENDS))[1] - ends[0] < LEAST_RANGE:
        return None
    low, high = ends
    relative, peaks = relative_densities(blocks.log_densities[:, :, used])
    groups = np.searchsorted(np.quantile(x, np.arange(1, GROUPS) / GROUPS), x)
    contrasts = relative.shape[1]
    usual = np.full(contrasts, 1.0 / contrasts) if blocks.usual is None else blocks.usual
    weights = np.repeat(usual[:, None], GROUPS, axis=1)
    at_ends = np.array([start, start])

    def levels(logs: FloatArray) -> FloatArray:
        variances = np.exp(2.0 * np.clip(logs, log_sigmas[0], log_sigmas[-1]))
        line = variances[0] + (variances[1] - variances[0]) * (x - low) / (high - low)
        return np.asarray(0.5 * np.log(np.maximum(line, LEAST_VARIANCE)))

    for _ in range(TURNS):
        values = np.log(np.einsum("ck,sck->sk", weights[:, groups], relative)) + peaks

        def loss(logs: FloatArray, values: FloatArray = values) -> float:
            return -float(values_at(log_sigmas, values, levels(logs)).sum())

        corners = at_ends + np.array([[0.0, 0.0], [0.2, 0.0], [0.0, 0.2]])
        found = minimize(loss, at_ends, method="Nelder-Mead", options={"initial_simplex": corners, "xatol": 1e-4})
        at_ends = np.asarray(found.x)
        weights = _weights(relative, log_sigmas, levels(at_ends), groups, weights, usual)
    covariance = repeated * np.linalg.pinv(_second_differences(loss, at_ends), hermitian=True)
    covariance += model_error**2 * np.eye(2)
    variances = np.exp(2.0 * at_ends)
    to_line = np.array([[-1.0, 1.0], [high, -low]]) / (high - low)  # of the variances at the ends
    gain, offset = to_line @ variances
    spread = to_line * (2.0 * variances)
    gain_error, offset_error = np.sqrt(np.diag(spread @ covariance @ spread.T))
    return Affine(float(gain), float(offset), float(gain_error), float(offset_error))


def _weights(
    relative: FloatArray,
    log_sigmas: FloatArray,
    levels: FloatArray,
    groups: IntArray,
    weights: FloatArray,
    usual: FloatArray,
) -> FloatArray:
    """EM for the weights (C, G) of the contrasts in each group, at given noise levels of the blocks."""
    step = log_sigmas[1] - log_sigmas[0]
    nearest = np.clip(np.rint((levels - log_sigmas[0]) / step), 0, len(log_sigmas) - 1).astype(np.int64)
    here = np.take_along_axis(relative, nearest[None, None], axis=0)[0]  # (C, K)
    members = np.eye(weights.shape[1])[groups]  # (K, G)
    extra = PSEUDO_COUNT * usual[:, None] * np.maximum(members.sum(axis=0), 1.0)  # a group may be empty
    for _ in range(STEPS):
        joint = weights[:, groups] * here
        totals = (joint / joint.sum(axis=0)) @ members + extra
        weights = totals / totals.sum(axis=0)
    return weights


def _second_differences(loss: Callable[[FloatArray], float], at: FloatArray) -> FloatArray:
    h, found = DIFFERENCE * np.eye(2), np.empty((2, 2))
    for i, j in np.ndindex(2, 2):
        a, b = h[i], h[j]
        found[i, j] = loss(at + a + b) - loss(at + a - b) - loss(at - a + b) + loss(at - a - b)
    return found / (4.0 * DIFFERENCE**2)


def holds_counts(image: FloatArray, floor: float, local: LocalLevels, line: Affine | None, repeated: float) -> bool:
    """Whether a lowest value that many pixels have is that of no counts; `local` and `line` were fitted to all patches.

    `repeated` is how often the likelihood counts the same.
    """
    if line is None or line.gain <= 0.0:
        return False
    brightness = local.blocks.means[local.blocks.usable]
    bright = line.gain * float(np.quantile(brightness, ENDS[1])) + line.offset
    if line.gain * floor + line.offset > MOST_AT_FLOOR * bright:
        return False

    levels = np.linspace(local.log_sigmas[0], local.log_sigmas[-1] + OCTAVE_ABOVE, LEVELS)
    cut_off = max(local.likelihood(log_sigma_at_floor(brightness - floor, float(np.exp(level)))) for level in levels)
    likelier = (local.likelihood(line.log_sigma(brightness)) - cut_off) / repeated > MARGIN
    return likelier or whole_counts(image, floor, line) is not None


def log_sigma_at_floor(height: FloatArray, sigma: float) -> FloatArray:
    """Of pixels with Gaussian noise of `sigma`, cut off at a floor, whose mean is so high above it."""
    means, variances = _cut_off_normals()
    return np.asarray(np.log(sigma) + 0.5 * np.log(np.interp(height / sigma, means, variances)))


@cache
def _cut_off_normals() -> tuple[FloatArray, FloatArray]:
    """Mean and variance of max(u + n, 0), n standard normal, for some u."""
    u = np.linspace(-6.0, 8.0, 1401)
    density = np.exp(-(u**2) / 2.0) / np.sqrt(2.0 * np.pi)
    above = np.array([0.5 * (1.0 + erf(value / np.sqrt(2.0))) for value in u])
    means = u * above + density
    variances = (u**2 + 1.0) * above + u * density - means**2
    return means, np.maximum(variances, LEAST_PART)


def whole_counts(image: FloatArray, floor: float, line: Affine | None) -> PoissonGaussian | None:
    """Counts without read noise, none of them at the floor, if the gain of the line is the step between values."""
    values = _few_values(image)
    if line is None or len(values) == 0:
        return None
    step = float(np.diff(values).min())
    at_floor = line.gain * floor + line.offset
    if abs(line.gain / step - 1.0) > SAME_STEP or abs(at_floor) > SAME_STEP * step**2:
        return None
    return PoissonGaussian(step, 0.0, floor)


def may_be_whole_counts(image: FloatArray) -> bool:
    """Whether an image has few values, the lowest of them so often that it may be that of no counts."""
    return bool(np.isfinite(clipping(image)[0])) and len(_few_values(image)) > 0


def _few_values(image: FloatArray) -> FloatArray:
    """The values of an image, ascending; none if there are many, or one."""
    some = image.reshape(-1)[:: max(1, image.size // MOST_PIXELS)]
    values = np.unique(some[np.isfinite(some)])
    return values if 1 < len(values) <= FEW_VALUES else values[:0]
