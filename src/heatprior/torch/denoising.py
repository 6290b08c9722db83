"""Denoising of whole images: empirical Bayes with patch averaging and half-quadratic splitting, section 4.3.

As restoration/denoising.py, in tensor operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import log, pi
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from heatprior.border.pixels import COLOUR
from heatprior.kernels.patches import EVERY
from heatprior.priors.schedules import LEAST_SIGMA, Schedules, TableOverSigma
from heatprior.restoration.pipeline import FARTHEST, shapes_of_scales
from heatprior.restoration.pyramid import CROSSOVER_REACH, HALF, NOISE_FACTOR, PERIOD, TAPS, TWICE

HALVING, DOUBLING = TAPS.tolist(), TWICE.tolist()  # no arrays, which torch.compile does not take for constants
MIX = COLOUR.tolist()
Between = Callable[[Tensor], Tensor]  # estimates (N, H, W) before the next step → better ones
Denoising = Callable[[Tensor, Tensor, Between | None, Tensor | None], Tensor]  # images (N, H, W), their noise → images
Crossing = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]  # noise levels → edge, width and height, (1 or N, 1, 1)
Changes = Callable[..., Tensor]  # images (N, H, W), their noise levels, patches, maybe guides → changes of a step


class Recipe(NamedTuple):
    """Steps at falling levels, or one at that of the noise; at how many scales at most, of patches of which side."""

    schedules: Schedules | None
    scales: int
    size: int
    crossovers: TableOverSigma
    between: TableOverSigma | None
    is_guided: bool  # differences of colour are denoised beside the brightness


def denoise_images(changes: Changes, x: Tensor, levels: Tensor, recipe: Recipe) -> Tensor:
    """Images (B, C, H, W) denoised by the recipe; colours are mixed orthogonally."""
    is_colour, levels = x.shape[1] == 3, levels.to(x.dtype)
    mix = torch.tensor(MIX, dtype=x.dtype, device=x.device)
    if is_colour:
        levels = torch.einsum("dc,bchw->bdhw", mix**2, levels.expand(-1, 3, -1, -1) ** 2).sqrt()
        x = torch.einsum("dc,bchw->bdhw", mix, x)
    if levels.shape[-2:] != (1, 1):
        levels = levels.expand(-1, -1, *x.shape[-2:])
    if levels.numel() > 1:
        levels = levels.expand(*x.shape[:2], -1, -1)

    def at_one_scale(noisy: Tensor, sigma: Tensor, between: Between | None, guide: Tensor | None) -> Tensor:
        if recipe.schedules is None:
            return noisy + changes(noisy, sigma, EVERY, *(() if guide is None else (guide,)))
        return split(changes, noisy, sigma, recipe.schedules, recipe.size - 1, between, guide)

    scales = len(shapes_of_scales((x.shape[-2], x.shape[-1]), recipe.scales, recipe.size))
    crossing = partial(cross_at, recipe.crossovers)
    between_steps = None if recipe.between is None else partial(cross_at, recipe.between)

    def at_all_scales(noisy: Tensor, levels: Tensor, guides: Sequence[Tensor]) -> list[Tensor]:
        own = [guide.repeat_interleave(noisy.shape[1], 0) for guide in guides]
        return at_scales(at_one_scale, noisy.flatten(0, 1), levels.flatten(0, 1), scales, crossing, between_steps, own)

    if is_colour and recipe.is_guided:
        brightness = at_all_scales(x[:, :1], levels[:, :1], ())
        differences = at_all_scales(x[:, 1:], levels[:, 1:], brightness)[0].unflatten(0, (-1, 2))
        clean = torch.cat([brightness[0][:, None], differences], 1)
    else:
        clean = at_all_scales(x, levels, ())[0].unflatten(0, x.shape[:2])
    return torch.einsum("cd,bdhw->bchw", torch.linalg.inv(mix), clean) if is_colour else clean


def split(
    changes: Changes,
    noisy: Tensor,
    sigma: Tensor,
    schedules: Schedules,
    margin: int,
    between: Between | None = None,
    guide: Tensor | None = None,
) -> Tensor:
    """x ← w_k y + (1 − w_k) (x + changes(x, level_k sigma)) for each step k, from x = y, mirrored beyond its edges.

    Never farther from y than noise reaches; `between` has its say after every step but the last.
    """
    height, width = noisy.shape[-2:]
    down, across = min(margin, height - 1), min(margin, width - 1)
    border = (across, across, down, down)
    noisy = F.pad(noisy, border, mode="reflect")
    if sigma.shape[-2:] != (1, 1):
        sigma = F.pad(sigma, border, mode="reflect")
    x, beside = noisy, () if guide is None else (F.pad(guide, border, mode="reflect"),)
    for step in range(schedules.steps):
        levels, weights = ([row[step] for row in rows] for rows in (schedules.levels, schedules.weights))
        if step and between is not None:
            inside = x[:, down : down + height, across : across + width]
            x = F.pad(between(inside), border, mode="reflect")
        level = interpolate(sigma, schedules.sigmas, levels) * sigma
        clean = x + changes(x, level, schedules.grid(step), *beside)
        x = torch.lerp(clean, noisy, interpolate(sigma, schedules.sigmas, weights))
        x = torch.maximum(torch.minimum(x, noisy + FARTHEST * sigma), noisy - FARTHEST * sigma)
    return x[:, down : down + height, across : across + width]


# Several scales: an image at half its size is denoised by itself, and low frequencies are taken from there. The
# differentiable twin of restoration/pyramid.py, where the reasons stand: the same short filters, mirrored at the same
# places.


def cross_at(table: TableOverSigma, sigma: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Edge, width and height of a crossover for noise of these levels; of a map, for its middle one."""
    levels = sigma.clamp_min(LEAST_SIGMA).flatten(1)
    middle = (levels.amin(1) * levels.amax(1)).sqrt()[:, None, None]
    edge, width, height = (interpolate(middle, table.sigmas, column) for column in table.columns)
    return edge, width, height


