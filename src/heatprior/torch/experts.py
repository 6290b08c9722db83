"""The experts in tensor operations: psi_j(u, t) = Σ_l w_jl G(u; mu_l, sigma_j²(t)), Eq. (6), by log-sum-exp.

`u` is (..., J), and `noise` = tau², the variance of the noise on each response, broadcasts against it. The sums over l
are written out, L numbers for each response: callers see to it that not too many are in memory at once.
"""

from __future__ import annotations

from math import log, pi
from typing import NamedTuple

import torch
from torch import Tensor

LOG_2PI = log(2.0 * pi)


class Experts(NamedTuple):
    """J mixtures on one grid of means, as `heatprior.Experts`."""

    log_weights: Tensor  # (J, L)
    means: Tensor  # (L,)
    base: float  # sigma_0

    def only(self, j: int) -> Experts:
        """One of them by itself."""
        return self._replace(log_weights=self.log_weights[j : j + 1])

    def log_density(self, u: Tensor, noise: Tensor) -> Tensor:
        """log psi_j(u, t): (..., J)."""
        variance = self.base**2 + noise
        return torch.logsumexp(self._logits(u, variance), -1) - 0.5 * (LOG_2PI + variance.log())

    def slope(self, u: Tensor, noise: Tensor) -> Tensor:
        """∂ log psi_j / ∂u = (E[mu] − u) / sigma_j²: (..., J)."""
        variance = self.base**2 + noise
        return (self._responsibilities(u, variance) @ self.means - u) / variance

    def posterior(self, u: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the clean response, without the differences of Tweedie's formula: (..., J) each."""
        variance = self.base**2 + noise
        parts, shrink = self._responsibilities(u, variance), noise / variance
        mean = parts @ self.means
        spread = (parts * (self.means - mean[..., None]) ** 2).sum(-1)
        return self.base**2 / variance * u + shrink * mean, shrink * self.base**2 + shrink**2 * spread

    def _responsibilities(self, u: Tensor, variance: Tensor) -> Tensor:
        """P(l | u), (..., J, L)."""
        return torch.softmax(self._logits(u, variance), -1)

    def _logits(self, u: Tensor, variance: Tensor) -> Tensor:
        """log w_jl − (u − mu_l)² / 2 sigma_j², (..., J, L): from differences, which float32 survives."""
        scale = (0.5 / variance).sqrt()
        distances = (scale * u)[..., None] - scale[..., None] * self.means
        return torch.addcmul(self.log_weights, distances, distances, value=-1.0)
