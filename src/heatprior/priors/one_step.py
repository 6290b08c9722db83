"""One step of empirical Bayes of a whole image, with any prior."""

from __future__ import annotations

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.grids import EVERY, Grid
from heatprior.kernels.row_bands import Progress
from heatprior.noise_model import Noise, as_noise
from heatprior.priors.protocol import Prior


def denoised_once(
    prior: Prior,
    image: FloatArray,
    noise: float | FloatArray | Noise,
    progress: Progress | None = None,
    *,
    grid: Grid = EVERY,
) -> FloatArray:
    """E[X | Y = image], averaged over overlapping patches on the grid: (H, W), in float32. The image holds no NaN."""
    image = np.ascontiguousarray(image, np.float32)
    result = np.empty_like(image)

    def store(rows: slice, change: FloatArray) -> None:
        np.add(image[rows], change, out=result[rows])

    prior.denoise_step(image, as_noise(noise), store, progress, grid=grid)
    return result
