"""One empirical-Bayes step of an image with a prior of whole images: beyond its edges, and where the noise varies.

Such a prior takes images to be cyclic and of one noise level. So an image is mirrored beyond its edges, as far as the
filters reach and on to a size that suits the Fourier transform. A map of noise levels is taken as a few levels: the
changes of each pixel are straight in log sigma between them.
"""

from __future__ import annotations

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.row_bands import Progress
from heatprior.noise_value import Noise
from heatprior.priors.protocol import ImagePrior

RATIO = 1.25  # at most, between the noise levels that stand for a map


def denoise_whole(prior: ImagePrior, image: FloatArray, noise: Noise, progress: Progress | None = None) -> FloatArray:
    """Denoise an image (H, W) of float32 by one step, as `Prior.denoise_step` does."""
    from scipy.fft import next_fast_len  # noqa: PLC0415 (slow to import)

    before = prior.margin
    after = [next_fast_len(length + 2 * before, real=True) - length - before for length in image.shape]
    inside = tuple(slice(before, before + length) for length in image.shape)
    extended = np.pad(np.asarray(image, np.float32), [(before, more) for more in after], mode="symmetric")

    def change_at(level: float) -> FloatArray:
        return prior.denoise(extended, level)[inside] - extended[inside]

    if noise.is_constant:
        changes = change_at(noise.lowest)
    else:
        steps = int(np.ceil(np.log(noise.highest / noise.lowest) / np.log(RATIO)))
        levels = np.geomspace(noise.lowest, noise.highest, steps + 1)
        place = np.log(noise.rows(slice(0, len(image))) / noise.lowest) / np.log(levels[1] / levels[0])
        changes = np.zeros(image.shape, np.float32)
        for number, level in enumerate(levels):
            changes += np.maximum(1.0 - np.abs(place - number), 0.0) * change_at(float(level))
    if progress is not None:
        progress(1.0)
    return np.asarray(image + changes, np.float32)
