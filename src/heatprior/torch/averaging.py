"""The average over overlapping patches, band by band of rows, as kernels/patches.py has it."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from heatprior.kernels.patches import EVERY, Grid
from heatprior.torch.module import recompute

PATCHES = 1 << 15  # of a band, about

ChangesOfPatches = Callable[[Tensor, Tensor], Tensor]  # (n, a), () or (n,) → (n, a)
WeightedChanges = Callable[[Tensor, Tensor], tuple[Tensor, ...]]  # (n, a or 2 a), … → changes, weights: (n, a)


def average(change: ChangesOfPatches, images: Tensor, sigma: Tensor, size: int, grid: Grid = EVERY) -> Tensor:
    """The mean, over the b×b patches on a grid that hold a pixel, of their changes; as `sum_changes`."""
    held = sum_changes(lambda y, _: torch.ones_like(y), images[:1].detach(), sigma[:1].detach(), size, grid)
    return sum_changes(change, images, sigma, size, grid) / held


def average_by_weight(
    change: WeightedChanges, images: Tensor, sigma: Tensor, size: int, grid: Grid, guide: Tensor | None
) -> Tensor:
    """The mean of the changes where every pixel of a patch counts by its weight; `guide` (N, H, W) lies behind y."""

    def both(y: Tensor, levels: Tensor) -> Tensor:
        changes, weights = change(y, levels)
        return torch.cat([weights * changes, weights], -1)

    total, counted = _sum_channels(both, images, sigma, size, grid, 2, guide).unbind(1)
    return total / counted


def sum_changes(change: ChangesOfPatches, images: Tensor, sigma: Tensor, size: int, grid: Grid = EVERY) -> Tensor:
    """Sum the changes of the patches on a grid that hold a pixel: images (N, H, W), sigma (1 or N, 1 or H, 1 or W)."""
    return _sum_channels(change, images, sigma, size, grid, 1, None)[:, 0]


def _sum_channels(
    change: ChangesOfPatches, images: Tensor, sigma: Tensor, size: int, grid: Grid, channels: int, guide: Tensor | None
) -> Tensor:
    """The sum for several channels at once, one after the other in what `change` returns: (N, C, H, W)."""
    count, height, width = images.shape
    last = height - size + 1
    band = max(1, min(last, PATCHES // (count * (width - size + 1))))
    shared = size - 1  # rows that two bands have in common
    all_rows, columns = (starts(length, size, grid) for length in (height, width))

    def of_band(pixels: Tensor, noise: Tensor, rows: list[int]) -> Tensor:
        patches = F.unfold(pixels, size)  # (N, a, P), or (N, 2 a, P) with a guide
        levels = noise_of_patches(noise, patches, size)
        if grid == EVERY:
            changed = change(patches.mT.flatten(0, 1), levels).unflatten(0, (count, -1)).mT
        else:
            begins = torch.tensor(rows, device=pixels.device)[:, None] * (width - size + 1)
            chosen = (begins + torch.tensor(columns, device=pixels.device)).reshape(-1)  # among all patches
            some = levels.unflatten(0, (count, -1))[:, chosen].flatten() if levels.ndim else levels
            moved = change(patches[..., chosen].mT.flatten(0, 1), some).unflatten(0, (count, -1)).mT
            changed = moved.new_zeros(*moved.shape[:2], patches.shape[-1]).index_copy(-1, chosen, moved)
        return F.fold(changed, tuple(pixels.shape[-2:]), size)

    stacked = images[:, None] if guide is None else torch.stack([images, guide], 1)
    finished, carried = [], images.new_zeros(count, channels, shared, width)
    for first in range(0, last, band):
        end = min(first + band, last)
        rows = [row - first for row in all_rows if first <= row < end]
        pixels = stacked[:, :, first : end + shared]
        noise = sigma[:, first : end + shared] if sigma.shape[1] > 1 else sigma
        if not rows:
            total = torch.zeros_like(pixels[:, :1]).repeat(1, channels, 1, 1)
        else:
            total = of_band(pixels, noise, rows) if band == last else recompute(of_band, pixels, noise, rows)
        done = total.shape[2] - shared
        total = torch.cat([total[:, :, :shared] + carried, total[:, :, shared:]], 2)
        finished.append(total[:, :, :done])
        carried = total[:, :, done:]
    return torch.cat([*finished, carried], 2)


def noise_of_patches(sigma: Tensor, patches: Tensor, size: int) -> Tensor:
    """One noise level (), or one per patch (N · P,): of a map the root mean square over the pixels of each."""
    if sigma.numel() == 1:
        return sigma.reshape(())
    if sigma.shape[-2:] == (1, 1):
        return sigma.reshape(-1, 1).expand(len(patches), patches.shape[-1]).reshape(-1)
    squares = F.avg_pool2d(sigma[:, None] ** 2, size, stride=1)
    return squares.sqrt().reshape(len(sigma), -1).expand(len(patches), -1).reshape(-1)


def starts(length: int, size: int, grid: Grid) -> list[int]:
    """`Grid.starts` in plain Python, whose results torch.compile takes for constants."""
    last = length - size
    half = [0, *range(grid.offset, last // 2 + 1, grid.stride)]
    half += [last // 2] if last - 2 * half[-1] > grid.stride else []
    return sorted({*half, *(last - start for start in half)})
