"""Noise as a value: how strong it is at every pixel, and how it is correlated between pixels.

Priors take a `Noise` in their denoising step, estimators (`heatprior.noise`, which need priors) make one: so the value
is a room of its own, below both.
"""

from heatprior.noise_model.noise import (
    SAME_LEVEL,
    ConstantNoise,
    Noise,
    NoiseMap,
    Rows,
    as_noise,
    mixed_noise,
    root_mean_squares,
)
from heatprior.noise_model.spectrum import NoiseSpectrum, lags_within, patch_covariance

__all__ = [
    "SAME_LEVEL",
    "ConstantNoise",
    "Noise",
    "NoiseMap",
    "NoiseSpectrum",
    "Rows",
    "as_noise",
    "lags_within",
    "mixed_noise",
    "patch_covariance",
    "root_mean_squares",
]
