"""Gaussian components of which every patch sees its own noise: variances s_kgd + sigma_n², one sigma per patch.

For K shapes at G contrasts, responses u_kdn of patch n along the d axes of shape k:

    log π_kg − ½ Σ_d (log(s_kgd + sigma_n²) + log 2π + u_kdn² / (s_kgd + sigma_n²)),
    Σ_g P_gn / (s_gd + sigma_n²)    for one shape.

With one sigma these are matrix products; here every patch has a matrix of its own, K G d divisions and as many
logarithms. Fractions are brought to a common denominator, four at a time, which saves three divisions of four; of the
product of the variances only the mantissa needs a logarithm. Patches lie last, in SIMD lanes. `…_plain` are the twins.
"""

from __future__ import annotations

import math

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.compiler import FAST, kernel

LOG_2, LOG_2PI = math.log(2.0), math.log(2.0 * math.pi)
MANTISSA, ONE = (1 << 52) - 1, 1023 << 52  # of a float64: its last bits, and the others of numbers from 1 to 2


def log_densities_plain(
    responses: FloatArray, signals: FloatArray, noise: FloatArray, log_weights: FloatArray
) -> FloatArray:
    """The twin: (K, d, n), signals s (K, G, d), noise sigma² (n,), log π (K, G) → (K, G, n)."""
    variances = signals[..., None] + noise  # (K, G, d, n)
    terms = np.log(variances) + LOG_2PI + responses[:, None] ** 2 / variances
    return np.asarray(log_weights[..., None] - 0.5 * terms.sum(axis=2))


def mean_precisions_plain(parts: FloatArray, signals: FloatArray, noise: FloatArray) -> FloatArray:
    """The twin: P (G, n), signals (G, d), noise sigma² (n,) → (d, n)."""
    return np.asarray((parts[:, None] / (signals[..., None] + noise)).sum(axis=0))


@kernel(fastmath=FAST)
def log_densities(responses, signals, noise, log_weights):
    """The kernel of `log_densities_plain`, in float64; variances from 1e-70 to 1e70."""
    shapes, contrasts, axes = signals.shape
    fours = axes - axes % 4
    logarithms = np.empty((shapes, contrasts, noise.size))
    exponents, mantissas = np.empty(noise.size), np.empty(noise.size)
    for k in range(shapes):
        u = responses[k]
        for g in range(contrasts):
            signal, squares = signals[k, g], logarithms[k, g]
            squares[:] = 0.0
            exponents[:] = 0.0
            mantissas[:] = 1.0
            for d in range(0, fours, 4):
                _add_squares(u[d], u[d + 1], u[d + 2], u[d + 3], signal[d : d + 4], noise, squares)
                _multiply(signal[d : d + 4], noise, exponents, mantissas)
            for d in range(fours, axes):
                _add_square(u[d], signal[d], noise, squares)
                _multiply(signal[d : d + 1], noise, exponents, mantissas)
            constant = log_weights[k, g] - 0.5 * axes * LOG_2PI
            for i in range(noise.size):
                squares[i] = constant - 0.5 * (squares[i] + exponents[i] * LOG_2 + math.log(mantissas[i]))
    return logarithms


# Loops of their own, on few arrays: with more the compiler gives up asking which of them overlap, and so SIMD code.


@kernel(fastmath=FAST)
def _add_squares(u0, u1, u2, u3, signal, noise, squares):
    s0, s1, s2, s3 = signal[0], signal[1], signal[2], signal[3]
    for i in range(noise.size):
        v0, v1, v2, v3 = s0 + noise[i], s1 + noise[i], s2 + noise[i], s3 + noise[i]
        first, second = v0 * v1, v2 * v3
        upper = (u0[i] * u0[i] * v1 + u1[i] * u1[i] * v0) * second + (u2[i] * u2[i] * v3 + u3[i] * u3[i] * v2) * first
        squares[i] += upper / (first * second)


@kernel(fastmath=FAST)
def _add_square(u, signal, noise, squares):
    for i in range(noise.size):
        squares[i] += u[i] * u[i] / (signal + noise[i])


@kernel(fastmath=FAST)
def _multiply(signal, noise, exponents, mantissas):
    """Multiply numbers mantissa · 2^exponent by the variances."""
    bits = mantissas.view(np.int64)
    for s in signal:
        for i in range(noise.size):
            mantissas[i] *= s + noise[i]
    for i in range(noise.size):
        exponents[i] += float(bits[i] >> 52) - 1023.0
        bits[i] = (bits[i] & MANTISSA) | ONE


@kernel(fastmath=FAST)
def mean_precisions(parts, signals, noise):
    """The kernel of `mean_precisions_plain`, in float64."""
    contrasts, axes = signals.shape
    precisions = np.zeros((axes, noise.size))
    twos = contrasts - contrasts % 2
    for d in range(axes):
        row = precisions[d]
        for g in range(0, twos, 2):
            part, other, s, t = parts[g], parts[g + 1], signals[g, d], signals[g + 1, d]
            for i in range(noise.size):
                v, w = s + noise[i], t + noise[i]
                row[i] += (part[i] * w + other[i] * v) / (v * w)
        for g in range(twos, contrasts):
            part, s = parts[g], signals[g, d]
            for i in range(noise.size):
                row[i] += part[i] / (s + noise[i])
    return precisions
