"""heatprior: image priors whose density is known in closed form at every noise level."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heatprior.errors import HeatpriorError, InvalidInputError, OutputFileError, PriorFileError
    from heatprior.priors.experts import Experts
    from heatprior.priors.filters import FilterBank
    from heatprior.priors.patch import PatchPrior
    from heatprior.priors.protocol import DiffusedPrior, Posterior, tweedie
    from heatprior.zoo import load

__version__ = "0.1.0"

# Where each public name lives. They are imported when first used: `import heatprior` costs nothing.
_HOME = {
    "DiffusedPrior": "priors.protocol",
    "Experts": "priors.experts",
    "FilterBank": "priors.filters",
    "HeatpriorError": "errors",
    "InvalidInputError": "errors",
    "OutputFileError": "errors",
    "PatchPrior": "priors.patch",
    "Posterior": "priors.protocol",
    "PriorFileError": "errors",
    "load": "zoo",
    "tweedie": "priors.protocol",
}

__all__ = [
    "DiffusedPrior",
    "Experts",
    "FilterBank",
    "HeatpriorError",
    "InvalidInputError",
    "OutputFileError",
    "PatchPrior",
    "Posterior",
    "PriorFileError",
    "load",
    "tweedie",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'heatprior' has no attribute {name!r}")
    value = getattr(import_module(f"heatprior.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
