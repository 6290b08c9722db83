"""The mixture of Gaussians as a module: f(p, t) = Σ_k Σ_g π_kg G(p; 0, c_g Σ_k + sigma² Id).

Σ_k = Σ_d λ_kd e_kd e_kdᵀ. Its parameters are free: angles that turn the axes e_k of each shape, the logarithms of the
variances λ and of the contrasts c, and the logits of the weights π. So noise adds sigma² to every eigenvalue whatever
an optimiser does, and no eigenvalue problem stands in the way of a gradient.
"""

from __future__ import annotations

from functools import partial
from math import isqrt
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from heatprior.kernels.patches import EVERY, Grid
from heatprior.kernels.shapes import SLOPE
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.torch.averaging import average_by_weight
from heatprior.torch.experts import LOG_2PI
from heatprior.torch.module import PriorModule, in_chunks, turn


class _Model(NamedTuple):
    """The quantities that the parameters stand for, in one type."""

    axes: Tensor  # (K, d, a)
    variances: Tensor  # c_g λ_kd, (K, G, d)
    log_weights: Tensor  # (K, G)

    def log_prob(self, y: Tensor, sigma: Tensor) -> tuple[Tensor]:
        """Of patches without their brightness: (n,)."""
        return (self.logarithms(self.responses(y), self.widen(sigma)).flatten(1).logsumexp(-1),)

    def score(self, y: Tensor, sigma: Tensor) -> tuple[Tensor]:
        """−Σ_kg P(k, g | y) (c_g Σ_k + sigma² Id)⁻¹ y: (n, a)."""
        u, variances = self.responses(y), self.widen(sigma)
        parts = self.responsibilities(u, variances)
        return (-(over_axes(parts, 1.0 / variances) * u).flatten(1) @ self.axes.flatten(0, 1),)

    def posterior(self, y: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance over all shapes, (n, a) each."""
        u, variances = self.responses(y), self.widen(sigma)
        parts = self.responsibilities(u, variances)
        noise = sigma[..., None, None, None] ** 2 / variances  # part of a response that is noise
        axes = self.axes.flatten(0, 1)
        removed = (over_axes(parts, noise) * u).flatten(1) @ axes
        own = over_axes(parts, noise * self.variances).flatten(1) @ axes**2  # what each component leaves
        each = torch.einsum("nkgd,kda->nkga", noise * u[:, :, None, :], self.axes)
        between = torch.einsum("nkg,nkga->na", parts, (each - removed[:, None, None]) ** 2)
        return y - removed, own + between + sigma[..., None] ** 2 / y.shape[-1]

    def responses(self, y: Tensor) -> Tensor:
        """Along the axes of each shape, (n, K, d)."""
        return (y @ self.axes.flatten(0, 1).mT).unflatten(-1, self.axes.shape[:2])

    def widen(self, sigma: Tensor) -> Tensor:
        """Variances of noisy responses: (K, G, d), or (n, K, G, d) for one noise level per patch."""
        return self.variances + sigma[..., None, None, None] ** 2

    def logarithms(self, u: Tensor, variances: Tensor) -> Tensor:
        """Log-densities of the weighted components, (n, K, G)."""
        constants = self.log_weights - 0.5 * (variances.log() + LOG_2PI).sum(-1)
        return constants - 0.5 * over_contrasts(u**2, 1.0 / variances)

    def responsibilities(self, u: Tensor, variances: Tensor) -> Tensor:
        """P(k, g | y), (n, K, G)."""
        logs = self.logarithms(u, variances)
        return logs.flatten(1).softmax(-1).view_as(logs)


def over_contrasts(u: Tensor, weights: Tensor) -> Tensor:
    """Σ_d u_kd w_kgd: u (n, K, d), w (K, G, d) or (n, K, G, d) → (n, K, G)."""
    return torch.einsum("nkd,kgd->nkg" if weights.ndim == 3 else "nkd,nkgd->nkg", u, weights)


def over_axes(parts: Tensor, weights: Tensor) -> Tensor:
    """Σ_g p_kg w_kgd: p (n, K, G), w (K, G, d) or (n, K, G, d) → (n, K, d)."""
    return torch.einsum("nkg,kgd->nkd" if weights.ndim == 3 else "nkg,nkgd->nkd", parts, weights)


class MixtureModule(PriorModule):
    """`turns` (K, d, d), and the parameters `angles`, `log_variances`, `log_contrasts` and `logits`."""

    basis: Tensor  # the cosine basis without its constant, (d, a)
    turns: Tensor
    angles: Tensor  # (K, d, d)
    log_variances: Tensor  # (K, d)
    log_contrasts: Tensor  # (G,)
    rival: float  # how likely a shape must be to take part in a posterior mean, the best being 1
    window: Tensor  # how much the pixels of a patch count in an average, (a,)
    confidences: Tensor  # and patches of each component, (K, G)

    def _take(self, prior: GaussianMixturePrior) -> None:
        self._add_buffer("basis", prior.basis)
        self._add_buffer("turns", prior.turns)
        self._add_parameter("angles", np.zeros(prior.turns.shape))
        self._add_parameter("log_variances", np.log(prior.variances))
        self._add_parameter("log_contrasts", np.log(prior.contrasts))
        self._add_parameter("logits", prior.log_weights)
        settings = prior.step_settings
        self.rival = settings.rival
        self._add_buffer("window", settings.window, persistent=False)  # they are on the card
        self._add_buffer("confidences", settings.confidences, persistent=False)

    def _make_prior(self) -> GaussianMixturePrior:
        tensors = (turn(self.turns, self.angles), self.log_variances.exp(), self.logits, self.log_contrasts.exp())
        turns, variances, logits, contrasts = (tensor.detach().cpu().double() for tensor in tensors)
        covariances = (turns.mT * variances[:, None, :]) @ turns
        return GaussianMixturePrior(covariances.numpy(), logits.numpy(), contrasts.numpy(), self.card)

    @property
    def size(self) -> int:
        """b, the side of a patch."""
        return isqrt(self.basis.shape[1])

    def changes(self, images: Tensor, sigma: Tensor, grid: Grid = EVERY, guide: Tensor | None = None) -> Tensor:
        """The change of every patch by its posterior mean over the shapes that explain it best, averaged: (N, H, W).

        As the library does, which finds the shapes by short cuts; here all are compared. Which ones are too unlikely to
        take part has no gradient. A `guide` adds a direction to every shape (kernels/shapes.py).
        """
        model = self.model(images.dtype)
        window, confidences = self.window.to(images.dtype), self.confidences.to(images.dtype)

        def change(y: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
            y = y.unflatten(-1, (-1, self.size**2))
            y, *beside = (y - y.mean(-1, keepdim=True)).unbind(-2)
            u, variances = model.responses(y), model.widen(sigma)
            logs = model.logarithms(u, variances)  # (n, K, G)
            peaks = logs.amax(-1)
            shares = (peaks - peaks.amax(-1, keepdim=True)).exp()
            shares = torch.where(shares < self.rival, 0.0, shares)
            precisions, along = 1.0 / variances, None
            if beside:
                along = _Along.of(u, model.responses(beside[0]), precisions)
                logs = logs + along.gains
            parts = (shares / shares.sum(-1, keepdim=True))[..., None] * logs.softmax(-1)
            removed = over_axes(parts, precisions) * u
            if along is not None:
                removed = removed - over_axes(parts * along.weights, precisions) * along.responses
            removed = removed * sigma[..., None, None] ** 2
            counts = (parts * confidences).flatten(1).sum(-1, keepdim=True)
            return -removed.flatten(1) @ model.axes.flatten(0, 1), counts * window

        in_parts = partial(in_chunks, change, most=self.at_once(self.numbers("changes", sigma), images.device))
        return average_by_weight(in_parts, images, sigma, self.size, grid, guide)

    def model(self, dtype: torch.dtype) -> _Model:
        """The quantities that the parameters stand for, in one type."""
        axes = turn(self.turns, self.angles) @ self.basis
        variances = (self.log_contrasts[:, None] + self.log_variances[:, None, :]).exp()
        log_weights = self.logits.flatten().log_softmax(0).view_as(self.logits)
        return _Model(axes.to(dtype), variances.to(dtype), log_weights.to(dtype))

    def numbers(self, name: str, levels: Tensor) -> int:
        """How much memory a patch takes, in numbers: one for each axis of each shape, or of each component."""
        responses = int(self.log_variances.numel())
        several = name == "posterior" or levels.numel() > 1
        return max(responses * len(self.log_contrasts) if several else responses, self.size**4)


class _Along(NamedTuple):
    """A guide as one more direction, of probability one half: kernels/shapes.py."""

    responses: Tensor  # v, (n, K, d)
    gains: Tensor  # of log-densities, (n, K, G)
    weights: Tensor  # b f times the probability of the direction, (n, K, G)

    @classmethod
    def of(cls, u: Tensor, v: Tensor, precisions: Tensor) -> _Along:
        a, b = over_contrasts(v**2, precisions), over_contrasts(u * v, precisions)
        wider, slope = 1.0 + float(SLOPE) ** 2 * a, float(SLOPE) ** 2
        gained = 0.5 * (slope / wider * b**2 - wider.log())
        return cls(v, F.softplus(gained), slope / wider * b * gained.sigmoid())
