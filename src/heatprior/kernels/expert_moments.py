"""Moments of one-dimensional Gaussian mixtures on a uniform grid of means: the inner loop of every expert, Eq. (6).

For a response u and a component variance s² the components have the responsibilities
rho_l ∝ w_l exp(−(u − mu_l)² / 2s²). Log-density, score, posterior mean and variance need only log psi(u), E[mu] =
Σ rho_l mu_l and Var[mu]: a few lines of numpy (`mixture_moments_plain`), here without an exponential per component.

The Gaussians g_k of successive grid points form a chain: their ratio is itself a geometric sequence, g_{k+1} = g_k r_k
and r_{k+1} = r_k q with q = exp(−δ²/s²). Three cases, relative to the Gaussian of the component nearest to u:

- wide (most): two chains from the middle of the grid to its ends, 256 responses side by side in SIMD lanes;
- narrow (s below about two grid steps, or u far outside the grid): the middle would underflow, so the chains start at
  the nearest component and stop when their terms are negligible;
- starved (the weights near u are so small that remote components count): plain log-sum-exp.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.compiler import kernel
from heatprior.kernels.lookup import clamp

LOG_2PI = math.log(2.0 * math.pi)
BLOCK = 256  # responses of one expert whose lanes stay in the L1 cache together
UNROLL = 4  # grid steps between two visits of the lanes
# The lanes of a block, one after the other in one buffer: constant offsets show the compiler that they do not overlap.
U, PRECISION, NEAREST, REMOTE, START, SLOPE, HALF, TERM = range(0, 8 * BLOCK, BLOCK)
RATIO, SUM0, SUM1, SUM2, SUM3, ORIGIN, LOG_SCALE, BUFFER_LENGTH = range(8 * BLOCK, 16 * BLOCK, BLOCK)


class Limits(NamedTuple):
    """Of chains in one type: a wide one that starts lower, or whose ratio is steeper, might leave its range.

    Terms that are `vanishing` beside the nearest Gaussian are dropped: as subnormal numbers they would slow the whole
    loop down. A number added to the `rounder` is rounded to a whole one.
    """

    lowest_start: float | np.float32  # logarithms
    steepest_slope: float | np.float32
    vanishing: float | np.float32
    rounder: float | np.float32


DOUBLE = Limits(-400.0, 100.0, 1e-200, 1.5 * 2.0**52)
STARVED_WIDE = 1e-150
# Narrow chains drop terms below 1e-35 of the nearest Gaussian; a sum above 1e-22 is then right to 1e-13.
NEGLIGIBLE = 1e-35
STARVED_NARROW = 1e-22


def chains_from_the_middle(weights: FloatArray) -> FloatArray:
    """Weights (J, L) along the upward and the downward chain: (J, 2, steps), padded with zeros.

    Steps count from the middle of the grid, which belongs to the upward chain; the downward one has a zero there.
    """
    components = weights.shape[1]
    middle = (components - 1) // 2
    chains = np.zeros((len(weights), 2, -(-(components - middle) // UNROLL) * UNROLL), weights.dtype)
    chains[:, 0, : components - middle] = weights[:, middle:]
    chains[:, 1, 1 : middle + 1] = weights[:, :middle][:, ::-1]
    return chains


@kernel(fastmath={"contract"})
def start_lanes(lanes, u, s2, middle, spacing, last, limits):
    """The lanes U to REMOTE of a block of responses, and the logarithms of START, SLOPE and HALF; how many are REMOTE.

    NEAREST counts grid steps from the middle. A remote lane is clipped to harmless values; its sums are not used.
    """
    number = lanes.dtype.type
    below, above = number(-(last // 2)), number(last - last // 2)
    per_spacing, remote = number(1.0) / spacing, 0
    for i in range(len(u)):  # by itself, so that the compiler makes SIMD code of the other, wherever the responses lie
        lanes[U + i] = u[i]
        lanes[PRECISION + i] = number(1.0) / s2[i]
    for i in range(len(u)):
        precision, from_middle = lanes[PRECISION + i], lanes[U + i] - middle
        nearest = clamp(from_middle * per_spacing, below, above) + limits.rounder - limits.rounder
        start = number(-0.5) * nearest * spacing * (number(2.0) * from_middle - nearest * spacing) * precision
        slope = from_middle * spacing * precision
        half = number(-0.5) * spacing * spacing * precision
        is_wide = (start > limits.lowest_start) & (abs(slope) < limits.steepest_slope)  # false for NaN
        lanes[NEAREST + i] = nearest
        lanes[REMOTE + i] = number(0.0) if is_wide else number(1.0)
        lanes[START + i] = clamp(start, limits.lowest_start, number(0.0))
        lanes[SLOPE + i] = clamp(slope, -limits.steepest_slope, limits.steepest_slope)
        lanes[HALF + i] = clamp(half, -limits.steepest_slope, number(0.0))
        remote += not is_wide
    return remote


@kernel(fastmath={"contract"})
def face(lanes, count, way):
    """Put the lanes at the middle of the grid, facing its upper end, or for `way` = 1 its lower one."""
    if way == 0:
        for i in range(count):
            lanes[TERM + i] = lanes[START + i]
            lanes[RATIO + i] = lanes[HALF + i] * lanes[SLOPE + i]
    else:
        for i in range(count):
            lanes[TERM + i] = lanes[START + i]
            lanes[RATIO + i] = lanes[HALF + i] / lanes[SLOPE + i]


@kernel(inner=True)
def next_four(lanes, i, vanishing, zero):
    """The Gaussians at the next four grid points of lane i, which moves on by as many, or vanishes."""
    q = lanes[HALF + i] * lanes[HALF + i]
    a, r = lanes[TERM + i], lanes[RATIO + i]
    b = a * r
    r *= q
    c = b * r
    r *= q
    d = c * r
    r *= q
    after = d * r
    lanes[TERM + i] = after if after > vanishing else zero
    lanes[RATIO + i] = r * q if after > vanishing else zero
    return a, b, c, d


@kernel(fastmath={"contract"})
def walk(lanes, count, chains, highest, vanishing):
    """Walk from the middle to both ends of the grid: SUM_m = Σ_k w_k k^m g_k, for m up to `highest`: 1, 2 or 3.

    `chains` (2, steps) are the weights w along both ways, g_k is relative to the Gaussian nearest to u.
    """
    number = lanes.dtype.type
    zero, one, two, three, four = number(0.0), number(1.0), number(2.0), number(3.0), number(4.0)
    for m in range(highest + 1):
        for i in range(count):
            lanes[SUM0 + m * BLOCK + i] = zero
    for way in range(2):
        face(lanes, count, way)
        sign, chain = one if way == 0 else -one, chains[way]
        k0, k1, k2, k3 = zero, sign, two * sign, three * sign
        for first in range(0, len(chain), UNROLL):
            w0, w1, w2, w3 = chain[first], chain[first + 1], chain[first + 2], chain[first + 3]
            v0, v1, v2, v3 = w0 * k0, w1 * k1, w2 * k2, w3 * k3
            y0, y1, y2, y3 = v0 * k0, v1 * k1, v2 * k2, v3 * k3
            z0, z1, z2, z3 = y0 * k0, y1 * k1, y2 * k2, y3 * k3
            if highest == 1:
                for i in range(count):
                    a, b, c, d = next_four(lanes, i, vanishing, zero)
                    lanes[SUM0 + i] += (w0 * a + w1 * b) + (w2 * c + w3 * d)
                    lanes[SUM1 + i] += (v0 * a + v1 * b) + (v2 * c + v3 * d)
            elif highest == 2:
                for i in range(count):
                    a, b, c, d = next_four(lanes, i, vanishing, zero)
                    lanes[SUM0 + i] += (w0 * a + w1 * b) + (w2 * c + w3 * d)
                    lanes[SUM1 + i] += (v0 * a + v1 * b) + (v2 * c + v3 * d)
                    lanes[SUM2 + i] += (y0 * a + y1 * b) + (y2 * c + y3 * d)
            else:
                for i in range(count):
                    a, b, c, d = next_four(lanes, i, vanishing, zero)
                    lanes[SUM0 + i] += (w0 * a + w1 * b) + (w2 * c + w3 * d)
                    lanes[SUM1 + i] += (v0 * a + v1 * b) + (v2 * c + v3 * d)
                    lanes[SUM2 + i] += (y0 * a + y1 * b) + (y2 * c + y3 * d)
                    lanes[SUM3 + i] += (z0 * a + z1 * b) + (z2 * c + z3 * d)
            k0, k1, k2, k3 = k0 + four * sign, k1 + four * sign, k2 + four * sign, k3 + four * sign


@kernel(fastmath={"contract"})
def _component_sums(lanes, u, s2, log_weights, weights, chains, lowest, spacing, limits, highest):
    """SUM0 to SUM2 of a block, or, cheaper, only SUM0 and SUM1, with steps from ORIGIN, relative to exp(LOG_SCALE)."""
    count, last = len(u), weights.size - 1
    middle = lowest + (last // 2) * spacing
    lanes[SUM0 : SUM0 + count] = 0.0
    if start_lanes(lanes, u, s2, middle, spacing, last, limits) < count:
        exp_in_place(lanes[START : START + count])
        exp_in_place(lanes[SLOPE : SLOPE + count])
        exp_in_place(lanes[HALF : HALF + count])
        walk(lanes, count, chains, highest, limits.vanishing)
    special = 0  # in a loop of its own, so that the compiler makes SIMD code of this one
    for i in range(count):
        from_nearest = lanes[U + i] - (middle + lanes[NEAREST + i] * spacing)
        lanes[ORIGIN + i] = middle
        lanes[LOG_SCALE + i] = -0.5 * from_nearest * from_nearest * lanes[PRECISION + i]
        special += (lanes[REMOTE + i] > 0.0) | (lanes[SUM0 + i] <= STARVED_WIDE)
    for i in range(count if special else 0):
        wide = lanes[REMOTE + i] == 0.0
        if wide and lanes[SUM0 + i] > STARVED_WIDE:
            continue
        nearest, precision = int(lanes[NEAREST + i]) + last // 2, lanes[PRECISION + i]
        from_nearest = lanes[U + i] - (middle + lanes[NEAREST + i] * spacing)
        sums = (0.0, 0.0, 0.0, 0.0)
        if math.isnan(lanes[LOG_SCALE + i]):
            sums = (np.nan, np.nan, np.nan, np.nan)
        elif not wide:
            sums = narrow_sums(from_nearest, precision, weights, nearest, spacing)
        if sums[0] < STARVED_NARROW:
            log_peak, sums = starved_sums(from_nearest, precision, log_weights, nearest, spacing)
            lanes[LOG_SCALE + i] += log_peak
        lanes[ORIGIN + i] = middle + lanes[NEAREST + i] * spacing
        lanes[SUM0 + i], lanes[SUM1 + i], lanes[SUM2 + i] = sums[0], sums[1], sums[2]


@kernel(inner=True)
def nearest_component(u, lowest, spacing, last):
    """Index of the grid point nearest to u, however far u is; that of NaN is 0."""
    return int(clamp((u - lowest) / spacing, 0.0, float(last)) + 0.5)


@kernel(fastmath={"contract"})
def narrow_sums(from_nearest, precision, weights, nearest, spacing):
    """Both chains from the nearest component, until their terms are negligible."""
    q = math.exp(-spacing * spacing * precision)
    total, first, second, third = weights[nearest], 0.0, 0.0, 0.0
    for direction in (1, -1):
        if not 0 <= nearest + direction < weights.size:
            continue  # beyond the grid the ratio may be infinite
        k = direction
        ratio = math.exp((direction * from_nearest - 0.5 * spacing) * spacing * precision)
        term = ratio
        while 0 <= nearest + k < weights.size and term > NEGLIGIBLE:
            weighted = weights[nearest + k] * term
            total += weighted
            first += weighted * k
            second += weighted * k * k
            third += weighted * k * k * k
            ratio *= q
            term *= ratio
            k += direction
    return total, first, second, third


@kernel
def starved_sums(from_nearest, precision, log_weights, nearest, spacing):
    """Log-sum-exp over all components, relative to the exponent of the nearest one: logarithm of the scale, sums."""
    log_peak = -np.inf
    for component in range(log_weights.size):
        log_peak = max(log_peak, starved_exponent(component, from_nearest, precision, log_weights, nearest, spacing))
    total, first, second, third = 0.0, 0.0, 0.0, 0.0
    for component in range(log_weights.size):
        k = component - nearest
        term = math.exp(starved_exponent(component, from_nearest, precision, log_weights, nearest, spacing) - log_peak)
        total += term
        first += term * k
        second += term * k * k
        third += term * k * k * k
    return log_peak, (total, first, second, third)


@kernel
def starved_exponent(component, from_nearest, precision, log_weights, nearest, spacing):
    """Logarithm of a weighted component over the Gaussian of the nearest one."""
    step = (component - nearest) * spacing
    return log_weights[component] + (from_nearest - 0.5 * step) * step * precision


@kernel(fastmath={"contract"})
def add_narrow(from_nearest, precision, coefficient, from_mean, weights, nearest, spacing, gradient):
    """gradient_l += a w_l g_l (mu_l − E[mu]) of one response, along chains from its nearest component.

    `coefficient` a is over Σ w_l g_l, with g_l relative to the nearest Gaussian; `from_mean` is mu_nearest − E[mu].
    """
    gradient[nearest] += coefficient * weights[nearest] * from_mean
    q = math.exp(-spacing * spacing * precision)
    for direction in (1, -1):
        if not 0 <= nearest + direction < weights.size:
            continue
        k = direction
        ratio = math.exp((direction * from_nearest - 0.5 * spacing) * spacing * precision)
        term = ratio
        while 0 <= nearest + k < weights.size and term > NEGLIGIBLE:
            gradient[nearest + k] += coefficient * weights[nearest + k] * term * (from_mean + k * spacing)
            ratio *= q
            term *= ratio
            k += direction


@kernel(fastmath={"contract"})
def exp_in_place(x):
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
    """The kernel of `mixture_moments_plain`, for two means or more on a uniform grid; what is not wanted is empty."""
    responses, variances, log_weights = (
        np.ascontiguousarray(values, np.float64) for values in (responses, variances, log_weights)
    )
    weights = np.exp(log_weights)
    mixtures = (log_weights, weights, chains_from_the_middle(weights), float(means[0]), float(means[1] - means[0]))
    log_density = np.empty_like(responses if want_log_density else responses[:0])
    mean, spread = np.empty_like(responses), np.empty_like(responses if want_variance else responses[:0])
    _moments_by_block(responses, variances, *mixtures, DOUBLE, log_density, mean, spread)
    return MixtureMoments(log_density, mean, spread)


@kernel(fastmath={"contract"})
def _moments_by_block(u, s2, log_weights, weights, chains, lowest, spacing, limits, log_density, mean, spread):
    count, experts = u.shape
    lanes, highest = np.empty(BUFFER_LENGTH), 2 if spread.size else 1
    for start in range(0, count, BLOCK):
        rows = min(BLOCK, count - start)
        here = slice(start, start + rows)
        for j in range(experts):
            means = mean[here, j]
            own = (log_weights[j], weights[j], chains[j], lowest, spacing, limits, highest)
            _component_sums(lanes, u[here, j], s2[here, j], *own)
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
