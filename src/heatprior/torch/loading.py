"""From a prior of the library, or its file, to a module: one table of kinds."""

from __future__ import annotations

from os import PathLike
from typing import Any

from heatprior.errors import InvalidInputError
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.patch import PatchPrior
from heatprior.priors.wavelet import WaveletPrior
from heatprior.torch.mixture import MixtureModule
from heatprior.torch.module import PriorModule
from heatprior.torch.patch import PatchModule
from heatprior.torch.wavelet import WaveletModule
from heatprior.zoo import load as load_prior

MODULES: dict[type[Any], type[PriorModule]] = {
    PatchPrior: PatchModule,
    GaussianMixturePrior: MixtureModule,
    WaveletPrior: WaveletModule,
}


def load(prior: str | PathLike[str]) -> PriorModule:
    """A shipped prior by its name (`"mixture"`), or any prior by the path of its file, as a module in float64."""
    return from_prior(load_prior(prior))


def from_prior(prior: Any) -> PriorModule:
    """The module of a prior: the same density, its parameters in float64, none of which asks for a gradient."""
    if type(prior) not in MODULES:
        known = ", ".join(kind.__name__ for kind in MODULES)
        raise InvalidInputError(f"there is no torch module of {type(prior).__name__}; expected one of {known}")
    return MODULES[type(prior)](prior)
