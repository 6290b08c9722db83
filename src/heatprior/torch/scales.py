"""Several scales: an image at half its size is denoised by itself, and low frequencies are taken from there.

As restoration/scales.py, where the reasons stand. Cosine transforms are matrix products here: real, differentiable, the
same on every device, and of the coarse half of the frequencies alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import pi, sqrt
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from heatprior.noise_model import ConstantNoise
from heatprior.restoration.recipes import LEAST_SIDE
from heatprior.restoration.scales import crossover_on

Denoising = Callable[[Tensor, Tensor], Tensor]  # images (N, H, W), their noise levels → images


def at_scales(
    denoised: Denoising, images: Tensor, sigma: Tensor, scales: int, size: int, card: Mapping[str, Any]
) -> Tensor:
    """Images (N, H, W) denoised at so many scales, as long as they hold them; sigma is (1 or N, 1, 1) or maps."""
    fine = denoised(images, sigma)
    small = [-(-length // 2) for length in images.shape[-2:]]
    if scales == 1 or min(small) < LEAST_SIDE * size:
        return fine
    down, across = (_cosines(n, m, images) for n, m in zip(small, images.shape[-2:], strict=True))
    factor = sqrt(small[0] * small[1] / (images.shape[-2] * images.shape[-1]))
    own = [_cosines(n, n, images) for n in small]
    reduced = factor * (own[0].mT @ (down @ images @ across.mT) @ own[1])
    coarse = at_scales(denoised, reduced, _halved(sigma, factor), scales - 1, size, card)
    wanted = own[0] @ coarse @ own[1].mT / factor
    return fine + down.mT @ (_part_of_coarse(small, images, sigma, card) * (wanted - down @ fine @ across.mT)) @ across


def _cosines(count: int, length: int, like: Tensor) -> Tensor:
    """The first `count` rows of the orthonormal cosine transform of `length` pixels, (count, length)."""
    frequency, pixel = torch.arange(count)[:, None], torch.arange(length)
    angles = (frequency * (2 * pixel + 1)) % (4 * length)  # whole numbers: exact however long the image is
    rows = sqrt(2.0 / length) * (angles * (pi / (2 * length))).to(torch.float64).cos()
    rows = torch.where(frequency == 0, rows * sqrt(0.5), rows)
    return rows.to(like.device, like.dtype)


def _part_of_coarse(small: list[int], like: Tensor, sigma: Tensor, card: Mapping[str, Any]) -> Tensor:
    """How much of each coarse frequency comes from the coarse image, (1 or N, h, w)."""
    levels = sigma.detach().flatten(1)
    middle = (levels.amin(1) * levels.amax(1)).sqrt().tolist()
    found = torch.tensor([crossover_on(card, ConstantNoise(level)) for level in middle], dtype=torch.float64)
    edge, width = (part.to(like.device, like.dtype)[:, None, None] for part in found.unbind(1))
    down, across = (torch.arange(n, dtype=like.dtype, device=like.device) / n for n in small)
    return torch.sigmoid((edge - torch.hypot(down[:, None], across)) / width)


def _halved(sigma: Tensor, factor: float) -> Tensor:
    """The noise of the images at half their size: of maps the root mean square over 2×2 pixels, times `factor`."""
    if sigma.shape[-2:] == (1, 1):
        return factor * sigma
    height, width = sigma.shape[-2:]
    squares = F.pad(sigma[:, None] ** 2, (0, width % 2, 0, height % 2), mode="replicate")
    return factor * F.avg_pool2d(squares, 2)[:, 0].sqrt()
