"""Colour as three grey images: brightness and two differences, mixed orthogonally so that their noise stays white.

Brightness is the mean (R + G + B) / 3, a grey image again. The differences of natural images are weak; CHROMA scales
them up to what a prior of grey images expects: 4 is the best at sigma 10, 25 and 50 (paper/evaluations/colour.py;
with 1, the orthonormal mix, PSNR is half a decibel less and more).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.border.pixels import enough_for

CHROMA = 4.0  # norm of the rows of the differences

MOSTLY = 0.5  # of the pixels: a channel with noise never has so many of one value

ALONE = np.ones((1, 1))  # the mix of a channel by itself
COLOUR = np.array(  # orthogonal rows
    [
        np.full(3, 1 / 3),
        np.array([1.0, 0.0, -1.0]) / np.sqrt(2) * CHROMA,
        np.array([1.0, -2.0, 1.0]) / np.sqrt(6) * CHROMA,
    ]
)


def mix_channels(channels: Sequence[NDArray[Any]] | NDArray[Any], weights: FloatArray) -> FloatArray:
    """Σ_c weights_c x_c in float32, or float64 if weights are beyond that; x itself if there is nothing to do.

    So a large image is not copied.
    """
    if len(channels) == 1 and weights[0] == 1 and channels[0].dtype == np.float32:
        return np.asarray(channels[0], np.float32)
    dtype = enough_for(float(np.abs(weights).max()))
    total: FloatArray = np.multiply(channels[0], weights[0], dtype=dtype)
    for channel, weight in zip(channels[1:], weights[1:], strict=True):
        total += np.multiply(channel, weight, dtype=dtype)
    return total


def is_alpha(channels: NDArray[Any]) -> bool:
    """Whether the last of four channels (..., 4, H, W) is transparency."""
    return channels.shape[-3] == 4 and is_transparency(channels[..., -1, :, :])


def is_transparency(values: NDArray[Any]) -> bool:
    """Whether most of a channel is exactly opaque, its largest value, or clear."""
    return bool(np.mean((values == np.max(values)) | (values == 0)) > MOSTLY)
