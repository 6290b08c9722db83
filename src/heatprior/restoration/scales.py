"""Two scales: the coarse half of an image is denoised by itself, where its noise is half as strong.

An image reduced by two through cropping its cosine transform keeps its low frequencies exactly, and its noise white: of
half the standard deviation, since four pixels become one. There a patch of the prior sees twice as far. The denoised
coarse image then replaces the low frequencies of the denoised fine one, below `EDGE` of what the coarse grid can hold.
"""

from __future__ import annotations

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.noise_model import Noise

EDGE = 0.5  # of the highest frequency of the coarse grid: there both scales count the same
SOFTNESS = 0.1  # width of the transition, over that frequency


def reduced(image: FloatArray) -> FloatArray:
    """The image (H, W) on a grid of half the pixels in either direction: the low half of its cosine transform."""
    from scipy.fft import dctn, idctn  # noqa: PLC0415 (slow to import)

    height, width = (-(-length // 2) for length in image.shape)
    low = dctn(image, norm="ortho", type=2)[:height, :width]
    return np.asarray(idctn(low, norm="ortho") * _factor(image.shape, low.shape), np.float32)


def noise_of_reduced(noise: Noise, shape: tuple[int, int]) -> Noise:
    """The noise in a reduced image, of which the whole has this `shape`; a map by the mean variance of 2×2 pixels."""
    return noise.halved(shape, _factor(shape, (-(-shape[0] // 2), -(-shape[1] // 2))))


def merged(fine: FloatArray, coarse: FloatArray) -> FloatArray:
    """`fine` (H, W) with its low frequencies those of `coarse`, its reduced grid: in float32."""
    from scipy.fft import dctn, idctn  # noqa: PLC0415 (slow to import)

    spectrum = dctn(fine, norm="ortho")
    height, width = coarse.shape
    low = spectrum[:height, :width]
    frequencies = np.hypot((np.arange(height) / height)[:, None], np.arange(width) / width)
    part = 1.0 / (1.0 + np.exp((frequencies - EDGE) / SOFTNESS))
    low += part.astype(np.float32) * (dctn(coarse, norm="ortho") / _factor(fine.shape, coarse.shape) - low)
    return np.asarray(idctn(spectrum, norm="ortho"), np.float32)


def _factor(shape: tuple[int, ...], small: tuple[int, ...]) -> float:
    """What one grey level of the whole image is in orthonormal coefficients of the reduced one: about a half."""
    return float(np.sqrt((small[0] * small[1]) / (shape[0] * shape[1])))
