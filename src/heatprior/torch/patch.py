"""The patch prior as a module: f(p, t) = ∏_j ‖k_j‖ psi_j(⟨k_j, p⟩, t), Eq. (5).

Its parameters are free: angles between the filters, the logarithms of their norms, and the logits of the weights. So an
optimiser can take any step, and the filters stay orthogonal, without which the diffusion would not be exact. The angles
turn the filters among themselves; their span stays as it was.
"""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from heatprior.kernels.patches import EVERY, Grid
from heatprior.priors.experts import Experts
from heatprior.priors.filters import FilterBank
from heatprior.priors.patch import PatchPrior
from heatprior.torch import experts
from heatprior.torch.averaging import average
from heatprior.torch.module import Posterior, PriorModule, Sigma, in_chunks, on_patches, turn


class _Model(NamedTuple):
    """The quantities that the parameters stand for, in one type."""

    directions: Tensor  # k_j / ‖k_j‖, (J, a)
    norms: Tensor  # (J,)
    log_weights: Tensor  # (J, L)
    means: Tensor  # (L,)
    base: float  # sigma_0

    def responses(self, y: Tensor) -> Tensor:
        """⟨k_j, y⟩, (n, J)."""
        return (y @ self.directions.mT) * self.norms

    def noise(self, sigma: Tensor) -> Tensor:
        """Variance of the noise on the responses: (J,) or (n, J)."""
        return (sigma[..., None] * self.norms) ** 2


class PatchModule(PriorModule):
    """`directions` (J, a), and the parameters `angles` (J, J), `log_norms` (J,) and `logits` (J, L)."""

    directions: Tensor
    means: Tensor
    angles: Tensor
    log_norms: Tensor
    logits: Tensor

    def _take(self, prior: PatchPrior) -> None:
        norms = prior.filters.norms
        self._add_buffer("directions", prior.filters.matrix / norms[:, None])
        self._add_buffer("means", prior.experts.means)
        self._add_parameter("angles", np.zeros((len(norms), len(norms))))
        self._add_parameter("log_norms", np.log(norms))
        self._add_parameter("logits", prior.experts.log_weights)
        self._base = prior.experts.base_sigma
        self._reach = prior.experts.reach

    def _make_prior(self) -> PatchPrior:
        model = self.model(torch.float64)
        filters = (model.norms[:, None] * model.directions).detach().cpu().numpy()
        logits = self.logits.detach().cpu().numpy()
        return PatchPrior(FilterBank(filters), Experts(logits, self._reach), self.card)

    @property
    def size(self) -> int:
        """b, the side of a patch."""
        return isqrt(self.directions.shape[1])

    def log_prob(self, y: Tensor, sigma: Sigma) -> Tensor:
        """log f(y, t) of patches (..., a) on the span of the filters: (...)."""

        def function(model: _Model, y: Tensor, sigma: Tensor) -> tuple[Tensor]:
            variance = model.base**2 + model.noise(sigma)
            logs = experts.log_density(model.responses(y), variance, model.log_weights, model.means)
            return ((logs + model.norms.log()).sum(-1),)

        return on_patches(self, "log_prob", function, y, sigma)[0]

    def score(self, y: Tensor, sigma: Sigma) -> Tensor:
        """∇ log f(y, t), (..., a)."""

        def function(model: _Model, y: Tensor, sigma: Tensor) -> tuple[Tensor]:
            variance = model.base**2 + model.noise(sigma)
            slopes = experts.slope(model.responses(y), variance, model.log_weights, model.means)
            return ((slopes * model.norms) @ model.directions,)

        return on_patches(self, "score", function, y, sigma)[0]

    def posterior(self, y: Tensor, sigma: Sigma) -> Posterior:
        """Mean and variance, pixel by pixel, of the clean patches: (..., a) each."""

        def function(model: _Model, y: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
            u = model.responses(y)
            clean = experts.posterior(u, model.noise(sigma), model.base, model.log_weights, model.means)
            squares = model.directions**2
            unseen = (1.0 - squares.sum(0)).clamp_min(0.0)
            mean = y + ((clean.mean - u) / model.norms) @ model.directions
            return mean, (clean.variance / model.norms**2) @ squares + sigma[..., None] ** 2 * unseen

        return Posterior(*on_patches(self, "posterior", function, y, sigma))

    def changes(self, images: Tensor, sigma: Tensor, grid: Grid = EVERY) -> Tensor:
        """E[X | Y] − Y of every patch, averaged: images (N, H, W)."""
        model = self.model(images.dtype)

        def change(y: Tensor, sigma: Tensor) -> tuple[Tensor]:
            u, variance = model.responses(y), model.base**2 + model.noise(sigma)
            slopes = experts.slope(u, variance, model.log_weights, model.means)
            return ((sigma[..., None] ** 2 * model.norms * slopes) @ model.directions,)

        most = self.at_once(self.logits.numel(), images.device)
        return average(lambda y, levels: in_chunks(change, y, levels, most)[0], images, sigma, self.size, grid)

    def numbers(self, _name: str, _levels: Tensor) -> int:
        """How much memory a patch takes, in numbers: one for each component of each expert."""
        return int(self.logits.numel())

    def model(self, dtype: torch.dtype) -> _Model:
        """The quantities that the parameters stand for, in one type."""
        directions = turn(self.directions, self.angles)
        log_weights = self.logits.log_softmax(-1)
        tensors = (directions, self.log_norms.exp(), log_weights, self.means)
        directions, norms, log_weights, means = (tensor.to(dtype) for tensor in tensors)
        return _Model(directions, norms, log_weights, means, self._base)
