"""The inner loops of training: the experts' scores with their derivatives, the error, the gradient in the weights.

With phi_j = ∂ log psi_j / ∂u = (E[mu] − u) / s², s² = sigma_j²(t), the loss needs for every response

    phi,   ∂phi/∂u = (Var[mu] − s²) / s⁴,   ∂phi/∂s² = (phi'' + 2 phi phi') / 2   (psi_j solves the heat equation),

where phi'' = (third central moment of mu) / s⁶, and then, for coefficients a that multiply the scores,

    Σ_n a_n ∂phi(u_n)/∂ζ_l = Σ_n (a_n / s_n²) rho_nl (mu_l − E_n[mu]).

Responses are (J, n). In float64 the functions are their numpy twins, `…_plain`; training runs in float32, on the chains
of expert_moments.py with a narrower range: a term below 1e-20 of the Gaussian nearest to u is dropped, and a response
whose chain would start below exp(−40), or whose sum is below 1e-13, is `remote` and summed by itself in float64. A
chain of sixty steps loses two digits of seven, a longer one more, with the square of its length.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.compiler import kernel
from heatprior.kernels.expert_moments import (
    BLOCK,
    BUFFER_LENGTH,
    HALF,
    PRECISION,
    REMOTE,
    SLOPE,
    START,
    STARVED_NARROW,
    SUM0,
    SUM1,
    SUM2,
    SUM3,
    TERM,
    UNROLL,
    Limits,
    U,
    add_narrow,
    chains_from_the_middle,
    face,
    narrow_sums,
    nearest_component,
    next_four,
    start_lanes,
    starved_exponent,
    starved_sums,
    walk,
)
from heatprior.scipy_subset import softmax

COEFFICIENT, SHIFTED = SUM0, SUM1  # of the gradient, which has no use for sums

ZERO, A_HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
TWO, THREE = np.float32(2.0), np.float32(3.0)
# Chosen so that for s from one grid step on no term of a chain is subnormal.
SINGLE = Limits(*map(np.float32, (-40.0, 40.0, 1e-20, 1.5 * 2.0**23)))
STARVED = np.float32(1e-13)
EXPONENT = np.float32(1.5 * 2.0**23 + 127.0)  # the bias of exponents included
PER_LOG_2, LOG_2_HIGH, LOG_2_LOW = np.float32(1.4426950408889634), np.float32(0.693359375), np.float32(-2.12194440e-4)
SERIES = tuple(np.float32(1.0 / factorial) for factorial in (720.0, 120.0, 24.0, 6.0))


class ScoreDerivatives(NamedTuple):
    """phi and its derivatives in the response and in the variance, (J, n) each.

    `totals` is psi over the Gaussian of the component nearest to u, or 0 where that was not summed along a chain:
    `weight_gradient` goes on from it.
    """

    score: FloatArray
    in_response: FloatArray
    in_variance: FloatArray
    totals: FloatArray


def score_derivatives_plain(
    responses: FloatArray, variances: FloatArray, log_weights: FloatArray, means: FloatArray
) -> ScoreDerivatives:
    """The twin: responses and variances (J, n), log_weights (J, L), means (L,)."""
    exponents = log_weights[:, None] - (responses[..., None] - means) ** 2 / (2.0 * variances[..., None])  # (J, n, L)
    peak = exponents.max(axis=-1, keepdims=True)
    terms = np.exp(exponents - peak)
    rho = terms / terms.sum(axis=-1, keepdims=True)
    mean = rho @ means
    central = means - mean[..., None]
    spread, skew = (rho * central**2).sum(axis=-1), (rho * central**3).sum(axis=-1)
    score = (mean - responses) / variances
    slope = (spread - variances) / variances**2
    nearest = ((responses[..., None] - means) ** 2).min(axis=-1)
    totals = terms.sum(axis=-1) * np.exp(peak[..., 0] + nearest / (2.0 * variances))
    return ScoreDerivatives(score, slope, 0.5 * skew / variances**3 + score * slope, totals)


def weight_gradient_plain(
    responses: FloatArray, variances: FloatArray, coefficients: FloatArray, log_weights: FloatArray, means: FloatArray
) -> FloatArray:
    """The twin: Σ_n a_n ∂phi(u_n)/∂ζ_l for coefficients a (J, n) → (J, L)."""
    exponents = log_weights[:, None] - (responses[..., None] - means) ** 2 / (2.0 * variances[..., None])  # (J, n, L)
    rho = softmax(exponents, axis=-1)
    central = means - (rho @ means)[..., None]
    return np.asarray(np.einsum("jn,jnl->jl", coefficients / variances, rho * central))


def error_and_gradient_plain(changes: FloatArray, noise: FloatArray, sigma: FloatArray) -> tuple[float, FloatArray]:
    """The twin: ‖r‖² of r = −noise − sigma changes, (a, n) each, sigma (n,); and its gradient in the changes."""
    residual = -noise - sigma * changes
    return float(np.vdot(residual, residual)), -2.0 * sigma * residual


def score_derivatives(
    responses: FloatArray,
    variances: FloatArray,
    log_weights: FloatArray,
    means: FloatArray,
    *,
    want_derivatives: bool = True,
) -> ScoreDerivatives:
    """As `score_derivatives_plain`, by the kernel if responses and variances are float32; unwanted arrays are empty."""
    if responses.dtype != np.float32:
        return score_derivatives_plain(responses, variances, log_weights, means)
    derivative = responses if want_derivatives else responses[:0]
    results = ScoreDerivatives(*(np.empty_like(like) for like in (responses, derivative, derivative, responses)))
    weights = np.exp(log_weights)
    chains = chains_from_the_middle(weights.astype(np.float32))
    lowest, spacing = float(means[0]), float(means[1] - means[0])
    _score_derivatives(responses, variances, log_weights, weights, chains, lowest, spacing, SINGLE, *results)
    return results


def weight_gradient(
    responses: FloatArray,
    variances: FloatArray,
    coefficients: FloatArray,
    derivatives: ScoreDerivatives,
    log_weights: FloatArray,
    means: FloatArray,
) -> FloatArray:
    """As `weight_gradient_plain`, by the kernel in float32; `derivatives` are those of the same responses."""
    if responses.dtype != np.float32:
        return weight_gradient_plain(responses, variances, coefficients, log_weights, means)
    gradient, weights = np.empty_like(log_weights), np.exp(log_weights)
    lowest, spacing = float(means[0]), float(means[1] - means[0])
    arrays = (responses, variances, coefficients, derivatives.score, derivatives.totals)
    _weight_gradient(*arrays, log_weights, weights, lowest, spacing, SINGLE, gradient)
    return gradient


@kernel(fastmath={"contract", "reassoc"})
def error_to_gradient(changes, noise, sigma):
    """The kernel of `error_and_gradient_plain`: the gradient takes the place of the changes."""
    total = 0.0
    for row in range(changes.shape[0]):
        part = 0.0
        for i in range(changes.shape[1]):
            residual = -noise[row, i] - sigma[i] * changes[row, i]
            part += residual * residual
            changes[row, i] = -2.0 * sigma[i] * residual
        total += part
    return total


@kernel(fastmath={"contract"})
def _score_derivatives(
    u, s2, log_weights, weights, chains, lowest, spacing, limits, score, in_response, in_variance, totals
):
    """`totals` are 0 where a response is remote."""
    experts, count = u.shape
    last = log_weights.shape[1] - 1
    step, middle = np.float32(spacing), np.float32(lowest + (last // 2) * spacing)
    wanted = in_response.size > 0
    lanes = np.empty(BUFFER_LENGTH, np.float32)
    for j in range(experts):
        for begin in range(0, count, BLOCK):
            rows = min(BLOCK, count - begin)
            here = slice(begin, begin + rows)
            own = (chains[j], middle, step, last, limits, 3 if wanted else 1)
            remote = _sums_of_block(lanes, u[j, here], s2[j, here], *own)
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
    for i in range(count):
        offset = lanes[SUM1 + i] / lanes[SUM0 + i]
        score[begin + i] = (middle + offset * spacing - lanes[U + i]) * lanes[PRECISION + i]
        totals[begin + i] = ZERO if lanes[REMOTE + i] > ZERO else lanes[SUM0 + i]


@kernel(fastmath={"contract"})
def _store_derivatives(lanes, spacing, score, in_response, in_variance, begin, count):
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
def _weight_gradient(u, s2, coefficients, score, totals, log_weights, weights, lowest, spacing, limits, gradient):
    """Of Σ_n a_n phi(u_n), in float64."""
    experts, count = u.shape
    last = weights.shape[1] - 1
    half = last // 2
    step, middle = np.float32(spacing), np.float32(lowest + half * spacing)
    lanes = np.empty(BUFFER_LENGTH, np.float32)
    # of each chain: Σ a g, Σ a g (E[mu] − middle), by steps
    sums = np.empty((2, 2, -(-(last + 1 - half) // UNROLL) * UNROLL))
    for j in range(experts):
        sums[:] = 0.0
        gradient[j] = 0.0
        for begin in range(0, count, BLOCK):
            rows = min(BLOCK, count - begin)
            _start(lanes, u[j, begin : begin + rows], s2[j, begin : begin + rows], middle, step, last, limits)
            remote = _fill_coefficients(lanes, middle, s2[j], coefficients[j], score[j], totals[j], begin, rows)
            for i in range(rows if remote else 0):
                place = begin + i
                if totals[j, place] == ZERO:
                    own = (log_weights[j], weights[j], lowest, spacing, gradient[j])
                    _add_remote(u[j, place], s2[j, place], coefficients[j, place], *own)
                    lanes[START + i] = ZERO  # its chain stays at zero
            for way in range(2):
                face(lanes, rows, way)
                _walk_and_collect(lanes, rows, sums[way], limits.vanishing)
        for component in range(last + 1):
            k = component - half
            total = sums[0 if k >= 0 else 1, :, abs(k)]
            gradient[j, component] += weights[j, component] * (spacing * k * total[0] - total[1])


@kernel(fastmath={"contract"})
def _fill_coefficients(lanes, middle, s2, coefficients, score, totals, begin, count):
    """Returns how many responses are remote."""
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
def _walk_and_collect(lanes, count, sums, vanishing):
    """Walk from the middle to one end of the grid, collecting Σ_n a_n g_nk and Σ_n a_n g_nk (E_n[mu] − middle)."""
    for k in range(0, sums.shape[1], UNROLL):
        a0, a1, a2, a3 = ZERO, ZERO, ZERO, ZERO
        b0, b1, b2, b3 = ZERO, ZERO, ZERO, ZERO
        for i in range(count):
            coefficient, shifted = lanes[COEFFICIENT + i], lanes[SHIFTED + i]
            a, b, c, d = next_four(lanes, i, vanishing, ZERO)
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
        log_peak, sums = starved_sums(from_nearest, precision, log_weights, nearest, spacing)
        from_mean = -sums[1] / sums[0] * spacing
        for component in range(log_weights.size):
            exponent = starved_exponent(component, from_nearest, precision, log_weights, nearest, spacing)
            rho = math.exp(exponent - log_peak) / sums[0]
            gradient[component] += of_scores * rho * (from_mean + (component - nearest) * spacing)


@kernel(fastmath={"contract"})
def _sums_of_block(lanes, u, s2, chains, middle, spacing, last, limits, highest):
    """SUM0 to SUM3 of a block, or only SUM0 and SUM1; how many lanes are REMOTE, whose sums are not right."""
    _start(lanes, u, s2, middle, spacing, last, limits)
    walk(lanes, len(u), chains, highest, limits.vanishing)
    remote = 0
    for i in range(len(u)):
        is_remote = (lanes[REMOTE + i] > ZERO) | (not lanes[SUM0 + i] > STARVED)
        lanes[REMOTE + i] = ONE if is_remote else ZERO
        remote += is_remote
    return remote


@kernel
def _start(lanes, u, s2, middle, spacing, last, limits):
    start_lanes(lanes, u, s2, middle, spacing, last, limits)
    _exp_of_lanes(lanes, START, len(u))
    _exp_of_lanes(lanes, SLOPE, len(u))
    _exp_of_lanes(lanes, HALF, len(u))


@kernel(fastmath={"contract"})
def _exp_of_lanes(lanes, first, count):
    """exp(x) for −87 < x < 88 to 2e-7, in place: 2ᵏ times a series; k is in the last bits of a rounded sum."""
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
