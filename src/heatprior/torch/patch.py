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
from heatprior.priors import experts
from heatprior.priors.filters import FilterBank
from heatprior.priors.patch import PatchPrior
from heatprior.torch.averaging import average
from heatprior.torch.experts import Experts
from heatprior.torch.module import PriorModule, in_chunks, turn


class _Model(NamedTuple):
    """The quantities that the parameters stand for, in one type."""

    directions: Tensor  # k_j / ‖k_j‖, (J, a)
    norms: Tensor  # (J,)
    experts: Experts

    def log_prob(self, y: Tensor, sigma: Tensor) -> tuple[Tensor]:
        """On the span of the filters: (n,)."""
        return ((self.experts.log_density(*self._respond(y, sigma)) + self.norms.log()).sum(-1),)

    def score(self, y: Tensor, sigma: Tensor) -> tuple[Tensor]:
        """Σ_j k_j (log psi_j)'(⟨k_j, y⟩, t): (n, a)."""
        return ((self.experts.slope(*self._respond(y, sigma)) * self.norms) @ self.directions,)

    def posterior(self, y: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance, (n, a) each."""
        u, noise = self._respond(y, sigma)
        clean, spread = self.experts.posterior(u, noise)
        squares = self.directions**2
        unseen = (1.0 - squares.sum(0)).clamp_min(0.0)
        mean = y + ((clean - u) / self.norms) @ self.directions
        return mean, (spread / self.norms**2) @ squares + sigma[..., None] ** 2 * unseen

    def change(self, y: Tensor, sigma: Tensor) -> tuple[Tensor]:
        """E[X | Y = y] − y = sigma² ∇ log f(y, t): (n, a)."""
        slopes = self.experts.slope(*self._respond(y, sigma))
        return ((sigma[..., None] ** 2 * self.norms * slopes) @ self.directions,)

    def _respond(self, y: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        """⟨k_j, y⟩, (n, J), and the variance of the noise on it: (J,) or (n, J)."""
        return (y @ self.directions.mT) * self.norms, (sigma[..., None] * self.norms) ** 2


class PatchModule(PriorModule):
    """`directions` (J, a), and the parameters `angles` (J, J), `log_norms` (J,) and `logits` (J, L)."""

    directions: Tensor
    means: Tensor
    angles: Tensor
    log_norms: Tensor

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
        return PatchPrior(FilterBank(filters), experts.Experts(logits, self._reach), self.card)

    @property
    def size(self) -> int:
        """b, the side of a patch."""
        return isqrt(self.directions.shape[1])

    def changes(self, images: Tensor, sigma: Tensor, grid: Grid = EVERY) -> Tensor:
        """E[X | Y] − Y of every patch, averaged: images (N, H, W)."""
        model, most = self.model(images.dtype), self.at_once(self.logits.numel(), images.device)
        return average(lambda y, levels: in_chunks(model.change, y, levels, most)[0], images, sigma, self.size, grid)

    def model(self, dtype: torch.dtype) -> _Model:
        """The quantities that the parameters stand for, in one type."""
        tensors = (turn(self.directions, self.angles), self.log_norms.exp(), self.logits.log_softmax(-1), self.means)
        directions, norms, log_weights, means = (tensor.to(dtype) for tensor in tensors)
        return _Model(directions, norms, Experts(log_weights, means, self._base))
