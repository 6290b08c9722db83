"""Speed/quality presets: which prior, and whether its estimates are averaged.

A prior of natural images does not prefer left to right, but a mixture of finitely many shapes does a little. So the
best quality denoises an image in several of the eight symmetries of the square and takes the mean, which is slower by
their number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.row_bands import Progress, part_of
from heatprior.noise_value import ConstantNoise, Noise, NoiseMap, NoiseSpectrum


class Preset(NamedTuple):
    """The prior for white noise, and in how many symmetries of the square an image is denoised."""

    prior: str
    symmetries: int = 1


PRESETS = {"fast": Preset("fast7"), "default": Preset("tuned"), "best": Preset("tuned", 8)}
Denoiser = Callable[..., FloatArray]  # image (H, W), its noise, progress → the image denoised
IN_CORRELATED_NOISE = "tuned"  # a mixture, for which noise of any covariance is exact; half a decibel above "mixture"


def choose_prior(quality: str, *, correlated: bool = False) -> str:
    """The shipped prior of a preset; correlated noise needs a mixture."""
    return IN_CORRELATED_NOISE if correlated else PRESETS[quality].prior


def average_symmetries(denoiser: Denoiser, count: int) -> Denoiser:
    """The mean of what `denoiser` makes of an image in the first `count` of eight symmetries, each turned back."""

    def averaged(image: FloatArray, noise: Noise, progress: Progress | None = None) -> FloatArray:
        total = np.zeros(image.shape, np.float32)
        for number in range(count):
            turned = np.ascontiguousarray(apply_symmetry(image, number))
            result = denoiser(turned, _turn_noise(noise, number), progress=part_of(progress, number, count))
            total += undo_symmetry(result, number)
        return np.asarray(total / np.float32(count))

    return denoiser if count == 1 else averaged


def apply_symmetry(image: FloatArray, number: int) -> FloatArray:
    """An image (H, W) upside down by the first bit of `number`, left to right by the second, transposed by a third."""
    image = image[:: -1 if number & 1 else 1, :: -1 if number & 2 else 1]
    return image.T if number & 4 else image


def undo_symmetry(image: FloatArray, number: int) -> FloatArray:
    """The inverse of `apply_symmetry`."""
    image = image.T if number & 4 else image
    return image[:: -1 if number & 1 else 1, :: -1 if number & 2 else 1]


def _turn_noise(noise: Noise, number: int) -> Noise:
    spectrum = None if noise.spectrum is None else _turn_spectrum(noise.spectrum, number)
    if noise.is_constant:
        return ConstantNoise(noise.lowest, spectrum)
    levels = np.ascontiguousarray(apply_symmetry(noise.rows(slice(None)), number))
    return NoiseMap(levels.__getitem__, noise.lowest, noise.highest, spectrum)


def _turn_spectrum(spectrum: NoiseSpectrum, number: int) -> NoiseSpectrum:
    """Frequencies turn as the image does; zero stays where it is."""
    numbers = np.arange(spectrum.side)
    rows, columns = (-numbers % spectrum.side if number & bit else numbers for bit in (1, 2))
    power = spectrum.power[np.ix_(rows, columns)]
    return NoiseSpectrum(power.T if number & 4 else power)
