"""heatprior: image priors whose density is known in closed form at every noise level."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from heatprior.version import __version__ as __version__

if TYPE_CHECKING:
    from heatprior.errors import (
        DataMissingError,
        HeatpriorError,
        ImageFileError,
        InvalidInputError,
        OutputFileError,
        PriorFileError,
        TrainingError,
    )
    from heatprior.learning.mixture_training import MixtureConfig
    from heatprior.learning.patch_training import TrainingConfig
    from heatprior.learning.train import train
    from heatprior.noise.estimation import NoiseReport, estimate_noise, noise_profile
    from heatprior.noise.levels import NoiseLevel, estimate_sigma
    from heatprior.noise.local_noise import LocalNoise, noise_map
    from heatprior.noise.profiles import NoiseProfile
    from heatprior.priors.convolutional import ConvolutionalPrior
    from heatprior.priors.experts import Experts
    from heatprior.priors.filters import FilterBank
    from heatprior.priors.gaussian_mixture import GaussianMixturePrior
    from heatprior.priors.patch import PatchPrior
    from heatprior.priors.protocol import DiffusedPrior, ImagePrior, Posterior, tweedie
    from heatprior.priors.wavelet import WaveletPrior
    from heatprior.restoration.adaptation import adapt
    from heatprior.restoration.denoising import denoise
    from heatprior.restoration.denoising_errors import DenoisedWithError, predicted_psnr
    from heatprior.restoration.operators.blur import Blur
    from heatprior.restoration.operators.downsample import Downsample
    from heatprior.restoration.operators.fourier import Fourier
    from heatprior.restoration.operators.mask import Mask
    from heatprior.restoration.plug_and_play import RestoringStep
    from heatprior.restoration.posterior_samples import posterior_samples
    from heatprior.restoration.restore import restore
    from heatprior.restoration.surprise import Surprise, surprise
    from heatprior.zoo import load

# Where each public name lives. They are imported when first used: `import heatprior` costs nothing.
_HOME = {
    "Blur": "restoration.operators.blur",
    "ConvolutionalPrior": "priors.convolutional",
    "DataMissingError": "errors",
    "DenoisedWithError": "restoration.denoising_errors",
    "DiffusedPrior": "priors.protocol",
    "Downsample": "restoration.operators.downsample",
    "Experts": "priors.experts",
    "FilterBank": "priors.filters",
    "Fourier": "restoration.operators.fourier",
    "GaussianMixturePrior": "priors.gaussian_mixture",
    "HeatpriorError": "errors",
    "ImageFileError": "errors",
    "ImagePrior": "priors.protocol",
    "InvalidInputError": "errors",
    "LocalNoise": "noise.local_noise",
    "Mask": "restoration.operators.mask",
    "MixtureConfig": "learning.mixture_training",
    "NoiseLevel": "noise.levels",
    "NoiseProfile": "noise.profiles",
    "NoiseReport": "noise.estimation",
    "OutputFileError": "errors",
    "PatchPrior": "priors.patch",
    "Posterior": "priors.protocol",
    "PriorFileError": "errors",
    "RestoringStep": "restoration.plug_and_play",
    "Surprise": "restoration.surprise",
    "TrainingConfig": "learning.patch_training",
    "TrainingError": "errors",
    "WaveletPrior": "priors.wavelet",
    "adapt": "restoration.adaptation",
    "denoise": "restoration.denoising",
    "estimate_noise": "noise.estimation",
    "estimate_sigma": "noise.levels",
    "load": "zoo",
    "noise_map": "noise.local_noise",
    "noise_profile": "noise.estimation",
    "posterior_samples": "restoration.posterior_samples",
    "predicted_psnr": "restoration.denoising_errors",
    "restore": "restoration.restore",
    "surprise": "restoration.surprise",
    "train": "learning.train",
    "tweedie": "priors.protocol",
}

__all__ = [
    "Blur",
    "ConvolutionalPrior",
    "DataMissingError",
    "DenoisedWithError",
    "DiffusedPrior",
    "Downsample",
    "Experts",
    "FilterBank",
    "Fourier",
    "GaussianMixturePrior",
    "HeatpriorError",
    "ImageFileError",
    "ImagePrior",
    "InvalidInputError",
    "LocalNoise",
    "Mask",
    "MixtureConfig",
    "NoiseLevel",
    "NoiseProfile",
    "NoiseReport",
    "OutputFileError",
    "PatchPrior",
    "Posterior",
    "PriorFileError",
    "RestoringStep",
    "Surprise",
    "TrainingConfig",
    "TrainingError",
    "WaveletPrior",
    "adapt",
    "denoise",
    "estimate_noise",
    "estimate_sigma",
    "load",
    "noise_map",
    "noise_profile",
    "posterior_samples",
    "predicted_psnr",
    "restore",
    "surprise",
    "train",
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
