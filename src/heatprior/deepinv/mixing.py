"""Colour as three grey images, by the project's own mix, for functions of whole images of one noise level each.

The rows of the mix are orthogonal, so white noise on the colours is independent noise on the mixed channels, of levels
‖row‖ sigma: what is exact for grey images stays exact.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from heatprior.errors import InvalidInputError
from heatprior.pixels.channels import COLOUR


def mix_of(x: Tensor) -> Tensor:
    """(C, C): the mix of three channels, or each by itself."""
    return torch.tensor(COLOUR if x.shape[1] == 3 else np.eye(x.shape[1]), dtype=x.dtype, device=x.device)


def mixed(x: Tensor, levels: Tensor) -> tuple[Tensor, Tensor]:
    """Channels of (B, C, H, W) as images (B · C, H, W) and their noise levels (B · C,); levels (1 or B, 1, 1, 1)."""
    if levels.shape[1:] != (1, 1, 1):
        raise InvalidInputError(f"sigma has shape {tuple(levels.shape)}; a density has one noise level for each image")
    mix = mix_of(x)
    sigma = levels.to(x.dtype).reshape(-1, 1) * mix.norm(dim=1)
    return torch.einsum("dc,bchw->bdhw", mix, x).flatten(0, 1), sigma.expand(len(x), -1).reshape(-1)


def channel_by_channel(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, levels: Tensor) -> Tensor:
    """`function` of mixed images (N, H, W) and their levels (N,), mixed back."""
    images, sigma = mixed(x, levels)
    result = function(images, sigma).unflatten(0, x.shape[:2])
    return torch.einsum("cd,bdhw->bchw", torch.linalg.inv(mix_of(x)), result)
