"""The experts in tensor operations: psi_j(u, t) = Σ_l w_jl G(u; mu_l, sigma_j²(t)), Eq. (6), by log-sum-exp.

`u` is (..., J), `variance` = sigma_0² + tau² broadcasts against it, `log_weights` are (J, L) and `means` (L,). The sums
over l are written out, L numbers for each response: callers see to it that not too many are in memory at once.
"""

from __future__ import annotations

from math import log, pi
from typing import NamedTuple

import torch
from torch import Tensor

LOG_2PI = log(2.0 * pi)


class Moments(NamedTuple):
    """Mean and variance of mu under the responsibilities P(l | u), (..., J) each."""

    mean: Tensor
    variance: Tensor


def log_density(u: Tensor, variance: Tensor, log_weights: Tensor, means: Tensor) -> Tensor:
    """log psi_j(u, t): (..., J)."""
    return torch.logsumexp(_logits(u, variance, log_weights, means), -1) - 0.5 * (LOG_2PI + variance.log())


def moments(u: Tensor, variance: Tensor, log_weights: Tensor, means: Tensor) -> Moments:
    """E[mu | u] and Var[mu | u]."""
    parts = torch.softmax(_logits(u, variance, log_weights, means), -1)
    mean = parts @ means
    return Moments(mean, (parts * (means - mean[..., None]) ** 2).sum(-1))


def slope(u: Tensor, variance: Tensor, log_weights: Tensor, means: Tensor) -> Tensor:
    """∂ log psi_j / ∂u = (E[mu] − u) / sigma_j²: (..., J)."""
    mean = torch.softmax(_logits(u, variance, log_weights, means), -1) @ means  # E[mu | u]
    return (mean - u) / variance


def posterior(u: Tensor, tau_squared: Tensor, base: float, log_weights: Tensor, means: Tensor) -> Moments:
    """Mean and variance of the clean response given the noisy one, without the differences of Tweedie's formula.

    `base` is sigma_0, `tau_squared` the variance of the noise on the response.
    """
    variance = base**2 + tau_squared
    found = moments(u, variance, log_weights, means)
    shrink = tau_squared / variance
    return Moments(base**2 / variance * u + shrink * found.mean, shrink * base**2 + shrink**2 * found.variance)


def _logits(u: Tensor, variance: Tensor, log_weights: Tensor, means: Tensor) -> Tensor:
    """log w_jl − (u − mu_l)² / 2 sigma_j², (..., J, L): from differences, which float32 survives."""
    scale = (0.5 / variance).sqrt()
    distances = (scale * u)[..., None] - scale[..., None] * means
    return torch.addcmul(log_weights, distances, distances, value=-1.0)