def interpolate(sigma: Tensor, sigmas: Sequence[float], values: Sequence[float]) -> Tensor:
    """A column of a table over sigma at each sigma, as `schedules.interpolate`: with a gradient in it."""
    place, logarithms = sigma.clamp_min(LEAST_SIGMA).log(), [log(node) for node in sigmas]
    result = torch.full_like(place, values[0])
    for i in range(len(values) - 1):
        part = ((place - logarithms[i]) / (logarithms[i + 1] - logarithms[i])).clamp(0.0, 1.0)
        result = result + part * (values[i + 1] - values[i])
    return result


def at_scales(
    denoised: Denoising,
    images: Tensor,
    sigma: Tensor,
    scales: int,
    crossing: Crossing,
    crossing_between: Crossing | None = None,
    guides: Sequence[Tensor] = (),
) -> list[Tensor]:
    """Images (N, H, W) denoised at so many scales, beside guides at each: the results of all, the finest first."""
    guide = guides[0] if guides else None
    if scales == 1:
        return [denoised(images, sigma, None, guide)]
    crossings = crossing, crossing_between
    coarser = at_scales(denoised, halve(images), _halve_noise(sigma), scales - 1, *crossings, guides[1:])

    def merge(fine: Tensor, crossing: Crossing) -> Tensor:
        return fine + double(cross_over(coarser[0] - halve(fine), *crossing(sigma)), fine.shape[-2:])

    between = None if crossing_between is None else lambda fine: merge(fine, crossing_between)
    return [merge(denoised(images, sigma, between, guide), crossing), *coarser]


def halve(images: Tensor) -> Tensor:
    """Images (N, H, W) at half their size."""
    taps = torch.tensor(HALVING, dtype=images.dtype, device=images.device)
    half = [-(-length // 2) for length in images.shape[-2:]]
    padded = mirror(images, [range(1 - HALF, 2 * length - 1 + HALF) for length in half])[:, None]
    rows = F.conv2d(padded, taps[None, None, :, None], stride=(2, 1))
    return F.conv2d(rows, taps[None, None, None, :], stride=(1, 2))[:, 0]


def double(images: Tensor, shape: torch.Size) -> Tensor:
    """The transpose of halving, times four: images (N, H, W) of this shape from those at half their size."""
    taps = torch.tensor(DOUBLING, dtype=images.dtype, device=images.device)
    result = mirror(images, [range(-(HALF // 2), length + HALF // 2) for length in images.shape[-2:]])
    for axis in (-2, -1):
        length = result.shape[axis] - 1
        own = (1, 1, -1, 1) if axis == -2 else (1, 1, 1, -1)
        phases = [F.conv2d(result.narrow(axis, k, length)[:, None], taps[k::2].reshape(own))[:, 0] for k in (0, 1)]
        result = torch.stack(phases, axis if axis == -1 else -2)
        result = result.flatten(-2) if axis == -1 else result.flatten(-3, -2)
        result = result.narrow(axis, 0, shape[axis])
    return result


def cross_over(images: Tensor, edge: Tensor, width: Tensor, height: Tensor) -> Tensor:
    """The part of images (N, H, W) that the coarse scale decides."""
    filters = crossover_filters(edge, width, height)
    places = [range(-CROSSOVER_REACH, length + CROSSOVER_REACH) for length in images.shape[-2:]]
    padded = mirror(images, places)
    if len(filters) == 1:
        return F.conv2d(padded[:, None], filters[:, None])[:, 0]
    return F.conv2d(padded[None], filters[:, None], groups=len(filters))[0]


def crossover_filters(edge: Tensor, width: Tensor, height: Tensor) -> Tensor:
    """How much of a coarse pixel's neighbours takes part: (1 or N, 2 CROSSOVER_REACH + 1, same)."""
    steps = torch.arange(PERIOD, dtype=edge.dtype, device=edge.device)
    along = 2.0 * torch.minimum(steps, PERIOD - steps) / PERIOD  # of the coarse band
    part = torch.sigmoid((edge - torch.hypot(along[:, None], along)) / width)
    near = torch.arange(-CROSSOVER_REACH, CROSSOVER_REACH + 1, dtype=edge.dtype, device=edge.device)
    cosines = (near[:, None] * steps * (2.0 * pi / PERIOD)).cos() / PERIOD
    weights = cosines @ part @ cosines.mT
    return weights * (height * part[:, :1, :1] / weights.sum((-2, -1), keepdim=True))


def mirror(images: Tensor, places: list[range]) -> Tensor:
    """Images (N, H, W) at these rows and columns, mirrored beyond their edges, the edge between two pixels."""
    for axis, place in zip((-2, -1), places, strict=True):
        length = images.shape[axis]
        phase = torch.arange(place.start, place.stop, device=images.device) % (2 * length)
        images = images.index_select(axis, torch.minimum(phase, 2 * length - 1 - phase))
    return images


def _halve_noise(sigma: Tensor) -> Tensor:
    """The noise of the images at half their size: of maps the root mean square over 2×2 pixels, less for halving."""
    if sigma.shape[-2:] == (1, 1):
        return NOISE_FACTOR * sigma
    height, width = sigma.shape[-2:]
    squares = F.pad(sigma[:, None] ** 2, (0, width % 2, 0, height % 2), mode="replicate")
    return NOISE_FACTOR * F.avg_pool2d(squares, 2)[:, 0].sqrt()
