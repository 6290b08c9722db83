"""The same priors as torch modules: differentiable in image, noise level and parameters, on any device.

    import heatprior.torch as ht
    module = ht.load("mixture")            # reads the same files; from_prior(prior) takes one that is loaded
    clean = module.denoise(x, sigma)       # (B, C, H, W)

Needs the extra: pip install 'heatprior[torch]'. See docs/torch.md.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

from heatprior.errors import InvalidInputError
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.patch import PatchPrior
from heatprior.priors.wavelet import WaveletPrior
from heatprior.torch.mixture import MixtureModule
from heatprior.torch.module import Posterior, PriorModule
from heatprior.torch.patch import PatchModule
from heatprior.torch.wavelet import WaveletModule
from heatprior.zoo import load as load_prior

__all__ = ["MixtureModule", "PatchModule", "Posterior", "PriorModule", "WaveletModule", "from_prior", "load"]

MODULES: dict[type[Any], type[PriorModule]] = {
    PatchPrior: PatchModule,
    GaussianMixturePrior: MixtureModule,
    WaveletPrior: WaveletModule,
}


def load(prior: str | PathLike[str]) -> PriorModule:
    """Load a shipped prior by its name (`"mixture"`), or any prior by the path of its file, as a module in float64."""
    return from_prior(load_prior(prior))


def from_prior(prior: Any) -> PriorModule:
    """Make the module of a prior: the same density, its parameters in float64, none of which requires a gradient."""
    if type(prior) not in MODULES:
        known = ", ".join(kind.__name__ for kind in MODULES)
        raise InvalidInputError(f"there is no torch module of {type(prior).__name__}; expected one of {known}")
    return MODULES[type(prior)](prior)
