"""One step of a mixture on patches with a soft choice of the shapes: what the library does, with a gradient.

The library replaces a patch by its posterior mean over the shapes that are nearly as likely as the best. Here it is
over the best few, however unlikely, so that a shape also learns which patches it should leave to others. As in
kernels/candidates.py the few are found in a subspace that all shapes share, and patches are sorted by shape, so that
the work is one matrix product per shape.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

CANDIDATES = 4  # shapes that are mixed
SUBSPACE = 24  # dimensions in which all are compared
AT_ONCE = 1024  # patches that are compared with all shapes at a time


class MixtureTensors(NamedTuple):
    """K shapes at G contrasts: the parameters that are tuned."""

    axes: Tensor  # of each shape, as patches: (K, d, a), orthonormal rows
    log_variances: Tensor  # along them, at contrast one: (K, d)
    log_contrasts: Tensor  # (G,)
    logits: Tensor  # of the weights, (K, G)
    log_confidences: Tensor  # how much patches of each component count in the average, (K, G)

    @property
    def variances(self) -> Tensor:
        """c_g λ_kd, (K, G, d)."""
        return (self.log_contrasts[:, None] + self.log_variances[:, None, :]).exp()

    @property
    def log_weights(self) -> Tensor:
        """log π_kg, (K, G)."""
        return self.logits.flatten().log_softmax(0).view_as(self.logits)


class Subspace(NamedTuple):
    """All shapes within the few directions in which patches vary most."""

    directions: Tensor  # (q, a)
    axes: Tensor  # of each shape within it, as rows, one shape after the other: (K q, q)
    variances: Tensor  # (K, q)

    @classmethod
    def of(cls, mixture: MixtureTensors) -> Subspace:
        """That of a mixture, as it is now."""
        mixture = MixtureTensors(*(tensor.detach() for tensor in mixture))
        axes, variances = mixture.axes, mixture.log_variances.exp()
        strength = (mixture.log_weights.exp() * mixture.log_contrasts.exp()).sum(1)  # (K,)
        total = torch.einsum("kda,kd,kdb->ab", axes, strength[:, None] * variances, axes)
        directions = torch.linalg.eigh(total)[1].flip(1)[:, :SUBSPACE].mT  # (q, a)
        within = axes @ directions.mT  # (K, d, q)
        covariances = within.mT @ (variances[..., None] * within)
        own, turns = torch.linalg.eigh(covariances)
        return cls(directions, turns.mT.reshape(-1, len(directions)), own.clamp_min(0.0))

    def candidates(self, y: Tensor, sigma: Tensor, mixture: MixtureTensors) -> Tensor:
        """The numbers of the shapes that explain patches y (n, a) best: (n, candidates). Without gradient."""
        y, sigma = y.detach(), sigma.detach()
        mixture = MixtureTensors(*(tensor.detach() for tensor in mixture))
        shapes, count = len(self.variances), min(CANDIDATES, len(self.variances))
        signal = mixture.log_contrasts.exp()[:, None] * self.variances[:, None, :]  # (K, G, q)
        gains = 0.5 / sigma**2 - 0.5 / (signal + sigma**2)
        constants = mixture.log_weights - 0.5 * torch.log1p(signal / sigma**2).sum(-1)

        def best(some: Tensor) -> Tensor:
            u = self.axes @ (self.directions @ some.mT)
            logs = torch.baddbmm(constants[..., None], gains, u.square_().view(shapes, -1, len(some)))  # (K, G, n)
            return logs.amax(1).mT.contiguous().topk(count, dim=1, sorted=False).indices

        return torch.cat([best(some) for some in y.split(AT_ONCE)])


def soft_changes(patches: Tensor, sigma: Tensor, mixture: MixtureTensors, subspace: Subspace) -> tuple[Tensor, Tensor]:
    """By how much patches (n, a), all in noise of standard deviation sigma (), change, (n, a); how they count, (n,)."""
    y = patches - patches.mean(-1, keepdim=True)
    chosen = subspace.candidates(y, sigma, mixture)
    order = chosen.flatten().argsort(stable=True)  # pairs of patch and shape, sorted by shape
    owners, counts = order // chosen.shape[1], chosen.flatten().bincount(minlength=len(mixture.axes)).tolist()
    variances = mixture.variances
    lost = sigma**2 / (variances + sigma**2)  # part of a response that is noise, (K, G, d)
    gains = (0.5 / sigma**2) * (1.0 - lost)
    constants = mixture.log_weights + 0.5 * lost.log().sum(-1)
    of_pairs = [
        _Responses.apply(*own)
        for own in zip(
            y[owners].split(counts),
            mixture.axes,
            gains,
            constants,
            lost,
            mixture.log_confidences.exp(),
            strict=True,
        )
    ]
    peaks, confidences = (torch.cat([own[k] for own in of_pairs]) for k in (0, 2))
    back = order.argsort()
    parts = peaks[back].view_as(chosen).softmax(-1).flatten()[order]  # of the candidates of a patch
    removed = torch.cat([noise @ axes for (_, noise, _), axes in zip(of_pairs, mixture.axes, strict=True)])
    changes = -torch.zeros_like(y).index_add(0, owners, parts[:, None] * removed)
    return changes, y.new_zeros(len(y)).index_add(0, owners, parts * confidences)


class _Responses(torch.autograd.Function):
    """Responses u of patches to one shape: the largest log density over contrasts, and two means over P(g | u).

    Σ_g P(g | u) lost_g u, and Σ_g P(g | u) confidence_g.

    By hand, since autograd would keep six arrays of the size of u for every shape.
    """

    @staticmethod
    def forward(
        ctx: Any, y: Tensor, axes: Tensor, gains: Tensor, constants: Tensor, lost: Tensor, confidences: Tensor
    ) -> Any:
        u = y @ axes.mT  # (n, d)
        logs = torch.addmm(constants, u * u, gains.mT)  # (n, G)
        parts = logs.softmax(-1)
        part_lost = parts @ lost
        ctx.save_for_backward(y, axes, gains, lost, confidences, u, logs, parts, part_lost)
        return logs.amax(-1), part_lost * u, parts @ confidences

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        of_peak, of_noise, of_count = slopes
        y, axes, gains, lost, confidences, u, logs, parts, part_lost = ctx.saved_tensors
        of_part_lost = of_noise * u  # (n, d)
        of_lost = parts.mT @ of_part_lost
        of_parts = torch.addmm(of_count[:, None] * confidences, of_part_lost, lost.mT)  # (n, G)
        of_logs = parts * (of_parts - (parts * of_parts).sum(-1, keepdim=True))
        of_logs.scatter_add_(1, logs.argmax(-1, keepdim=True), of_peak[:, None])
        of_u = of_noise * part_lost + 2.0 * u * (of_logs @ gains)
        return of_u @ axes, of_u.mT @ y, of_logs.mT @ (u * u), of_logs.sum(0), of_lost, parts.mT @ of_count
