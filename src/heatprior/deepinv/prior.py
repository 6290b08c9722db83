"""A prior of deepinv that knows its own value: g(x) = −log f(x, t), its gradient, and for wavelets its prox."""

from __future__ import annotations

from os import PathLike
from typing import Any

import deepinv
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from heatprior.deepinv.mixing import mix_of, mixed
from heatprior.torch import PriorModule, load
from heatprior.torch.arguments import as_levels, check_images
from heatprior.torch.averaging import summed

ROWS = 16  # of patches whose densities are in memory at once


class Prior(deepinv.optim.Prior):
    """g(x) for images (B, C, H, W) at the noise level `sigma` that deepinv hands on as the prior's parameter.

    For a wavelet prior it is −log of the density of whole images, up to a constant, and −grad its exact score. For a
    prior on patches it is −Σ log f(patch, t) over all overlapping patches, the regulariser of EPLL: an exact function
    with its exact gradient, but no density of images is behind it. Colours go through the project's own mix.
    """

    def __init__(self, prior: str | PathLike[str] | PriorModule = "wavelet-density") -> None:
        super().__init__()
        self.prior = prior if isinstance(prior, PriorModule) else load(prior)
        self.explicit_prior = True

    def fn(self, x: Tensor, sigma: float | Tensor, *_: Any, **__: Any) -> Tensor:
        """g(x), one number per image: (B,)."""
        images, levels = self._mixed(x, sigma)
        if self.prior.size == 1:
            logs = self.prior.log_prob(images, levels)
        else:
            size = self.prior.size
            logs = x.new_zeros(())
            for first in range(0, images.shape[1] - size + 1, ROWS):
                patches = F.unfold(images[:, None, first : first + ROWS + size - 1], size).mT  # (N, P, a)
                logs = logs + self.prior.log_prob(patches, levels[:, None].expand(patches.shape[:2])).sum(-1)
        return -logs.reshape(x.shape[:2]).sum(1)

    def grad(self, x: Tensor, sigma: float | Tensor, *_: Any, **__: Any) -> Tensor:
        """∇ g(x), in closed form: (B, C, H, W)."""
        images, levels = self._mixed(x, sigma)
        if self.prior.size == 1:
            scores = self.prior.score(images, levels)
        else:
            scores = summed(self.prior.score, images, levels[:, None, None], self.prior.size)
        return -torch.einsum("dc,bdhw->bchw", mix_of(x), scores.unflatten(0, x.shape[:2]))

    def prox(self, x: Tensor, sigma: float | Tensor, *args: Any, gamma: float = 1.0, **kwargs: Any) -> Tensor:
        """argmin_u gamma g(u) + ½ ‖u − x‖².

        Of a wavelet prior on grey images of one noise level, coefficient by coefficient, to the last digits. Otherwise
        there is no closed form, and deepinv's own iteration is what you get, with its arguments.
        """
        level = as_levels(sigma, x)
        is_grey_of_one_level = x.shape[1] != 3 and level.numel() == 1
        found = self.prior.prox(x, float(level), float(gamma)) if is_grey_of_one_level else None
        return super().prox(x, sigma, *args, gamma=gamma, **kwargs) if found is None else found

    def _mixed(self, x: Tensor, sigma: float | Tensor) -> tuple[Tensor, Tensor]:
        check_images(x, self.prior.size)
        return mixed(x, as_levels(sigma, x))
