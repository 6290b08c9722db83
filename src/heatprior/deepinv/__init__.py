"""heatprior in deepinv: a `Denoiser` for its plug-and-play and diffusion samplers, a `Prior` for its optimisers.

    denoiser = heatprior.deepinv.Denoiser("mixture")
    model = deepinv.optim.HQS(data_fidelity=L2(), prior=PnP(denoiser=denoiser), ...)

`NoiseEstimator` says how much noise there is. Needs the extra: pip install 'heatprior[deepinv]'. See docs/torch.md for
what is exact and what is not.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import deepinv
import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from heatprior.border.pixels import COLOUR
from heatprior.errors import InvalidInputError
from heatprior.noise.levels import estimate_sigma
from heatprior.torch import PriorModule, load
from heatprior.torch.averaging import sum_changes
from heatprior.torch.module import as_levels, check_images

__all__ = ["Denoiser", "NoiseEstimator", "Prior"]


POSTERIOR = "posterior"


class Denoiser(deepinv.models.Denoiser):
    """A prior, by name, by path or as a module, and how it denoises.

    `steps` is that of `PriorModule.denoise`: the best results, on images of any size, but the average of overlapping
    posterior means is not the posterior mean of any one density, so (D(x) − x) / sigma² is no exact score.
    steps="posterior" is E[X | Y = x] of the density itself, and there that quotient is the exact score: for a prior on
    b×b patches on images of just that size, for a wavelet prior on images whose sides are multiples of its unit.
    """

    def __init__(
        self,
        prior: str | PathLike[str] | PriorModule = "mixture",
        steps: int | str | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__()
        if steps not in (None, 1, POSTERIOR):
            raise InvalidInputError(f"steps is {steps!r}; expected None, 1 or {POSTERIOR!r}")
        self.prior = prior if isinstance(prior, PriorModule) else load(prior)
        self.steps = steps
        self.to(device)

    def forward(self, x: Tensor, sigma: float | Tensor, **_: Any) -> Tensor:
        """Images (B, C, H, W) without noise of standard deviation `sigma`: a number, (B,), (B, 1, 1, 1), or a map."""
        if self.steps is None or isinstance(self.steps, int):
            return self.prior.denoise(x, sigma, self.steps)
        images, levels = mix(x, as_levels(sigma, x))
        clean = self._posterior_mean(images, levels).unflatten(0, x.shape[:2])
        return torch.einsum("cd,bdhw->bchw", torch.linalg.inv(colour_matrix(x)), clean)

    def _posterior_mean(self, images: Tensor, sigma: Tensor) -> Tensor:
        """y + sigma² ∇ log f(y, t) of images (N, H, W), each of one noise level (N,): Tweedie, Eq. (3)."""
        size, squares = self.prior.size, sigma[:, None, None] ** 2
        if size == 1:
            return images + squares * self.prior.score(images, sigma)
        if images.shape[-2:] != (size, size):
            raise InvalidInputError(
                f"the images are {images.shape[-2]}×{images.shape[-1]} pixels but the posterior mean of this prior is "
                f"that of {size}×{size} patches; give patches, a wavelet prior, or leave out steps"
            )
        return images + squares * self.prior.score(images.flatten(1), sigma).view_as(images)


class NoiseEstimator(torch.nn.Module):
    """How much white noise images have, as deepinv's own estimators say it: `heatprior.estimate_sigma` of each.

    `prior` is a name or a path, or None for the usual ones. The result has no gradient.
    """

    def __init__(self, prior: str | PathLike[str] | None = None) -> None:
        super().__init__()
        self.prior = prior

    def forward(self, x: Tensor) -> Tensor:
        """The standard deviation of the noise of images (B, C, H, W), one for all channels of each: (B,)."""
        if x.ndim != 4:
            raise InvalidInputError(f"the images have shape {tuple(x.shape)}; expected (B, C, H, W)")
        level = estimate_sigma(x.detach().cpu().double().numpy(), prior=self.prior, white=1.0)
        sigma = np.sqrt(np.square(level.sigma).mean(axis=1))
        return torch.as_tensor(sigma, dtype=x.dtype, device=x.device)


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
        images, levels = self._mix(x, sigma)
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
        images, levels = self._mix(x, sigma)
        if self.prior.size == 1:
            scores = self.prior.score(images, levels)
        else:
            scores = sum_changes(self.prior.score, images, levels[:, None, None], self.prior.size)
        return -torch.einsum("dc,bdhw->bchw", colour_matrix(x), scores.unflatten(0, x.shape[:2]))

    def _mix(self, x: Tensor, sigma: float | Tensor) -> tuple[Tensor, Tensor]:
        check_images(x, self.prior.size)
        return mix(x, as_levels(sigma, x))


# Colour as three grey images, by the project's own mix, for functions of whole images of one noise level each. The rows
# of the mix are orthogonal, so white noise on the colours is independent noise on the mixed channels, of levels
# ‖row‖ sigma: what is exact for grey images stays exact.


def colour_matrix(x: Tensor) -> Tensor:
    """(C, C): the mix of three channels, or each by itself."""
    return torch.tensor(COLOUR if x.shape[1] == 3 else np.eye(x.shape[1]), dtype=x.dtype, device=x.device)


def mix(x: Tensor, levels: Tensor) -> tuple[Tensor, Tensor]:
    """Channels of (B, C, H, W) as images (B · C, H, W) and their noise levels (B · C,); levels (1 or B, 1, 1, 1)."""
    if levels.shape[1:] != (1, 1, 1):
        raise InvalidInputError(f"sigma has shape {tuple(levels.shape)}; a density has one noise level for each image")
    matrix = colour_matrix(x)
    sigma = levels.to(x.dtype).reshape(-1, 1) * matrix.norm(dim=1)
    return torch.einsum("dc,bchw->bdhw", matrix, x).flatten(0, 1), sigma.expand(len(x), -1).reshape(-1)
