"""The loops of learning in single precision: twice as many responses side by side, for twice the speed.

The chains of chains.py, from the middle of the grid to its ends, with the narrower range of float32: a term below 1e-20
of the Gaussian nearest to u is dropped, and a response whose chain would have to start below exp(−40), or whose sum is
below 1e-13, is `remote`: a few in a thousand, each summed by itself in float64. A chain of sixty steps loses
two digits of seven, far below the noise of random batches; a longer one loses more, with the square of its length.
The twins are those of score_matching.py.
"""

from __future__ import annotations

import numpy as np

from heatprior.kernels.chains import UNROLL
from heatprior.kernels.clamping import clamped
from heatprior.kernels.compiler import kernel, widest_vectors

BLOCK = 512  # responses of one expert whose lanes stay in the L1 cache together
U, PRECISION, START, SLOPE, HALF, TERM = range(0, 6 * BLOCK, BLOCK)
RATIO, SUM0, SUM1, SUM2, SUM3, REMOTE, BUFFER_LENGTH = range(6 * BLOCK, 13 * BLOCK, BLOCK)
COEFFICIENT, SHIFTED = SUM0, SUM1  # of the gradient, which has no use for sums

ZERO, A_HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
TWO, THREE, FOUR = np.float32(2.0), np.float32(3.0), np.float32(4.0)
# Chosen so that for s from one grid step on no term of a chain is subnormal, which would slow the whole loop down.
LOWEST_START, STEEPEST_SLOPE = np.float32(-40.0), np.float32(40.0)
VANISHING, STARVED = np.float32(1e-20), np.float32(1e-13)
ROUNDER = np.float32(1.5 * 2.0**23)  # a float32 added to it is rounded to a whole number
EXPONENT = np.float32(1.5 * 2.0**23 + 127.0)  # the bias of exponents included
PER_LOG_2, LOG_2_HIGH, LOG_2_LOW = np.float32(1.4426950408889634), np.float32(0.693359375), np.float32(-2.12194440e-4)
SERIES = tuple(np.float32(1.0 / factorial) for factorial in (720.0, 120.0, 24.0, 6.0))


@kernel(fastmath={"contract"})
def single_sums(lanes, u, s2, begin, count, chains, middle, spacing, last, all_four):
    """Of `count` responses from `begin` on: SUM0 to SUM3 = Σ_l w_l g_l k_l^m for m = 0 to 3, or only SUM0 and SUM1.

    k_l counts grid steps from the middle, g_l is relative to the Gaussian nearest to u. `chains` (2, steps) are the
    weights along both ways from the middle. Returns how many lanes are REMOTE, whose sums are not right.
    """
    widest_vectors()
    start_lanes(lanes, u, s2, begin, count, middle, spacing, last)
    for i in range(count):
        lanes[SUM0 + i] = ZERO
        lanes[SUM1 + i] = ZERO
    for i in range(count if all_four else 0):
        lanes[SUM2 + i] = ZERO
        lanes[SUM3 + i] = ZERO
    for way in range(2):
        face(lanes, count, way)
        _walk(lanes, count, chains[way], ONE if way == 0 else -ONE, all_four)
    remote = 0
    for i in range(count):
        is_remote = (lanes[REMOTE + i] > ZERO) | (not lanes[SUM0 + i] > STARVED)
        lanes[REMOTE + i] = ONE if is_remote else ZERO
        remote += is_remote
    return remote


