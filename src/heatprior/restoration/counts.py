"""Counted photons denoised: each channel stabilised, white noise removed, and the exact unbiased inverse of that.

Full scale of stabilised values is found as that of any image: half or twice of it changes validation images by less
than 0.03 dB. An iteration on a blend of data and estimate (Azzari, Foi 2016) gained nothing where the noise of few
counts is told, nor did a first estimate from sums of 4×4 pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.border.entry import Index
from heatprior.noise.stabilisation import PoissonGaussian

WhiteDenoiser = Callable[[FloatArray, FloatArray, float | None], FloatArray]  # image, sigma, full scale → denoised


def denoise_counts(
    channels: NDArray[Any], counts: Mapping[Index, PoissonGaussian], denoise: WhiteDenoiser, white: float | None = None
) -> FloatArray:
    """Channels (..., H, W) in their units, each with its `counts`, denoised; NaN stays NaN.

    `denoise` removes white noise of some sigma, given for every pixel. `white` is full scale in the units of the image,
    None if it is to be found.
    """
    from heatprior.noise.levels import without_gaps  # noqa: PLC0415 (a third of what there is to import)

    stabilised, sigma = np.empty(channels.shape, np.float32), np.empty(channels.shape, np.float32)
    for place, own in counts.items():
        stabilised[place] = own.stabilise(channels[place])
        sigma[place] = own.sigma_of_stabilised(without_gaps(np.asarray(channels[place], np.float32)))
    full = None if white is None else max(_full_scale(own, white) for own in counts.values())
    clean = denoise(stabilised, sigma, full)
    result = np.empty(channels.shape, np.float32)
    for place, own in counts.items():
        result[place] = own.unstabilise(clean[place])
    return result


def _full_scale(counts: PoissonGaussian, white: float) -> float:
    """Of stabilised values: from black to white."""
    black, top = counts.stabilise(np.array([counts.black, white]))
    return float(top - black)
