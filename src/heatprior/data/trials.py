"""Trials of denoising: clean images with Gaussian noise that anyone can draw again, and how near a result comes.

Image i, in the order given, is y = x + sigma n with n drawn from seed 1000 + i, the same at every level, neither
clipped nor rounded; grey levels are 0 to 1.
"""

from __future__ import annotations

import numpy as np

from heatprior.arrays import FloatArray

LEVELS = (15, 25, 50, 100)  # 255 sigma
FIRST_SEED = 1000


def with_noise(clean: FloatArray, number: int, sigma: float) -> FloatArray:
    """Image `number` of a trial with its noise, in float32."""
    noise = np.random.default_rng(FIRST_SEED + number).standard_normal(clean.shape)
    return np.asarray(clean + sigma * noise, np.float32)


def psnr(image: FloatArray, clean: FloatArray) -> float:
    """Peak signal-to-noise ratio in dB of an image clipped to [0, 1], the peak being 1."""
    error = float(np.mean(np.square(np.clip(image, 0.0, 1.0) - clean), dtype=np.float64))
    return -10.0 * float(np.log10(error)) if error > 0 else float("inf")
