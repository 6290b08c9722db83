"""The average over overlapping patches, band by band of rows: images → patches → changes → images.

As kernels/row_bands.py. Never are more than the patches of one band in memory; with gradients a band keeps nothing but
its pixels, and is computed again on the way back.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from heatprior.torch.chunks import recomputed

PATCHES = 1 << 15  # of a band, about

ChangesOfPatches = Callable[[Tensor, Tensor], Tensor]  # (n, a), () or (n,) → (n, a)


def averaged(change: ChangesOfPatches, images: Tensor, sigma: Tensor, size: int) -> Tensor:
    """The mean, over the b×b patches that hold a pixel, of their changes: images (N, H, W), sigma as of `changes`."""
    counts = [_patches_that_hold(length, size, images) for length in images.shape[-2:]]
    return summed(change, images, sigma, size) / (counts[0][:, None] * counts[1])


def summed(change: ChangesOfPatches, images: Tensor, sigma: Tensor, size: int) -> Tensor:
    """The sum, over the b×b patches that hold a pixel, of their changes."""
    count, height, width = images.shape
    last = height - size + 1
    band = max(1, min(last, PATCHES // (count * (width - size + 1))))
    shared = size - 1  # rows that two bands have in common

    def of_band(pixels: Tensor, noise: Tensor) -> Tensor:
        patches = F.unfold(pixels[:, None], size)  # (N, a, P)
        changed = change(patches.mT.flatten(0, 1), noise_of_patches(noise, patches, size))
        return F.fold(changed.unflatten(0, (count, -1)).mT, tuple(pixels.shape[-2:]), size)[:, 0]

    finished, carried = [], images.new_zeros(count, shared, width)
    for first in range(0, last, band):
        rows = slice(first, min(first + band, last) + shared)
        noise = sigma[:, rows] if sigma.shape[1] > 1 else sigma
        work = (images[:, rows], noise)
        total = of_band(*work) if band == last else recomputed(of_band, *work)
        done = total.shape[1] - shared
        total = torch.cat([total[:, :shared] + carried, total[:, shared:]], 1)
        finished.append(total[:, :done])
        carried = total[:, done:]
    return torch.cat([*finished, carried], 1)


def noise_of_patches(sigma: Tensor, patches: Tensor, size: int) -> Tensor:
    """One noise level (), or one per patch (N · P,): of a map the root mean square over the pixels of each."""
    if sigma.numel() == 1:
        return sigma.reshape(())
    if sigma.shape[-2:] == (1, 1):
        return sigma.reshape(-1, 1).expand(len(patches), patches.shape[-1]).reshape(-1)
    squares = F.avg_pool2d(sigma[:, None] ** 2, size, stride=1)
    return squares.sqrt().reshape(len(sigma), -1).expand(len(patches), -1).reshape(-1)


def _patches_that_hold(length: int, size: int, like: Tensor) -> Tensor:
    """How many runs of `size` pixels hold each of `length` pixels in a row."""
    index = torch.arange(length, device=like.device, dtype=like.dtype)
    return torch.minimum(index + 1, length - index).clamp_max(min(size, length - size + 1))
