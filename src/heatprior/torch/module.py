"""What all modules share: they are the priors of the library, and turn back into them.

Parameters are float64 as loaded, and none asks for a gradient until the user says so (`requires_grad_()`). What acts on
patches computes in the type of the parameters and answers in that of the patches; what acts on images computes in that
of the images. Where no gradient is asked for, on the CPU, the compiled kernels of the library do the work.
"""

from __future__ import annotations

from abc import abstractmethod
from os import PathLike
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from heatprior.kernels.grids import EVERY, Grid
from heatprior.restoration.recipes import usual_scales
from heatprior.torch import compiled
from heatprior.torch.arguments import Sigma, as_levels, check_images
from heatprior.torch.scales import Crossovers
from heatprior.torch.splitting import Recipe, SplittingSchedule, check_method, denoise_images

CACHE, MEMORY = 1 << 19, 1 << 25  # numbers of a chunk, on the CPU and elsewhere


class Posterior(NamedTuple):
    """Mean and variance, pixel by pixel, of the clean patch or image given the noisy one."""

    mean: Tensor
    variance: Tensor


class PriorModule(nn.Module):
    """A prior as a module; `card` says where it comes from, `room` how many numbers a chunk of patches may take.

    Without it, as many as fit into the cache of a core on the CPU, and as keep a GPU busy elsewhere.
    """

    room: int | None = None

    def __init__(self, prior: Any) -> None:
        super().__init__()
        self.card = dict(prior.card)
        self.schedule = SplittingSchedule.of(prior.schedules)
        self.crossovers, self.between = Crossovers.on(prior.card), Crossovers.between(prior.card)
        self._prior = prior
        self._take(prior)
        self._known = self._state()

    @abstractmethod
    def _take(self, prior: Any) -> None:
        """Make parameters and buffers of what the prior is made of."""

    @abstractmethod
    def _made(self) -> Any:
        """A prior of the library with the parameters of now."""

    @property
    @abstractmethod
    def size(self) -> int:
        """b, the side of a patch; 1 for a prior of whole images."""

    @abstractmethod
    def log_prob(self, y: Tensor, sigma: Sigma) -> Tensor:
        """log f(y, t)."""

    @abstractmethod
    def score(self, y: Tensor, sigma: Sigma) -> Tensor:
        """∇ log f(y, t)."""

    @abstractmethod
    def posterior(self, y: Tensor, sigma: Sigma) -> Posterior:
        """Mean and variance of the clean patch or image."""

    @abstractmethod
    def changes(self, images: Tensor, sigma: Tensor, grid: Grid = EVERY) -> Tensor:
        """By how much one step of empirical Bayes changes images (N, H, W); sigma is (1 or N, 1, 1) or maps.

        Patches that overlap are averaged: all of them, or those that lie on a `grid`.
        """

    def prox(self, y: Tensor, sigma: float, gamma: float) -> Tensor | None:  # noqa: ARG002
        """argmin_x −gamma log f(x, t) + ½ ‖x − y‖² of whole images (..., H, W); None where no closed form is known."""
        return None

    def denoise(self, x: Tensor, sigma: Sigma, method: str = "hqs", scales: int | None = None) -> Tensor:
        """Images (B, C, H, W), grey levels scaled to [0, 1], without their noise: of the same shape and type.

        `sigma` is the standard deviation of the noise: a number, one per image (B,) or (B, 1, 1, 1), or a map that
        broadcasts to the images. `method` is "eb", the posterior means of all patches averaged, or "hqs", that in
        several steps at falling levels. `scales` says at how many the image is denoised; all it holds by default.
        All as `heatprior.denoise`. Three channels are colours.
        """
        check_method(method, scales)
        check_images(x, self.size)
        levels = as_levels(sigma, x)
        if x.dtype == torch.float32 and compiled.may_do(self, x, levels) and compiled.covers(levels):
            return compiled.denoised(self.to_prior(), x, levels, method, scales)
        schedule = self.schedule if method == "hqs" else None
        most = scales or usual_scales(self._prior, method)
        return denoise_images(self.changes, x, levels, Recipe(schedule, most, self.size, self.crossovers, self.between))

    def forward(self, x: Tensor, sigma: Sigma, method: str = "hqs", scales: int | None = None) -> Tensor:
        """As `denoise`."""
        return self.denoise(x, sigma, method, scales)

    def at_once(self, numbers: int, device: torch.device) -> int:
        """How many patches (or responses) a chunk may hold if each takes so many numbers."""
        return max(1, (self.room or (CACHE if device.type == "cpu" else MEMORY)) // numbers)

    def to_prior(self) -> Any:
        """The prior of the library with the parameters of now, which needs no torch."""
        now = self._state()
        if not all(map(torch.equal, now, self._known)):
            self._prior, self._known = self._made(), now
        return self._prior

    def save(self, path: str | PathLike[str]) -> None:
        """Write the prior as a file that `heatprior.load` reads, `card` included."""
        prior = self.to_prior()
        prior.card.clear()
        prior.card.update(self.card)
        prior.save(path)

    def _state(self) -> list[Tensor]:
        return [tensor.detach().to("cpu", torch.float64, copy=True) for tensor in self.state_dict().values()]

    def _add_parameter(self, name: str, values: Any) -> None:
        """A parameter in float64 that asks for no gradient."""
        tensor = torch.tensor(values, dtype=torch.float64)
        self.register_parameter(name, nn.Parameter(tensor, requires_grad=False))

    def _add_buffer(self, name: str, values: Any, *, persistent: bool = True) -> None:
        self.register_buffer(name, torch.tensor(values, dtype=torch.float64), persistent=persistent)
