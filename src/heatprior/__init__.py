"""heatprior: image priors whose density is known in closed form at every noise level."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from heatprior.version import __version__ as __version__

if TYPE_CHECKING:
    from heatprior.errors import (
        HeatpriorError,
        InvalidInputError,
        OutputFileError,
        PriorFileError,
        TrainingError,
    )
    from heatprior.learning.mixture_training import MixtureConfig
    from heatprior.learning.patch_training import TrainingConfig
    from heatprior.learning.train import train
    from heatprior.noise.estimation import estimate_noise
    from heatprior.noise.levels import estimate_sigma
    from heatprior.noise.profiles import NoiseProfile
    from heatprior.noise.stabilisation import PoissonGaussian
    from heatprior.priors.convolutional import ConvolutionalPrior
    from heatprior.priors.experts import Experts
    from heatprior.priors.filters import FilterBank
    from heatprior.priors.gaussian_mixture import GaussianMixturePrior
    from heatprior.priors.patch import PatchPrior
    from heatprior.priors.protocol import DiffusedPrior, ImagePrior, tweedie
    from heatprior.priors.wavelet import WaveletPrior
    from heatprior.restoration import operators
    from heatprior.restoration.adaptation import adapt
    from heatprior.restoration.denoising import denoise
    from heatprior.restoration.posterior_samples import posterior_samples
    from heatprior.restoration.restore import restore
    from heatprior.restoration.surprise import surprise
    from heatprior.zoo import load

# Where each public name lives. They are imported when first used: `import heatprior` costs nothing.
_HOME = {
    "ConvolutionalPrior": "priors.convolutional",
    "DiffusedPrior": "priors.protocol",
    "Experts": "priors.experts",
    "FilterBank": "priors.filters",
    "GaussianMixturePrior": "priors.gaussian_mixture",
    "HeatpriorError": "errors",
    "ImagePrior": "priors.protocol",
    "InvalidInputError": "errors",
    "MixtureConfig": "learning.mixture_training",
    "NoiseProfile": "noise.profiles",
    "OutputFileError": "errors",
    "PatchPrior": "priors.patch",
    "PoissonGaussian": "noise.stabilisation",
    "PriorFileError": "errors",
    "TrainingConfig": "learning.patch_training",
    "TrainingError": "errors",
    "WaveletPrior": "priors.wavelet",
    "adapt": "restoration.adaptation",
    "denoise": "restoration.denoising",
    "estimate_noise": "noise.estimation",
    "estimate_sigma": "noise.levels",
    "load": "zoo",
    "operators": "restoration",
    "posterior_samples": "restoration.posterior_samples",
    "restore": "restoration.restore",
    "surprise": "restoration.surprise",
    "train": "learning.train",
    "tweedie": "priors.protocol",
}

__all__ = [
    "ConvolutionalPrior",
    "DiffusedPrior",
    "Experts",
    "FilterBank",
    "GaussianMixturePrior",
    "HeatpriorError",
    "ImagePrior",
    "InvalidInputError",
    "MixtureConfig",
    "NoiseProfile",
    "OutputFileError",
    "PatchPrior",
    "PoissonGaussian",
    "PriorFileError",
    "TrainingConfig",
    "TrainingError",
    "WaveletPrior",
    "adapt",
    "denoise",
    "estimate_noise",
    "estimate_sigma",
    "load",
    "operators",
    "posterior_samples",
    "restore",
    "surprise",
    "train",
    "tweedie",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'heatprior' has no attribute {name!r}")
    if name == "operators":
        value: object = import_module("heatprior.restoration.operators")
    else:
        value = getattr(import_module(f"heatprior.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
