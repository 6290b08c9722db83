"""The proximal map of −log f for the wavelet prior: one number at a time, since the basis is orthonormal.

prox(y) = argmin_x gamma (−log f(x, t)) + ½ ‖x − y‖² is, for each coefficient, argmin_c −gamma log psi(xi c, t) + ½ (c −
c_y)², and leaves what is off the span as it is. That function of c may have several minima: the best place of a grid,
finer than the experts are wide, is taken, and Newton's steps go on from there. Where two minima are equally deep the
map jumps, as the true one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from heatprior.torch import experts

if TYPE_CHECKING:
    from heatprior.torch.wavelet import WaveletModule

PLACES = 1024  # of the grid
BEYOND = 6.0  # widths beyond the outermost mean that it reaches
STEPS = 8  # of Newton


def prox_of_images(module: WaveletModule, y: Tensor, sigma: float, gamma: float) -> Tensor:
    """Of images (..., H, W) whose sides are multiples of `module.unit`, in the type of the parameters; no gradient."""
    with torch.no_grad():
        model = module.model(module.logits.dtype)
        images = y.to(module.logits.dtype)
        at_once = (module.at_once(PLACES, y.device), module.at_once(len(model.means), y.device))
        moves = []
        for j, c in enumerate(module.coefficients(model, images)):
            variance = model.base**2 + (model.norms[j] * sigma) ** 2
            band = Band(model.norms[j], variance, model.log_weights[j : j + 1], model.means)
            moves.append(prox_of_band(band, c.reshape(-1), gamma, at_once).reshape(c.shape) - c)
        return (images + module.synthesised(model, moves)).to(y.dtype)


class Band(NamedTuple):
    """What the prior knows of the coefficients c of one band: −log psi(xi c, t)."""

    norm: Tensor  # xi, ()
    variance: Tensor  # of the noisy expert, ()
    log_weights: Tensor  # (1, L)
    means: Tensor  # (L,)

    def log_density(self, c: Tensor) -> Tensor:
        """log psi(xi c, t), up to a constant: (n,)."""
        return experts.log_density((self.norm * c)[:, None], self.variance, self.log_weights, self.means)[:, 0]

    def derivatives(self, c: Tensor) -> tuple[Tensor, Tensor]:
        """First and second of log psi(xi c, t) in c: (n,) each."""
        u = self.norm * c
        found = experts.moments(u[:, None], self.variance, self.log_weights, self.means)
        slope = self.norm * (found.mean[:, 0] - u) / self.variance
        return slope, self.norm**2 * (found.variance[:, 0] - self.variance) / self.variance**2

    def grid(self, furthest: float) -> Tensor:
        """Places over all the mass of the expert, and as far out as any coefficient."""
        reach = (float(self.means[-1]) + BEYOND * float(self.variance.sqrt())) / float(self.norm)
        reach = max(reach, furthest)
        return torch.linspace(-reach, reach, PLACES, dtype=self.means.dtype, device=self.means.device)


def best_places(band: Band, places: Tensor, c: Tensor, gamma: float) -> Tensor:
    """The place of the grid where ½ (place − c)² − gamma log psi is least, for each of c (n,)."""
    values = 0.5 * (c[:, None] - places) ** 2 - gamma * band.log_density(places)
    return places[values.argmin(-1)]


def refined(band: Band, start: Tensor, c: Tensor, gamma: float, cell: float) -> Tensor:
    """Newton's steps from `start` (n,), never further from it than a `cell` of the grid."""
    x = start
    for _ in range(STEPS):
        slope, bend = band.derivatives(x)
        step = (x - c - gamma * slope) / (1.0 - gamma * bend).clamp_min(1e-3)
        x = torch.minimum(torch.maximum(x - step, start - cell), start + cell)
    return x


def prox_of_band(band: Band, c: Tensor, gamma: float, at_once: tuple[int, int]) -> Tensor:
    """argmin_x ½ (x − c)² − gamma log psi(xi x, t) of coefficients (n,), so many at once on the grid and by Newton."""
    places = band.grid(float(c.abs().max()))
    cell = float(places[1] - places[0])
    start = torch.cat([best_places(band, places, some, gamma) for some in c.split(at_once[0])])
    pairs = zip(start.split(at_once[1]), c.split(at_once[1]), strict=True)
    return torch.cat([refined(band, place, some, gamma, cell) for place, some in pairs])
