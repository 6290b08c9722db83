"""Any prior as a denoiser of deepinv: forward(x, sigma) on images (B, C, H, W)."""

from __future__ import annotations

from os import PathLike
from typing import Any

import deepinv
import torch
from torch import Tensor

from heatprior.deepinv.mixing import channel_by_channel
from heatprior.errors import InvalidInputError
from heatprior.torch import PriorModule, load
from heatprior.torch.arguments import as_levels

METHODS = ("hqs", "eb", "posterior")


class Denoiser(deepinv.models.Denoiser):
    """A prior, by name, by path or as a module, and how it denoises.

    "hqs" and "eb" are those of `PriorModule.denoise`: the best results, on images of any size, but the average of
    overlapping posterior means is not the posterior mean of any one density, so (D(x) − x) / sigma² is no exact score.
    "posterior" is E[X | Y = x] of the density itself, and there that quotient is the exact score: for a prior on b×b
    patches on images of just that size, for a wavelet prior on images whose sides are multiples of its unit.
    """

    def __init__(
        self,
        prior: str | PathLike[str] | PriorModule = "mixture",
        method: str = "hqs",
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__()
        if method not in METHODS:
            raise InvalidInputError(f"method is {method!r}; expected {', '.join(map(repr, METHODS))}")
        self.prior = prior if isinstance(prior, PriorModule) else load(prior)
        self.method = method
        self.to(device)

    def forward(self, x: Tensor, sigma: float | Tensor, **_: Any) -> Tensor:
        """Images (B, C, H, W) without noise of standard deviation `sigma`: a number, (B,), (B, 1, 1, 1), or a map."""
        if self.method != "posterior":
            return self.prior.denoise(x, sigma, self.method)
        return channel_by_channel(self._posterior_mean, x, as_levels(sigma, x))

    def _posterior_mean(self, images: Tensor, sigma: Tensor) -> Tensor:
        """y + sigma² ∇ log f(y, t) of images (N, H, W), each of one noise level (N,): Tweedie, Eq. (3)."""
        size, squares = self.prior.size, sigma[:, None, None] ** 2
        if size == 1:
            return images + squares * self.prior.score(images, sigma)
        if images.shape[-2:] != (size, size):
            raise InvalidInputError(
                f"the images are {images.shape[-2]}×{images.shape[-1]} pixels but the posterior mean of this prior is "
                f"that of {size}×{size} patches; give patches, a wavelet prior, or method 'hqs'"
            )
        return images + squares * self.prior.score(images.flatten(1), sigma).view_as(images)
