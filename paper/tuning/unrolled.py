"""Splitting at several scales on square crops, unrolled: every operation has a gradient, in the schedules as well.

As restoration/pipeline.py does with images: the half-size version of a crop is denoised by the same rule, and low
frequencies are taken from there, between the steps and after the last. Patches lie on grids of every second pixel,
shifted from step to step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from heatprior.kernels.patches import LEAST_COUNT
from heatprior.torch.denoising import Between, at_scales
from paper.tuning.soft_choice import MixtureTensors, Subspace, soft_changes

STRIDE = 2


class Plan(NamedTuple):
    """What depends on the noise level, at nodes (m,) of log sigma: (steps, m) each, and (2 or 3, m) of the mergers.

    These are where both scales count the same, over the highest frequency of the coarse grid, the logarithm of the
    width, and the height of the transition, which is one after the last step.
    """

    nodes: Tensor
    log_levels: Tensor  # of the noise level of a step over sigma
    logit_weights: Tensor  # of the weight of the noisy image after it
    crossover: Tensor  # after the last step
    between: Tensor  # after the others
    log_window: Tensor  # how much pixels of a patch count in the average: a quarter of it, mirrored, (b/2, b/2)

    def at(self, sigma: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Levels and weights of the steps, and the mergers, at a noise level: straight in its logarithm."""
        place = min(max(math.log(sigma), float(self.nodes[0])), float(self.nodes[-1]))
        right = min(max(int(torch.searchsorted(self.nodes, place)), 1), len(self.nodes) - 1)
        part = (place - float(self.nodes[right - 1])) / float(self.nodes[right] - self.nodes[right - 1])
        levels, weights, crossover, between = (
            torch.lerp(values[:, right - 1], values[:, right], part)
            for values in (self.log_levels.exp(), self.logit_weights.sigmoid(), self.crossover, self.between)
        )
        return levels, weights, crossover, between

    def window(self, size: int) -> Tensor:
        """The factors of all pixels of a patch, (a,)."""
        down = torch.cat([self.log_window, self.log_window[: size // 2].flip(0)])
        return torch.cat([down, down[:, : size // 2].flip(1)], 1).exp().flatten()


def denoised(
    noisy: Tensor, sigma: float, mixture: MixtureTensors, subspace: Subspace, plan: Plan, scales: int
) -> Tensor:
    """Crops (N, h, h) in noise of standard deviation sigma, denoised at so many scales."""

    def at_one_scale(images: Tensor, level: Tensor, between: Between | None, _guide: Tensor | None) -> Tensor:
        return split(images, float(level), mixture, subspace, plan, between)

    def after_last(level: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        edge, log_width = plan.at(float(level))[2].reshape(2, 1, 1, 1)
        return edge, log_width.exp(), torch.ones_like(edge)

    def after_others(level: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        edge, log_width, height = plan.at(float(level))[3].reshape(3, 1, 1, 1)
        return edge, log_width.exp(), height

    level = torch.full((1, 1, 1), sigma, dtype=torch.float64)
    return at_scales(at_one_scale, noisy, level, scales, after_last, after_others)[0]


def split(
    noisy: Tensor,
    sigma: float,
    mixture: MixtureTensors,
    subspace: Subspace,
    plan: Plan,
    between: Between | None = None,
) -> Tensor:
    """Crops (N, h, h) after the steps of the plan, mirrored beyond their edges."""
    size = math.isqrt(mixture.axes.shape[-1])
    margin = size - 1
    levels, weights, *_ = plan.at(sigma)
    x, window = noisy, plan.window(size)
    for step, (level, weight) in enumerate(zip(levels, weights, strict=True)):
        if step and between is not None:
            x = between(x)
        padded = F.pad(x[:, None], (margin,) * 4, mode="reflect")[:, 0]
        change = averaged(padded, level * sigma, mixture, subspace, window, step % STRIDE)
        x = torch.lerp((padded + change)[:, margin:-margin, margin:-margin], noisy, weight)
    return x


def averaged(
    images: Tensor, sigma: Tensor, mixture: MixtureTensors, subspace: Subspace, window: Tensor, offset: int
) -> Tensor:
    """The mean change over the patches of the grid that hold a pixel, none where there is none: (N, h, h)."""
    size, inside = math.isqrt(len(window)), images[:, None, offset:, offset:]
    patches = F.unfold(inside, size, stride=STRIDE).mT  # (N, P, a)
    changes, counts = soft_changes(patches.flatten(0, 1), sigma, mixture, subspace)
    weights = (counts[:, None] * window).view_as(patches)
    shape = tuple(inside.shape[-2:])
    total, counted = (
        F.fold(values.mT, shape, size, stride=STRIDE) for values in (weights * changes.view_as(patches), weights)
    )
    return F.pad((total / counted.clamp_min(LEAST_COUNT))[:, 0], (offset, 0, offset, 0))
