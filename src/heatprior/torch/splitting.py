"""Denoising of whole images: empirical Bayes with patch averaging and half-quadratic splitting, section 4.3.

As restoration/denoising.py, in tensor operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  the field's own name for it
from torch import Tensor

from heatprior.errors import InvalidInputError
from heatprior.kernels.grids import EVERY, Grid
from heatprior.pixels.channels import COLOUR
from heatprior.priors.schedules import Schedules
from heatprior.torch.interpolation import interpolated
from heatprior.torch.scales import Between, Crossovers, at_scales, scales_of

METHODS = ("hqs", "eb")
MIX = COLOUR.tolist()
Changes = Callable[[Tensor, Tensor, Grid], Tensor]  # images (N, H, W), their noise levels, patches → changes of a step


class SplittingSchedule(NamedTuple):
    """Noise levels over sigma and weights of the noisy image, (steps, m) each, at logarithms of sigma (m,); patches."""

    logarithms: tuple[float, ...]
    levels: tuple[tuple[float, ...], ...]
    weights: tuple[tuple[float, ...], ...]
    grids: tuple[Grid, ...]

    @classmethod
    def of(cls, schedules: Schedules) -> SplittingSchedule:
        """That of a prior of the library."""
        levels, weights = (tuple(zip(*values, strict=True)) for values in (schedules.levels, schedules.weights))
        grids = tuple(map(schedules.grid, range(schedules.steps)))
        return cls(tuple(np.log(schedules.sigmas).tolist()), levels, weights, grids)


def check_method(method: str, scales: int | None) -> None:
    """Refuse what is no method, and no number of scales."""
    if method not in METHODS:
        raise InvalidInputError(f"method is {method!r}; expected {' or '.join(map(repr, METHODS))}")
    if scales is not None and scales < 1:
        raise InvalidInputError(f"scales is {scales!r}; expected a whole number of at least 1")


class Recipe(NamedTuple):
    """Steps at falling levels, or one at that of the noise; at how many scales at most, of patches of which side."""

    schedule: SplittingSchedule | None
    scales: int
    size: int
    crossovers: Crossovers
    between: Crossovers | None


def denoise_images(changes: Changes, x: Tensor, levels: Tensor, recipe: Recipe) -> Tensor:
    """Images (B, C, H, W) denoised by the recipe; colours are mixed orthogonally."""
    is_colour, levels = x.shape[1] == 3, levels.to(x.dtype)
    mix = torch.tensor(MIX, dtype=x.dtype, device=x.device)
    if is_colour:
        levels = torch.einsum("dc,bchw->bdhw", mix**2, levels.expand(-1, 3, -1, -1) ** 2).sqrt()
        x = torch.einsum("dc,bchw->bdhw", mix, x)
    noisy = x.flatten(0, 1)
    if levels.shape[-2:] != (1, 1):
        levels = levels.expand(-1, -1, *x.shape[-2:])
    if levels.numel() > 1:
        levels = levels.expand(*x.shape[:2], -1, -1)
    sigma = levels.flatten(0, 1)

    def at_one_scale(noisy: Tensor, sigma: Tensor, between: Between | None) -> Tensor:
        if recipe.schedule is None:
            return noisy + changes(noisy, sigma, EVERY)
        return split(changes, noisy, sigma, recipe.schedule, recipe.size - 1, between)

    scales = scales_of(x.shape[-2], x.shape[-1], recipe.scales, recipe.size)
    parts = recipe.crossovers.part_of_coarse, None if recipe.between is None else recipe.between.part_of_coarse
    clean = at_scales(at_one_scale, noisy, sigma, scales, *parts).unflatten(0, x.shape[:2])
    return torch.einsum("cd,bdhw->bchw", torch.linalg.inv(mix), clean) if is_colour else clean


def split(
    changes: Changes,
    noisy: Tensor,
    sigma: Tensor,
    schedule: SplittingSchedule,
    margin: int,
    between: Between | None = None,
) -> Tensor:
    """x ← w_k y + (1 − w_k) (x + changes(x, level_k sigma)) for each step k, from x = y, mirrored beyond its edges.

    `between` has its say after every step but the last; the images are then mirrored anew.
    """
    height, width = noisy.shape[-2:]
    down, across = min(margin, height - 1), min(margin, width - 1)
    border = (across, across, down, down)
    noisy = F.pad(noisy, border, mode="reflect")
    if sigma.shape[-2:] != (1, 1):
        sigma = F.pad(sigma, border, mode="reflect")
    x = noisy
    for step, (levels, weights, grid) in enumerate(zip(schedule.levels, schedule.weights, schedule.grids, strict=True)):
        if step and between is not None:
            inside = x[:, down : down + height, across : across + width]
            x = F.pad(between(inside), border, mode="reflect")
        clean = x + changes(x, interpolated(sigma, schedule.logarithms, levels) * sigma, grid)
        x = torch.lerp(clean, noisy, interpolated(sigma, schedule.logarithms, weights))
    return x[:, down : down + height, across : across + width]
