"""Moments of one-dimensional Gaussian mixtures on a uniform grid of means: the inner loop of every expert, Eq. (6).

For a response u and a component variance s² the components have the responsibilities
rho_l ∝ w_l exp(−(u − mu_l)² / 2s²). Log-density, score, posterior mean and variance of an expert need only

    log psi(u),   E[mu] = Σ rho_l mu_l,   Var[mu].

`mixture_moments_plain` says it in a few lines of numpy. `mixture_moments` does the same in float64 without an array of
responses × components, and with three exponentials per response instead of one per component: on a uniform grid the
ratio of neighbouring Gaussians is itself a geometric sequence, g_{k+1} = g_k r_k and r_{k+1} = r_k q with
q = exp(−δ²/s²). Three cases, all relative to the Gaussian of the component nearest to u, so that nothing overflows:

- wide (most): two chains from the middle of the grid to its ends, 256 responses side by side in SIMD lanes;
- narrow (s below about two grid steps, or u far outside the grid): the middle would underflow, so the chains start at
  the nearest component and stop when their terms are negligible;
- starved (the weights near u are so small that remote components count): plain log-sum-exp.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from heatprior.arrays import FloatArray

LOG_2PI = math.log(2.0 * math.pi)

BLOCK = 256  # responses of one expert whose lanes stay in the L1 cache together
UNROLL = 4  # grid steps between two visits of the lanes
# The lanes of a block, one after the other in one buffer.
U, PRECISION, FROM_NEAREST, START, SLOPE, HALF, TERM, RATIO, SUM0, SUM1, SUM2, LANES = range(0, 12 * BLOCK, BLOCK)

# A wide chain that starts below exp(−400), or whose ratio exceeds exp(100), might leave the range of float64. It drops
# terms below 1e-200 of the nearest Gaussian: as subnormal numbers they would slow the whole loop down.
LOWEST_START = -400.0
STEEPEST_SLOPE = 100.0
VANISHING = 1e-200
STARVED_WIDE = 1e-150
# Narrow chains drop terms below 1e-35 of the nearest Gaussian; a sum above 1e-22 is then right to 1e-13.
NEGLIGIBLE = 1e-35
STARVED_NARROW = 1e-22


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
) -> MixtureMoments:
    """The kernel: as `mixture_moments_plain`, for at least two means on a uniform grid.

    The logarithms cost a third of the rest; where they are not wanted, `log_density` is an empty array.
    """
    responses = np.ascontiguousarray(responses, np.float64)
    variances = np.ascontiguousarray(variances, np.float64)
    log_weights = np.ascontiguousarray(log_weights, np.float64)
    log_density = np.empty_like(responses if want_log_density else responses[:0])
    mean, spread = np.empty_like(responses), np.empty_like(responses)
    _moments_by_block(
        responses,
        variances,
        log_weights,
        np.exp(log_weights),
        _chains_from_the_middle(np.exp(log_weights)),
        float(means[0]),
        float(means[1] - means[0]),
        log_density,
        mean,
        spread,
    )
    return MixtureMoments(log_density, mean, spread)


def _chains_from_the_middle(weights: FloatArray) -> FloatArray:
    """Weights along the upward and the downward chain, times 1, k and k²: (J, 2, 3, steps), padded with zeros.

    k counts grid steps from the middle, which belongs to the upward chain; the downward one has a zero there.
    """
    components = weights.shape[1]
    middle = (components - 1) // 2
    steps = -(-(components - middle) // UNROLL) * UNROLL
    chains = np.zeros((len(weights), 2, steps))
    chains[:, 0, : components - middle] = weights[:, middle:]
    chains[:, 1, 1 : middle + 1] = weights[:, :middle][:, ::-1]
    k = np.arange(steps, dtype=np.float64) * [[1.0], [-1.0]]  # (2, steps)
    return np.ascontiguousarray(np.stack([chains, chains * k, chains * k**2], axis=2))


@njit(parallel=True, cache=True, fastmath={"contract"})
def _moments_by_block(u, s2, log_weights, weights, chains, lowest, spacing, log_density, mean, spread):
    count, experts = u.shape
    for block in prange((count + BLOCK - 1) // BLOCK):
        rows = slice(block * BLOCK, min((block + 1) * BLOCK, count))
        lanes = np.empty(LANES)
        for j in range(experts):
            _moments_of_expert(
                u[rows, j],
                s2[rows, j],
                log_weights[j],
                weights[j],
                chains[j],
                lowest,
                spacing,
                lanes,
                log_density[rows, j],
                mean[rows, j],
                spread[rows, j],
            )


@njit(cache=True, fastmath={"contract"})
def _moments_of_expert(u, s2, log_weights, weights, chains, lowest, spacing, lanes, log_density, mean, spread):
    count = u.size
    last = weights.size - 1
    middle = lowest + (last // 2) * spacing
    for i in range(count):
        lanes[U + i] = u[i]
        lanes[PRECISION + i] = 1.0 / s2[i]
    any_wide = _prepare_chains(lanes, count, lowest, spacing, last)
    if any_wide:
        _exp_in_place(lanes[START : START + count])
        _exp_in_place(lanes[SLOPE : SLOPE + count])
        _exp_in_place(lanes[HALF : HALF + count])
        for i in range(count):
            lanes[TERM + i] = lanes[START + i]
            lanes[RATIO + i] = lanes[HALF + i] * lanes[SLOPE + i]
            lanes[SUM0 + i] = lanes[SUM1 + i] = lanes[SUM2 + i] = 0.0
        _walk(lanes, count, chains[0])
        for i in range(count):
            lanes[TERM + i] = lanes[START + i]
            lanes[RATIO + i] = lanes[HALF + i] / lanes[SLOPE + i]
        _walk(lanes, count, chains[1])

    for i in range(count):
        total, first, second = lanes[SUM0 + i], lanes[SUM1 + i], lanes[SUM2 + i]
        origin = middle
        from_nearest, precision = lanes[FROM_NEAREST + i], lanes[PRECISION + i]
        log_scale = -0.5 * from_nearest * from_nearest * precision
        wide = _is_wide(u[i], from_nearest, precision, middle, spacing)
        if not wide or total < STARVED_WIDE:
            origin = u[i] - from_nearest
            nearest = int((origin - lowest) / spacing + 0.5)
            if not wide:
                total, first, second = _narrow_sums(from_nearest, precision, weights, nearest, spacing)
            if total < STARVED_NARROW:
                log_peak, total, first, second = _starved_sums(from_nearest, precision, log_weights, nearest, spacing)
                log_scale += log_peak
        offset = first / total
        mean[i] = origin + offset * spacing
        spread[i] = max(second / total - offset * offset, 0.0) * spacing * spacing
        if log_density.size:
            log_density[i] = 0.5 * math.log(total * total * precision) + (log_scale - 0.5 * LOG_2PI)


@njit(cache=True, inline="always")
def _is_wide(u, from_nearest, precision, middle, spacing):
    from_middle = u - middle
    start = 0.5 * (from_nearest - from_middle) * (from_nearest + from_middle) * precision
    return start > LOWEST_START and abs(from_middle * spacing * precision) < STEEPEST_SLOPE


@njit(cache=True, fastmath={"contract"})
def _prepare_chains(lanes, count, lowest, spacing, last):
    """Exponents of the first term, the slope and the half step of each lane; whether any lane is wide.

    A lane that is not wide is clipped to harmless values; its sums are not used.
    """
    middle = lowest + (last // 2) * spacing
    per_spacing = 1.0 / spacing
    wide = 0
    for i in range(count):
        u, precision = lanes[U + i], lanes[PRECISION + i]
        nearest = math.floor(min(max((u - lowest) * per_spacing, 0.0), float(last)) + 0.5)
        from_nearest = u - (lowest + nearest * spacing)
        from_middle = u - middle
        start = 0.5 * (from_nearest - from_middle) * (from_nearest + from_middle) * precision
        slope = from_middle * spacing * precision
        lanes[FROM_NEAREST + i] = from_nearest
        lanes[START + i] = max(start, LOWEST_START)
        lanes[SLOPE + i] = min(max(slope, -STEEPEST_SLOPE), STEEPEST_SLOPE)
        lanes[HALF + i] = max(-0.5 * spacing * spacing * precision, -STEEPEST_SLOPE)
        wide += 1 if (start > LOWEST_START) & (abs(slope) < STEEPEST_SLOPE) else 0
    return wide > 0


@njit(cache=True, fastmath={"contract"})
def _walk(lanes, count, chain):
    """Walk from the middle to one end of the grid: sums[m] += Σ_k chain[m, k] g_k.

    One flat buffer with constant offsets: so the compiler sees that lanes do not overlap, and uses SIMD.
    """
    for k in range(0, chain.shape[1], UNROLL):
        w0, w1, w2, w3 = chain[0, k], chain[0, k + 1], chain[0, k + 2], chain[0, k + 3]
        v0, v1, v2, v3 = chain[1, k], chain[1, k + 1], chain[1, k + 2], chain[1, k + 3]
        z0, z1, z2, z3 = chain[2, k], chain[2, k + 1], chain[2, k + 2], chain[2, k + 3]
        for i in range(count):
            q = lanes[HALF + i] * lanes[HALF + i]
            a, r = lanes[TERM + i], lanes[RATIO + i]
            b = a * r
            r *= q
            c = b * r
            r *= q
            d = c * r
            r *= q
            lanes[SUM0 + i] += (w0 * a + w1 * b) + (w2 * c + w3 * d)
            lanes[SUM1 + i] += (v0 * a + v1 * b) + (v2 * c + v3 * d)
            lanes[SUM2 + i] += (z0 * a + z1 * b) + (z2 * c + z3 * d)
            lanes[TERM + i] = d * r if d * r > VANISHING else 0.0
            lanes[RATIO + i] = r * q


@njit(cache=True, fastmath={"contract"})
def _narrow_sums(from_nearest, precision, weights, nearest, spacing):
    """Both chains from the nearest component, until their terms are negligible."""
    q = math.exp(-spacing * spacing * precision)
    total, first, second = weights[nearest], 0.0, 0.0
    for direction in (1, -1):
        k = direction
        if not 0 <= nearest + k < weights.size:
            continue
        ratio = math.exp((direction * from_nearest - 0.5 * spacing) * spacing * precision)
        term = ratio
        while 0 <= nearest + k < weights.size and term > NEGLIGIBLE:
            weighted = weights[nearest + k] * term
            total += weighted
            first += weighted * k
            second += weighted * k * k
            ratio *= q
            term *= ratio
            k += direction
    return total, first, second


@njit(cache=True)
def _starved_sums(from_nearest, precision, log_weights, nearest, spacing):
    """Plain log-sum-exp over all components, relative to the exponent of the nearest one."""
    log_peak = -np.inf
    for component in range(log_weights.size):
        step = (component - nearest) * spacing
        log_peak = max(log_peak, log_weights[component] + (from_nearest - 0.5 * step) * step * precision)
    total, first, second = 0.0, 0.0, 0.0
    for component in range(log_weights.size):
        k = component - nearest
        step = k * spacing
        term = math.exp(log_weights[component] + (from_nearest - 0.5 * step) * step * precision - log_peak)
        total += term
        first += term * k
        second += term * k * k
    return log_peak, total, first, second


@njit(cache=True, fastmath={"contract"})
def _exp_in_place(x):
    """exp(x) for −700 < x < 700 to 4e-16, written so that the compiler makes SIMD code of it."""
    exponent_bits = np.empty(x.size, np.int64)
    for i in range(x.size):
        k = math.floor(x[i] * 1.4426950408889634 + 0.5)
        r = (x[i] - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
        series = 1.0 / 479001600.0
        series = series * r + 1.0 / 39916800.0
        series = series * r + 1.0 / 3628800.0
        series = series * r + 1.0 / 362880.0
        series = series * r + 1.0 / 40320.0
        series = series * r + 1.0 / 5040.0
        series = series * r + 1.0 / 720.0
        series = series * r + 1.0 / 120.0
        series = series * r + 1.0 / 24.0
        series = series * r + 1.0 / 6.0
        series = series * r + 0.5
        series = series * r + 1.0
        series = series * r + 1.0
        x[i] = series
        exponent_bits[i] = (np.int64(k) + 1023) << 52
    powers_of_two = exponent_bits.view(np.float64)
    for i in range(x.size):
        x[i] *= powers_of_two[i]
