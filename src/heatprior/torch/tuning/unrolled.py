"""Splitting at several scales on square crops, unrolled: every operation has a gradient, in the schedules as well.

As restoration/recipes.py does with images: a crop is denoised, its half-size version is denoised by the same rule in
turn, and the low frequencies are taken from there. Patches lie on grids of every second pixel, shifted from step to
step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from heatprior.torch.scales import at_scales, transition
from heatprior.torch.tuning.soft_choice import MixtureTensors, Subspace, soft_changes

STRIDE = 2


class Plan(NamedTuple):
    """What depends on the noise level, at nodes (m,) of log sigma: (steps, m) each, and (2, m) of the merger."""

    nodes: Tensor
    log_levels: Tensor  # of the noise level of a step over sigma
    logit_weights: Tensor  # of the weight of the noisy image after it
    crossover: (
        Tensor  # where both scales count the same, over the highest frequency of the coarse grid; log of the width
    )

    def at(self, sigma: float) -> tuple[Tensor, Tensor, Tensor]:
        """Levels and weights of the steps, and the cross-over, at a noise level: straight in its logarithm."""
        place = min(max(math.log(sigma), float(self.nodes[0])), float(self.nodes[-1]))
        right = min(max(int(torch.searchsorted(self.nodes, place)), 1), len(self.nodes) - 1)
        part = (place - float(self.nodes[right - 1])) / float(self.nodes[right] - self.nodes[right - 1])
        levels, weights, crossover = (
            torch.lerp(values[:, right - 1], values[:, right], part)
            for values in (self.log_levels.exp(), self.logit_weights.sigmoid(), self.crossover)
        )
        return levels, weights, crossover


def denoised(
    noisy: Tensor, sigma: float, mixture: MixtureTensors, subspace: Subspace, plan: Plan, scales: int
) -> Tensor:
    """Crops (N, h, h) in noise of standard deviation sigma, denoised at so many scales."""

    def at_one_scale(images: Tensor, level: Tensor) -> Tensor:
        return split(images, float(level), mixture, subspace, plan)

    def part_of_coarse(small: list[int], level: Tensor) -> Tensor:
        edge, log_width = plan.at(float(level))[2]
        return transition(small, edge, log_width.exp())

    level = torch.full((1, 1, 1), sigma, dtype=torch.float64)
    return at_scales(at_one_scale, noisy, level, scales, part_of_coarse)


def split(noisy: Tensor, sigma: float, mixture: MixtureTensors, subspace: Subspace, plan: Plan) -> Tensor:
    """Crops (N, h, h) after the steps of the plan, mirrored beyond their edges."""
    size = math.isqrt(mixture.axes.shape[-1])
    margin = size - 1
    y = F.pad(noisy[:, None], (margin,) * 4, mode="reflect")[:, 0]
    levels, weights, _ = plan.at(sigma)
    x = y
    for step, (level, weight) in enumerate(zip(levels, weights, strict=True)):
        change = averaged(x, level * sigma, mixture, subspace, size, step % STRIDE)
        x = torch.lerp(x + change, y, weight)
    return x[:, margin:-margin, margin:-margin]


def averaged(
    images: Tensor, sigma: Tensor, mixture: MixtureTensors, subspace: Subspace, size: int, offset: int
) -> Tensor:
    """The mean change over the patches of the grid that hold a pixel, none where there is none: (N, h, h)."""
    inside = images[:, None, offset:, offset:]
    patches = F.unfold(inside, size, stride=STRIDE)  # (N, a, P)
    changes = soft_changes(patches.mT.flatten(0, 1), sigma, mixture, subspace)
    shape = tuple(inside.shape[-2:])
    total = F.fold(changes.view(len(images), -1, size**2).mT, shape, size, stride=STRIDE)
    held = F.fold(torch.ones_like(patches[:1]), shape, size, stride=STRIDE).clamp_min(1.0)
    return F.pad((total / held)[:, 0], (offset, 0, offset, 0))
