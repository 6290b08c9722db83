"""The proximal map of −log f for the wavelet prior: one number at a time, since the basis is orthonormal.

prox(y) = argmin_x gamma (−log f(x, t)) + ½ ‖x − y‖² is, for each coefficient, argmin_c −gamma log psi(xi c, t) + ½ (c −
c_y)², and leaves what is off the span as it is. That function of c may have several minima: the best place of a grid,
finer than the experts are wide, is taken, and Newton's steps go on from there. Where two minima are equally deep the
map jumps, as the true one does.
"""

from __future__ import annotations

import torch
from torch import Tensor

from heatprior.torch import experts
from heatprior.torch.chunks import in_chunks
from heatprior.torch.wavelet import WaveletModule

PLACES = 1024  # of the grid
BEYOND = 6.0  # widths beyond the outermost mean that it reaches
STEPS = 8  # of Newton


def prox(module: WaveletModule, y: Tensor, sigma: float, gamma: float) -> Tensor:
    """Of images (..., H, W) whose sides are multiples of `module.unit`, in the type of the parameters; no gradient."""
    with torch.no_grad():
        model = module.model(module.logits.dtype)
        images = y.to(module.logits.dtype)
        moves = []
        for j, c in enumerate(module.coefficients(model, images)):
            xi, weights = model.norms[j], model.log_weights[j : j + 1]
            variance = model.base**2 + (xi * sigma) ** 2
            reach = (float(model.means[-1]) + BEYOND * float(variance.sqrt())) / float(xi)
            reach = max(reach, float(c.abs().max()))
            places = torch.linspace(-reach, reach, PLACES, dtype=c.dtype, device=c.device)
            logs = experts.log_density((xi * places)[:, None], variance, weights, model.means)[:, 0]

            def best(some: Tensor, _: Tensor, places: Tensor = places, logs: Tensor = logs) -> tuple[Tensor]:
                values = 0.5 * (some[:, None] - places) ** 2 - gamma * logs
                return (places[values.argmin(-1)],)

            def refined(pair: Tensor, _: Tensor, xi: Tensor = xi, weights: Tensor = weights) -> tuple[Tensor]:
                start, observed = pair[:, :1], pair[:, 1:]
                variance, cell = model.base**2 + (xi * sigma) ** 2, 2.0 * reach / (PLACES - 1)
                x = start
                for _step in range(STEPS):
                    found = experts.moments(xi * x, variance, weights, model.means)
                    slope = x - observed - gamma * xi * (found.mean - xi * x) / variance
                    bend = 1.0 - gamma * xi**2 * (found.variance - variance) / variance**2
                    x = torch.minimum(torch.maximum(x - slope / bend.clamp_min(1e-3), start - cell), start + cell)
                return (x[:, 0],)

            nothing = c.new_zeros(())
            flat = c.reshape(-1)
            start = in_chunks(best, flat, nothing, module.at_once(PLACES, c.device))[0]
            pairs = torch.stack([start, flat], -1)
            found = in_chunks(refined, pairs, nothing, module.at_once(len(model.means), c.device))[0]
            moves.append(found.reshape(c.shape) - c)
        return (images + module.synthesised(model, moves)).to(y.dtype)
