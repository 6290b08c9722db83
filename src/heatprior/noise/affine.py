"""Noise that grows with brightness: variance = gain · x + offset, as of photons counted and then read out.

Gain and offset maximise Σ_k log Σ_c π_c f_c(block_k, sqrt(gain · x_k + offset)), x_k being the brightness of a block.
That is the mean of its pixels: a prior with zero-mean filters leaves it as it is when it denoises, and where the
variance is affine, its mean over a block is the variance at the mean. Blocks of like brightness share the weights π of
the contrasts: in dark regions contrasts are weaker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.noise_estimation import relative_densities
from heatprior.noise.likelihood import Blocks, values_at

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
