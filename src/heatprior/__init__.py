"""heatprior: image priors whose density is known in closed form at every noise level."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from heatprior.locks import thread_lock
from heatprior.version import __version__ as __version__

if TYPE_CHECKING:
    from heatprior.errors import HeatpriorError as HeatpriorError
    from heatprior.errors import InvalidInputError as InvalidInputError
    from heatprior.errors import OutputFileError as OutputFileError
    from heatprior.errors import PriorFileError as PriorFileError
    from heatprior.errors import TrainingError as TrainingError
    from heatprior.learning.mixture_training import MixtureConfig as MixtureConfig
    from heatprior.learning.patch_training import TrainingConfig as TrainingConfig
    from heatprior.learning.train import train as train
    from heatprior.noise.estimation import estimate_noise as estimate_noise
    from heatprior.noise.levels import estimate_sigma as estimate_sigma
    from heatprior.noise.profiles import NoiseProfile as NoiseProfile
    from heatprior.noise.stabilisation import PoissonGaussian as PoissonGaussian
    from heatprior.priors.convolutional import ConvolutionalPrior as ConvolutionalPrior
    from heatprior.priors.experts import Experts as Experts
    from heatprior.priors.filters import FilterBank as FilterBank
    from heatprior.priors.gaussian_mixture import GaussianMixturePrior as GaussianMixturePrior
    from heatprior.priors.patch import PatchPrior as PatchPrior
    from heatprior.priors.protocol import DiffusedPrior as DiffusedPrior
    from heatprior.priors.protocol import ImagePrior as ImagePrior
    from heatprior.priors.protocol import tweedie as tweedie
    from heatprior.priors.wavelet import WaveletPrior as WaveletPrior
    from heatprior.restoration import operators as operators
    from heatprior.restoration.adaptation import adapt as adapt
    from heatprior.restoration.denoising import denoise as denoise
    from heatprior.restoration.posterior_samples import posterior_samples as posterior_samples
    from heatprior.restoration.restore import restore as restore
    from heatprior.restoration.surprise import surprise as surprise
    from heatprior.zoo import load as load

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
    "operators": "restoration.operators",
    "posterior_samples": "restoration.posterior_samples",
    "restore": "restoration.restore",
    "surprise": "restoration.surprise",
    "train": "learning.train",
    "tweedie": "priors.protocol",
}

__all__ = list(_HOME)
_importing = thread_lock()  # a fork in the midst of an import would leave a child that waits for its end for ever


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'heatprior' has no attribute {name!r}")
    with _importing:
        module = import_module(f"heatprior.{_HOME[name]}")
    value: object = module if name == "operators" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
