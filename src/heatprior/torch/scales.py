"""Several scales: an image at half its size is denoised by itself, and low frequencies are taken from there.

As restoration/scales.py, where the reasons stand. Cosine transforms are matrix products here: real, differentiable, the
same on every device, and of the coarse half of the frequencies alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log, pi, sqrt
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from heatprior.noise_model import ConstantNoise
from heatprior.restoration.recipes import LEAST_SIDE
from heatprior.restoration.scales import (
    BETWEEN,
    CARD_ENTRY,
    LEAST_SIGMA,
    Crossover,
    crossover_between,
    crossover_on,
)
from heatprior.torch.interpolation import interpolated

Between = Callable[[Tensor], Tensor]  # estimates (N, H, W) before the next step → better ones
Denoising = Callable[[Tensor, Tensor, Between | None], Tensor]  # images (N, H, W), their noise levels → images
PartOfCoarse = Callable[[list[int], Tensor], Tensor]  # (h, w) of the coarse image, noise levels → (1 or N, h, w)


class Crossovers(NamedTuple):
    """The edge, width and height of transitions, (m,) each, at logarithms of sigma (m,): see `Crossover`."""

    logarithms: tuple[float, ...]
    edges: tuple[float, ...]
    widths: tuple[float, ...]
    heights: tuple[float, ...]

    @classmethod
    def on(cls, card: Mapping[str, Any]) -> Crossovers:
        """What a prior's card says, checked as the library does."""
        return cls._at(card.get(CARD_ENTRY), lambda sigma: crossover_on(card, ConstantNoise(sigma)))

    @classmethod
    def between(cls, card: Mapping[str, Any]) -> Crossovers | None:
        """The same for the merging after every step but the last, if there is any."""
        if card.get(BETWEEN) is None:
            return None
        return cls._at(card[BETWEEN], lambda sigma: crossover_between(card, ConstantNoise(sigma)) or Crossover())

    @classmethod
    def _at(cls, entry: Any, found: Callable[[float], Crossover]) -> Crossovers:
        at_one = found(1.0)  # which refuses what is no entry
        sigmas = [1.0] if entry is None else [float(sigma) for sigma in entry["sigmas"]]
        each = [at_one] if entry is None else [found(sigma) for sigma in sigmas]
        edges, widths, heights = zip(*each, strict=True)
        return cls(tuple(map(log, sigmas)), edges, widths, heights)

    def part_of_coarse(self, small: list[int], sigma: Tensor) -> Tensor:
        """How much of each coarse frequency comes from the coarse image; of a map of levels, for its middle one."""
        levels = sigma.clamp_min(LEAST_SIGMA).flatten(1)
        middle = (levels.amin(1) * levels.amax(1)).sqrt()[:, None, None]
        edge, width, height = (
            interpolated(middle, self.logarithms, values) for values in (self.edges, self.widths, self.heights)
        )
        return height * transition(small, edge, width)


def at_scales(
    denoised: Denoising,
    images: Tensor,
    sigma: Tensor,
    scales: int,
    part_of_coarse: PartOfCoarse,
    part_between: PartOfCoarse | None = None,
) -> Tensor:
    """Images (N, H, W) denoised at so many scales; sigma is (1 or N, 1, 1) or maps."""
    if scales == 1:
        return denoised(images, sigma, None)
    small = [-(-length // 2) for length in images.shape[-2:]]
    down, across = (_cosines(n, m, images) for n, m in zip(small, images.shape[-2:], strict=True))
    factor = sqrt(small[0] * small[1] / (images.shape[-2] * images.shape[-1]))
    own = [_cosines(n, n, images) for n in small]
    reduced = factor * (own[0].mT @ (down @ images @ across.mT) @ own[1])
    coarse = at_scales(denoised, reduced, _halved(sigma, factor), scales - 1, part_of_coarse, part_between)
    wanted = own[0] @ coarse @ own[1].mT / factor

    def merged(fine: Tensor, part: PartOfCoarse) -> Tensor:
        return fine + down.mT @ (part(small, sigma) * (wanted - down @ fine @ across.mT)) @ across

    between = None if part_between is None else lambda fine: merged(fine, part_between)
    return merged(denoised(images, sigma, between), part_of_coarse)


def scales_of(height: int, width: int, most: int, size: int) -> int:
    """At how many scales the library denoises an image, if patches are size×size."""
    scales, shorter = 1, -(-min(height, width) // 2)
    while scales < most and shorter >= LEAST_SIDE * size:
        scales, shorter = scales + 1, -(-shorter // 2)
    return scales


def transition(small: list[int], edge: Tensor, width: Tensor) -> Tensor:
    """From one at low frequencies to zero, over the highest of either axis: (..., h, w), edge and width (..., 1, 1)."""
    down, across = (torch.arange(n, dtype=edge.dtype, device=edge.device) / n for n in small)
    return torch.sigmoid((edge - torch.hypot(down[:, None], across)) / width)


def _cosines(count: int, length: int, like: Tensor) -> Tensor:
    """The first `count` rows of the orthonormal cosine transform of `length` pixels, (count, length)."""
    frequency, pixel = torch.arange(count)[:, None], torch.arange(length)
    turns = (frequency * (2 * pixel + 1)) % (4 * length)  # whole numbers: exact however long the image is
    rows = sqrt(2.0 / length) * (turns.to(torch.float64) * (pi / (2 * length))).cos()
    rows = torch.where(frequency == 0, rows * sqrt(0.5), rows)
    return rows.to(like.device, like.dtype)


def _halved(sigma: Tensor, factor: float) -> Tensor:
    """The noise of the images at half their size: of maps the root mean square over 2×2 pixels, times `factor`."""
    if sigma.shape[-2:] == (1, 1):
        return factor * sigma
    height, width = sigma.shape[-2:]
    squares = F.pad(sigma[:, None] ** 2, (0, width % 2, 0, height % 2), mode="replicate")
    return factor * F.avg_pool2d(squares, 2)[:, 0].sqrt()
