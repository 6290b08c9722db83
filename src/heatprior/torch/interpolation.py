"""Values that depend on the noise level: straight in log sigma between the nodes of a card, constant beyond them."""

from __future__ import annotations

import torch
from torch import Tensor

from heatprior.priors.schedules import LEAST_SIGMA


def interpolated(sigma: Tensor, logarithms: tuple[float, ...], values: tuple[float, ...]) -> Tensor:
    """Values (m,), given at nodes of log sigma (m,), at each sigma: of its shape, and with a gradient in it."""
    place = sigma.clamp_min(LEAST_SIGMA).log()
    result = torch.full_like(place, values[0])
    for i in range(len(values) - 1):
        part = ((place - logarithms[i]) / (logarithms[i + 1] - logarithms[i])).clamp(0.0, 1.0)
        result = result + part * (values[i + 1] - values[i])
    return result
