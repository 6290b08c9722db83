"""Splitting at several scales on square crops, unrolled: every operation has a gradient, in the schedules as well.

As restoration/recipes.py does with images: a crop is denoised, its half-size version is denoised by the same rule in
turn, and the low frequencies are taken from there. Patches lie on grids of every second pixel, shifted from step to
step.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from scipy.fft import dct
from torch import Tensor

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
    fine = split(noisy, sigma, mixture, subspace, plan)
    if scales == 1:
        return fine
    large, small = transform(noisy.shape[-1], noisy), transform(noisy.shape[-1] // 2, noisy)
    half = len(small)
    reduced = 0.5 * (small.mT @ (large @ noisy @ large.mT)[:, :half, :half] @ small)
    coarse = denoised(reduced, sigma / 2.0, mixture, subspace, plan, scales - 1)
    edge, log_width = plan.at(sigma)[2]
    index = torch.arange(half, dtype=noisy.dtype) / half
    part = torch.sigmoid((edge - torch.hypot(index[:, None], index)) / log_width.exp())
    spectrum = large @ fine @ large.mT
    change = part * (2.0 * (small @ coarse @ small.mT) - spectrum[:, :half, :half])
    return fine + large[:half].mT @ change @ large[:half]


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


def transform(length: int, like: Tensor) -> Tensor:
    """The orthonormal cosine transform as a matrix (length, length), frequencies along rows."""
    return _transform(length, like.dtype)


@cache
def _transform(length: int, dtype: torch.dtype) -> Tensor:
    return torch.from_numpy(dct(np.eye(length), axis=0, norm="ortho")).to(dtype)
