"""The eight symmetries of the square: an image denoised in one of them, and turned back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.patches import Progress
from heatprior.noise_value import Noise, NoiseSpectrum

Denoiser = Callable[..., list[FloatArray]]  # planes (H, W) of a colour, their noise, progress → the planes denoised


def denoise_turned(
    denoiser: Denoiser,
    planes: Sequence[FloatArray],
    noises: Sequence[Noise],
    number: int,
    progress: Progress | None = None,
) -> list[FloatArray]:
    """What `denoiser` makes of the planes (H, W) of a colour in one of eight symmetries, turned back."""
    turned = [np.ascontiguousarray(apply_symmetry(plane, number)) for plane in planes]
    own = [_turn_noise(noise, number) for noise in noises]
    return [undo_symmetry(result, number) for result in denoiser(turned, own, progress=progress)]


def apply_symmetry(image: FloatArray, number: int) -> FloatArray:
    """An image (H, W) upside down by the first bit of `number`, left to right by the second, transposed by a third."""
    image = image[:: -1 if number & 1 else 1, :: -1 if number & 2 else 1]
    return image.T if number & 4 else image


def undo_symmetry(image: FloatArray, number: int) -> FloatArray:
    """The inverse of `apply_symmetry`."""
    image = image.T if number & 4 else image
    return image[:: -1 if number & 1 else 1, :: -1 if number & 2 else 1]


def _turn_noise(noise: Noise, number: int) -> Noise:
    spectrum = noise.spectrum
    if spectrum is not None:  # frequencies turn as the image does; zero stays where it is
        numbers = np.arange(spectrum.side)
        rows, columns = (-numbers % spectrum.side if number & bit else numbers for bit in (1, 2))
        power = spectrum.power[np.ix_(rows, columns)]
        spectrum = NoiseSpectrum(power.T if number & 4 else power)
    if noise.is_constant:
        return Noise.constant(noise.lowest, spectrum)
    levels = np.ascontiguousarray(apply_symmetry(noise.rows(slice(None)), number))
    return Noise(levels.__getitem__, noise.lowest, noise.highest, spectrum)