@kernel(fastmath={"contract"})
def start_lanes(lanes, u, s2, begin, count, middle, spacing, last):
    """U, PRECISION and REMOTE of the responses; START, SLOPE and HALF, the factors of their chains."""
    widest_vectors()
    below, above = np.float32(-(last // 2)), np.float32(last - last // 2)
    per_spacing = ONE / spacing
    for i in range(count):
        response, precision = u[begin + i], ONE / s2[begin + i]
        from_middle = response - middle
        nearest = clamped(from_middle * per_spacing, below, above) + ROUNDER - ROUNDER  # in steps from the middle
        start = -A_HALF * nearest * spacing * (TWO * from_middle - nearest * spacing) * precision
        slope = from_middle * spacing * precision
        lanes[U + i] = response
        lanes[PRECISION + i] = precision
        lanes[START + i] = clamped(start, LOWEST_START, ZERO)
        lanes[SLOPE + i] = clamped(slope, -STEEPEST_SLOPE, STEEPEST_SLOPE)
        lanes[HALF + i] = clamped(-A_HALF * spacing * spacing * precision, -STEEPEST_SLOPE, ZERO)
        is_wide = (start > LOWEST_START) & (abs(slope) < STEEPEST_SLOPE)  # false for NaN
        lanes[REMOTE + i] = ZERO if is_wide else ONE
    _exp_of_lanes(lanes, START, count)
    _exp_of_lanes(lanes, SLOPE, count)
    _exp_of_lanes(lanes, HALF, count)


@kernel(fastmath={"contract"})
def _exp_of_lanes(lanes, first, count):
    """exp(x) for −87 < x < 88 to 2e-7, in place: 2ᵏ times a series; k is in the last bits of a rounded sum."""
    widest_vectors()
    for i in range(count):
        x = lanes[first + i]
        shifted = x * PER_LOG_2 + EXPONENT
        k = shifted - EXPONENT
        r = (x - k * LOG_2_HIGH) - k * LOG_2_LOW
        series = SERIES[0] * r + SERIES[1]
        series = series * r + SERIES[2]
        series = series * r + SERIES[3]
        series = series * r + A_HALF
        series = series * r + ONE
        lanes[first + i] = series * r + ONE
        lanes[TERM + i] = shifted  # free until the chains start
    bits = lanes.view(np.int32)
    for i in range(count):
        bits[TERM + i] <<= np.int32(23)
    for i in range(count):
        lanes[first + i] *= lanes[TERM + i]


@kernel(fastmath={"contract"})
def face(lanes, count, way):
    """Put the lanes at the middle of the grid, facing its upper end, or for `way` = 1 its lower one."""
    widest_vectors()
    if way == 0:
        for i in range(count):
            lanes[TERM + i] = lanes[START + i]
            lanes[RATIO + i] = lanes[HALF + i] * lanes[SLOPE + i]
    else:
        for i in range(count):
            lanes[TERM + i] = lanes[START + i]
            lanes[RATIO + i] = lanes[HALF + i] / lanes[SLOPE + i]


@kernel(inline="always", fastmath={"contract"})
def next_four(lanes, i):
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
    lanes[TERM + i] = after if after > VANISHING else ZERO
    lanes[RATIO + i] = r * q if after > VANISHING else ZERO
    return a, b, c, d


@kernel(fastmath={"contract"})
def _walk(lanes, count, chain, sign, all_four):
    """Walk from the middle to one end of the grid: SUM_m += Σ_k chain[k] (±k)^m g_k, m = 0, 1 or m = 0 to 3."""
    widest_vectors()
    k0, k1, k2, k3 = ZERO, sign, TWO * sign, THREE * sign
    for first in range(0, len(chain), UNROLL):
        w0, w1, w2, w3 = chain[first], chain[first + 1], chain[first + 2], chain[first + 3]
        v0, v1, v2, v3 = w0 * k0, w1 * k1, w2 * k2, w3 * k3
        if all_four:
            y0, y1, y2, y3 = v0 * k0, v1 * k1, v2 * k2, v3 * k3
            z0, z1, z2, z3 = y0 * k0, y1 * k1, y2 * k2, y3 * k3
            for i in range(count):
                a, b, c, d = next_four(lanes, i)
                lanes[SUM0 + i] += (w0 * a + w1 * b) + (w2 * c + w3 * d)
                lanes[SUM1 + i] += (v0 * a + v1 * b) + (v2 * c + v3 * d)
                lanes[SUM2 + i] += (y0 * a + y1 * b) + (y2 * c + y3 * d)
                lanes[SUM3 + i] += (z0 * a + z1 * b) + (z2 * c + z3 * d)
        else:
            for i in range(count):
                a, b, c, d = next_four(lanes, i)
                lanes[SUM0 + i] += (w0 * a + w1 * b) + (w2 * c + w3 * d)
                lanes[SUM1 + i] += (v0 * a + v1 * b) + (v2 * c + v3 * d)
        k0, k1, k2, k3 = k0 + FOUR * sign, k1 + FOUR * sign, k2 + FOUR * sign, k3 + FOUR * sign
