"""The kernels of score_matching.py in single precision, on the chains of single_chains.py."""

from __future__ import annotations

import math

import numpy as np

from heatprior.kernels.chains import (
    STARVED_NARROW,
    UNROLL,
    add_narrow,
    add_starved,
    narrow_sums,
    nearest_component,
    starved_sums,
)
from heatprior.kernels.compiler import kernel, widest_vectors
from heatprior.kernels.single_chains import (
    A_HALF,
    BLOCK,
    BUFFER_LENGTH,
    COEFFICIENT,
    ONE,
    PRECISION,
    REMOTE,
    SHIFTED,
    START,
    SUM0,
    SUM1,
    SUM2,
    SUM3,
    THREE,
    TWO,
    ZERO,
    U,
    face,
    next_four,
    single_sums,
    start_lanes,
)


@kernel(fastmath={"contract"})
def single_score_derivatives(
    u, s2, log_weights, weights, chains, lowest, spacing, score, in_response, in_variance, totals
):
    """`totals` are 0 where a response is remote."""
    widest_vectors()
    experts, count = u.shape
    last = log_weights.shape[1] - 1
    step, middle = np.float32(spacing), np.float32(lowest + (last // 2) * spacing)
    wanted = in_response.size > 0
    lanes = np.empty(BUFFER_LENGTH, np.float32)
    for j in range(experts):
        for begin in range(0, count, BLOCK):
            rows = min(BLOCK, count - begin)
            remote = single_sums(lanes, u[j], s2[j], begin, rows, chains[j], middle, step, last, wanted)
            _store_scores(lanes, middle, step, score[j], totals[j], begin, rows)
            if wanted:
                _store_derivatives(lanes, step, score[j], in_response[j], in_variance[j], begin, rows)
            for i in range(rows if remote else 0):
                if lanes[REMOTE + i] > ZERO:
                    place = begin + i
                    found = _remote(u[j, place], s2[j, place], log_weights[j], weights[j], lowest, spacing)
                    score[j, place] = found[0]
                    if wanted:
                        in_response[j, place], in_variance[j, place] = found[1], found[2]


@kernel(fastmath={"contract"})
def _store_scores(lanes, middle, spacing, score, totals, begin, count):
    widest_vectors()
    for i in range(count):
        offset = lanes[SUM1 + i] / lanes[SUM0 + i]
        score[begin + i] = (middle + offset * spacing - lanes[U + i]) * lanes[PRECISION + i]
        totals[begin + i] = ZERO if lanes[REMOTE + i] > ZERO else lanes[SUM0 + i]


@kernel(fastmath={"contract"})
def _store_derivatives(lanes, spacing, score, in_response, in_variance, begin, count):
    widest_vectors()
    for i in range(count):
        precision, phi = lanes[PRECISION + i], score[begin + i]
        per_total = ONE / lanes[SUM0 + i]
        offset, square, cube = lanes[SUM1 + i] * per_total, lanes[SUM2 + i] * per_total, lanes[SUM3 + i] * per_total
        spread = (square - offset * offset) * (spacing * spacing)
        skew = (cube - THREE * offset * square + TWO * offset * offset * offset) * (spacing * spacing * spacing)
        slope = (spread * precision - ONE) * precision
        in_response[begin + i] = slope
        in_variance[begin + i] = A_HALF * skew * (precision * precision * precision) + phi * slope


@kernel
def _remote(response, variance, log_weights, weights, lowest, spacing):
    """phi and its derivatives in the response and in the variance, in float64."""
    u, precision = np.float64(response), 1.0 / np.float64(variance)
    nearest = nearest_component(u, lowest, spacing, log_weights.size - 1)
    origin = lowest + nearest * spacing
    sums = narrow_sums(u - origin, precision, weights, nearest, spacing)
    if math.isnan(u * precision) or not sums[0] > STARVED_NARROW:
        _, sums = starved_sums(u - origin, precision, log_weights, nearest, spacing)
    offset, square, cube = sums[1] / sums[0], sums[2] / sums[0], sums[3] / sums[0]
    spread = (square - offset * offset) * spacing**2
    skew = (cube - 3.0 * offset * square + 2.0 * offset**3) * spacing**3
    phi = (origin + offset * spacing - u) * precision
    slope = (spread * precision - 1.0) * precision
    return phi, slope, 0.5 * skew * precision**3 + phi * slope


@kernel(fastmath={"contract"})
def single_weight_gradient(u, s2, coefficients, score, totals, log_weights, weights, lowest, spacing, gradient):
    """Of Σ_n a_n phi(u_n), in float64."""
    widest_vectors()
    experts, count = u.shape
    last = weights.shape[1] - 1
    half = last // 2
    step, middle = np.float32(spacing), np.float32(lowest + half * spacing)
    lanes = np.empty(BUFFER_LENGTH, np.float32)
    sums = np.empty(
        (2, 2, -(-(last + 1 - half) // UNROLL) * UNROLL)
    )  # each chain: Σ a g, Σ a g (E[mu] − middle), by steps
    for j in range(experts):
        sums[:] = 0.0
        gradient[j] = 0.0
        for begin in range(0, count, BLOCK):
            rows = min(BLOCK, count - begin)
            start_lanes(lanes, u[j], s2[j], begin, rows, middle, step, last)
            remote = _fill_coefficients(lanes, middle, s2[j], coefficients[j], score[j], totals[j], begin, rows)
            for i in range(rows if remote else 0):
                if totals[j, begin + i] == ZERO:
                    place = begin + i
                    coefficient = coefficients[j, place]
                    _add_remote(
                        u[j, place], s2[j, place], coefficient, log_weights[j], weights[j], lowest, spacing, gradient[j]
                    )
                    lanes[START + i] = ZERO  # its chain stays at zero
            for way in range(2):
                face(lanes, rows, way)
                _walk_and_collect(lanes, rows, sums[way])
        for component in range(last + 1):
            k = component - half
            chain = 0 if k >= 0 else 1
            gradient[j, component] += weights[j, component] * (
                spacing * k * sums[chain, 0, abs(k)] - sums[chain, 1, abs(k)]
            )


@kernel(fastmath={"contract"})
def _fill_coefficients(lanes, middle, s2, coefficients, score, totals, begin, count):
    """Returns how many responses are remote."""
    widest_vectors()
    remote = 0
    for i in range(count):
        total = totals[begin + i]
        is_remote = total == ZERO
        coefficient = coefficients[begin + i] * lanes[PRECISION + i] / (ONE if is_remote else total)
        lanes[COEFFICIENT + i] = ZERO if is_remote else coefficient
        mean = lanes[U + i] - middle + score[begin + i] * s2[begin + i]
        lanes[SHIFTED + i] = ZERO if is_remote else coefficient * mean
        remote += is_remote
    return remote


@kernel(fastmath={"contract", "reassoc"})
def _walk_and_collect(lanes, count, sums):
    """Walk from the middle to one end of the grid, collecting Σ_n a_n g_nk and Σ_n a_n g_nk (E_n[mu] − middle)."""
    widest_vectors()
    for k in range(0, sums.shape[1], UNROLL):
        a0, a1, a2, a3 = ZERO, ZERO, ZERO, ZERO
        b0, b1, b2, b3 = ZERO, ZERO, ZERO, ZERO
        for i in range(count):
            coefficient, shifted = lanes[COEFFICIENT + i], lanes[SHIFTED + i]
            a, b, c, d = next_four(lanes, i)
            a0 += coefficient * a
            a1 += coefficient * b
            a2 += coefficient * c
            a3 += coefficient * d
            b0 += shifted * a
            b1 += shifted * b
            b2 += shifted * c
            b3 += shifted * d
        sums[0, k] += a0
        sums[0, k + 1] += a1
        sums[0, k + 2] += a2
        sums[0, k + 3] += a3
        sums[1, k] += b0
        sums[1, k + 1] += b1
        sums[1, k + 2] += b2
        sums[1, k + 3] += b3


@kernel
def _add_remote(response, variance, coefficient, log_weights, weights, lowest, spacing, gradient):
    """Add one response's part, in float64."""
    u, precision = np.float64(response), 1.0 / np.float64(variance)
    nearest = nearest_component(u, lowest, spacing, log_weights.size - 1)
    from_nearest = u - (lowest + nearest * spacing)
    of_scores = np.float64(coefficient) * precision
    sums = narrow_sums(from_nearest, precision, weights, nearest, spacing)
    if sums[0] > STARVED_NARROW and not math.isnan(from_nearest * precision):
        per_total = 1.0 / sums[0]
        from_mean = -sums[1] * per_total * spacing
        add_narrow(from_nearest, precision, of_scores * per_total, from_mean, weights, nearest, spacing, gradient)
    else:
        _, sums = starved_sums(from_nearest, precision, log_weights, nearest, spacing)
        from_mean = -sums[1] / sums[0] * spacing
        add_starved(from_nearest, precision, of_scores, from_mean, log_weights, nearest, spacing, gradient)
