"""Moments of one-dimensional Gaussian mixtures on a uniform grid of means: the inner loop of every expert, Eq. (6).

For a response u and a component variance s² the components have the responsibilities
rho_l ∝ w_l exp(−(u − mu_l)² / 2s²). Log-density, score, posterior mean and variance of an expert need only

    log psi(u),   E[mu] = Σ rho_l mu_l,   Var[mu].

`mixture_moments_plain` says it in a few lines of numpy. `mixture_moments` does the same in float64, fused, without an
array of responses × components and with three exponentials per response: see chains.py. It releases the GIL, so that
several run side by side: see threads.py.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.chains import (
    BLOCK,
    BUFFER_LENGTH,
    LOG_SCALE,
    ORIGIN,
    PRECISION,
    SUM0,
    SUM1,
    SUM2,
    chains_from_the_middle,
    component_sums,
    fill_lanes,
)
from heatprior.kernels.compiler import kernel, widest_vectors

LOG_2PI = math.log(2.0 * math.pi)


class MixtureMoments(NamedTuple):
    """Log-density of the mixture; mean and variance of the component means under the responsibilities."""

    log_density: FloatArray
    mean: FloatArray
    variance: FloatArray


def mixture_moments_plain(
    responses: FloatArray, variances: FloatArray, log_weights: FloatArray, means: FloatArray
) -> MixtureMoments:
    """The twin: responses and variances (n, J), log_weights (J, L), means (L,) → moments (n, J) each."""
    offsets = responses[..., None] - means  # (n, J, L)
    exponents = log_weights - offsets**2 / (2.0 * variances[..., None])
    peak = exponents.max(axis=-1, keepdims=True)
    terms = np.exp(exponents - peak)
    total = terms.sum(axis=-1)
    mean = (terms * means).sum(axis=-1) / total
    spread = (terms * (means - mean[..., None]) ** 2).sum(axis=-1) / total
    log_density = np.log(total) + peak[..., 0] - 0.5 * (LOG_2PI + np.log(variances))
    return MixtureMoments(log_density, mean, spread)


def mixture_moments(
    responses: FloatArray,
    variances: FloatArray,
    log_weights: FloatArray,
    means: FloatArray,
    *,
    want_log_density: bool = True,
    want_variance: bool = True,
) -> MixtureMoments:
    """The kernel: as `mixture_moments_plain`, for at least two means on a uniform grid.

    What is not wanted is an empty array and costs no time.
    """
    responses = np.ascontiguousarray(responses, np.float64)
    variances = np.ascontiguousarray(variances, np.float64)
    log_weights = np.ascontiguousarray(log_weights, np.float64)
    weights = np.exp(log_weights)
    log_density = np.empty_like(responses if want_log_density else responses[:0])
    mean, spread = np.empty_like(responses), np.empty_like(responses if want_variance else responses[:0])
    _moments_by_block(
        responses,
        variances,
        log_weights,
        weights,
        chains_from_the_middle(weights),
        float(means[0]),
        float(means[1] - means[0]),
        log_density,
        mean,
        spread,
    )
    return MixtureMoments(log_density, mean, spread)


@kernel(fastmath={"contract"})
def _moments_by_block(u, s2, log_weights, weights, chains, lowest, spacing, log_density, mean, spread):
    widest_vectors()
    count, experts = u.shape
    lanes = np.empty(BUFFER_LENGTH)
    for start in range(0, count, BLOCK):
        rows = min(BLOCK, count - start)
        here = slice(start, start + rows)
        for j in range(experts):
            means = mean[here, j]
            fill_lanes(lanes, u[here, j], s2[here, j])
            component_sums(lanes, rows, log_weights[j], weights[j], chains[j], lowest, spacing, spread.size > 0)
            for i in range(rows):
                means[i] = lanes[ORIGIN + i] + lanes[SUM1 + i] / lanes[SUM0 + i] * spacing
            if spread.size:
                spreads = spread[here, j]
                for i in range(rows):
                    offset = lanes[SUM1 + i] / lanes[SUM0 + i]
                    square = lanes[SUM2 + i] / lanes[SUM0 + i]
                    difference = square - offset * offset
                    spreads[i] = 0.0 if difference < 0.0 else difference * spacing * spacing  # NaN stays
            if log_density.size:
                logarithms = log_density[here, j]
                for i in range(rows):
                    log_peak = 0.5 * math.log(lanes[SUM0 + i] * lanes[SUM0 + i] * lanes[PRECISION + i])
                    logarithms[i] = log_peak + (lanes[LOG_SCALE + i] - 0.5 * LOG_2PI)
