"""The inner loops of learning: the experts' scores with their derivatives, the error, the gradient in the weights.

With phi_j = ∂ log psi_j / ∂u = (E[mu] − u) / s², s² = sigma_j²(t), the loss needs for every response

    phi,   ∂phi/∂u = (Var[mu] − s²) / s⁴,   ∂phi/∂s² = (phi'' + 2 phi phi') / 2   (psi_j solves the heat equation),

where phi'' = (third central moment of mu) / s⁶, and then, for coefficients a that multiply the scores,

    Σ_n a_n ∂phi(u_n)/∂ζ_l = Σ_n (a_n / s_n²) rho_nl (mu_l − E_n[mu]).

Responses are (J, n) here, in float64, with the chains of chains.py, or in float32: single_score_matching.py. `…_plain`
are the numpy twins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.chains import (
    BLOCK,
    BUFFER_LENGTH,
    CASE,
    FROM_NEAREST,
    IS_NARROW,
    IS_STARVED,
    IS_WIDE,
    ORIGIN,
    PRECISION,
    START,
    SUM0,
    SUM1,
    SUM2,
    SUM3,
    UNROLL,
    U,
    add_narrow,
    add_starved,
    chains_from_the_middle,
    component_sums,
    fill_lanes,
    nearest_component,
    next_four,
    prepare_chains,
    start_downward,
    start_upward,
)
from heatprior.kernels.compiler import kernel, widest_vectors
from heatprior.kernels.single_score_matching import single_score_derivatives, single_weight_gradient

COEFFICIENT, MEAN = SUM0, SUM1  # lanes of the second loop, which has no use for sums


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
    responses: FloatArray,
    variances: FloatArray,
    coefficients: FloatArray,
    log_weights: FloatArray,
    means: FloatArray,
) -> FloatArray:
    """The twin: Σ_n a_n ∂phi(u_n)/∂ζ_l for coefficients a (J, n) → (J, L)."""
    exponents = log_weights[:, None] - (responses[..., None] - means) ** 2 / (2.0 * variances[..., None])  # (J, n, L)
    rho = np.exp(exponents - exponents.max(axis=-1, keepdims=True))
    rho /= rho.sum(axis=-1, keepdims=True)
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
    """The kernel of `score_derivatives_plain`, in the precision of the responses; what is not wanted is empty."""
    weights = np.exp(log_weights)
    derivative = responses if want_derivatives else responses[:0]
    results = ScoreDerivatives(*(np.empty_like(like) for like in (responses, derivative, derivative, responses)))
    if responses.dtype == np.float32:
        chains = np.ascontiguousarray(chains_from_the_middle(weights)[:, :, 0], np.float32)
        lowest, spacing = float(means[0]), float(means[1] - means[0])
        single_score_derivatives(responses, variances, log_weights, weights, chains, lowest, spacing, *results)
        return results
    _score_derivatives(
        responses,
        variances,
        log_weights,
        weights,
        chains_from_the_middle(weights),
        float(means[0]),
        float(means[1] - means[0]),
        *results,
    )
    return results


def weight_gradient(
    responses: FloatArray,
    variances: FloatArray,
    coefficients: FloatArray,
    derivatives: ScoreDerivatives,
    log_weights: FloatArray,
    means: FloatArray,
) -> FloatArray:
    """The kernel of `weight_gradient_plain`; `derivatives` are those of the same responses."""
    gradient = np.empty_like(log_weights)
    compiled = single_weight_gradient if responses.dtype == np.float32 else _weight_gradient
    compiled(
        responses,
        variances,
        coefficients,
        derivatives.score,
        derivatives.totals,
        log_weights,
        np.exp(log_weights),
        float(means[0]),
        float(means[1] - means[0]),
        gradient,
    )
    return gradient


def error_to_gradient(changes: FloatArray, noise: FloatArray, sigma: FloatArray) -> float:
    """The kernel of `error_and_gradient_plain`: the gradient takes the place of the changes."""
    return float(_error_to_gradient(changes, noise, sigma))


@kernel(fastmath={"contract", "reassoc"})
def _error_to_gradient(changes, noise, sigma):
    widest_vectors()
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
def _score_derivatives(u, s2, log_weights, weights, chains, lowest, spacing, score, in_response, in_variance, totals):
    widest_vectors()
    experts, count = u.shape
    lanes = np.empty(BUFFER_LENGTH)
    for j in range(experts):
        for start in range(0, count, BLOCK):
            rows = min(BLOCK, count - start)
            here = slice(start, start + rows)
            fill_lanes(lanes, u[j, here], s2[j, here])
            component_sums(lanes, rows, log_weights[j], weights[j], chains[j], lowest, spacing, in_response.size > 0)
            _store_scores(lanes, spacing, score[j, here], totals[j, here])
            if in_response.size > 0:
                _store_derivatives(lanes, spacing, score[j, here], in_response[j, here], in_variance[j, here])


# Loops of their own, on slices: the compiler makes SIMD code of them.


@kernel(fastmath={"contract"})
def _store_scores(lanes, spacing, score, totals):
    widest_vectors()
    for i in range(score.size):
        offset = lanes[SUM1 + i] / lanes[SUM0 + i]
        score[i] = (lanes[ORIGIN + i] + offset * spacing - lanes[U + i]) * lanes[PRECISION + i]
        totals[i] = 0.0 if lanes[CASE + i] == IS_STARVED else lanes[SUM0 + i]


@kernel(fastmath={"contract"})
def _store_derivatives(lanes, spacing, score, in_response, in_variance):
    widest_vectors()
    for i in range(score.size):
        precision, phi = lanes[PRECISION + i], score[i]
        per_total = 1.0 / lanes[SUM0 + i]
        offset, square, cube = lanes[SUM1 + i] * per_total, lanes[SUM2 + i] * per_total, lanes[SUM3 + i] * per_total
        spread = (square - offset * offset) * (spacing * spacing)
        skew = (cube - 3.0 * offset * square + 2.0 * offset * offset * offset) * (spacing * spacing * spacing)
        slope = (spread * precision - 1.0) * precision
        in_response[i] = slope
        in_variance[i] = 0.5 * skew * (precision * precision * precision) + phi * slope


@kernel(fastmath={"contract"})
def _fill_coefficients(lanes, s2, coefficients, score, totals):
    """Returns how many lanes are not wide."""
    widest_vectors()
    special = 0
    for i in range(s2.size):
        starved = totals[i] == 0.0
        lanes[CASE + i] = IS_STARVED if starved else lanes[CASE + i]
        per_total = lanes[PRECISION + i] / (1.0 if starved else totals[i])
        lanes[COEFFICIENT + i] = coefficients[i] * per_total
        lanes[MEAN + i] = lanes[U + i] + score[i] * s2[i]
        special += lanes[CASE + i] != IS_WIDE
    return special


@kernel(fastmath={"contract"})
def _weight_gradient(u, s2, coefficients, score, totals, log_weights, weights, lowest, spacing, gradient):
    widest_vectors()
    experts, count = u.shape
    last = weights.shape[1] - 1
    middle = last // 2
    steps = -(-(last + 1 - middle) // UNROLL) * UNROLL
    lanes = np.empty(BUFFER_LENGTH)
    for j in range(experts):
        sums = np.zeros((2, 2, steps))  # for each chain: Σ a g, Σ a g (E[mu] − middle), by steps from the middle
        gradient[j] = 0.0
        for start in range(0, count, BLOCK):
            rows = min(BLOCK, count - start)
            here = slice(start, start + rows)
            fill_lanes(lanes, u[j, here], s2[j, here])
            any_wide = prepare_chains(lanes, rows, lowest, spacing, last)
            special = _fill_coefficients(lanes, s2[j, here], coefficients[j, here], score[j, here], totals[j, here])
            for i in range(rows if special else 0):
                if lanes[CASE + i] != IS_WIDE:
                    nearest = nearest_component(lanes[U + i], lowest, spacing, last)
                    from_nearest, precision, a = lanes[FROM_NEAREST + i], lanes[PRECISION + i], lanes[COEFFICIENT + i]
                    from_mean = lowest + nearest * spacing - lanes[MEAN + i]
                    if lanes[CASE + i] == IS_NARROW:
                        add_narrow(from_nearest, precision, a, from_mean, weights[j], nearest, spacing, gradient[j])
                    else:
                        add_starved(
                            from_nearest, precision, a, from_mean, log_weights[j], nearest, spacing, gradient[j]
                        )
                    lanes[START + i] = 0.0  # its chain stays at zero
            if any_wide:
                start_upward(lanes, rows)
                _walk_and_collect(lanes, rows, lowest + middle * spacing, sums[0])
                start_downward(lanes, rows)
                _walk_and_collect(lanes, rows, lowest + middle * spacing, sums[1])
        for component in range(last + 1):
            k = component - middle
            chain = 0 if k >= 0 else 1
            gradient[j, component] += weights[j, component] * (
                spacing * k * sums[chain, 0, abs(k)] - sums[chain, 1, abs(k)]
            )


@kernel(fastmath={"contract", "reassoc"})
def _walk_and_collect(lanes, count, middle, sums):
    """Walk from the middle to one end of the grid, collecting Σ_n a_n g_nk and Σ_n a_n g_nk (E_n[mu] − middle)."""
    widest_vectors()
    for k in range(0, sums.shape[1], UNROLL):
        a0, a1, a2, a3 = 0.0, 0.0, 0.0, 0.0
        b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0
        for i in range(count):
            coefficient = lanes[COEFFICIENT + i]
            shifted = coefficient * (lanes[MEAN + i] - middle)
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
