"""Trials of denoising: clean images with Gaussian noise that anyone can draw again, and how near a result comes.

Image i, in the order given, is y = x + sigma n with n drawn from seed 1000 + i, the same at every level, neither
clipped nor rounded; grey levels are 0 to 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray

LEVELS = (15, 25, 50, 100)  # 255 sigma
FIRST_SEED = 1000
WINDOW = 7  # pixels of a side over which SSIM compares means, variances and covariances


def with_noise(clean: FloatArray, number: int, sigma: float) -> FloatArray:
    """Add its noise to image `number` of a trial; in float32."""
    noise = np.random.default_rng(FIRST_SEED + number).standard_normal(clean.shape)
    return np.asarray(clean + sigma * noise, np.float32)


def psnr(image: FloatArray, clean: FloatArray) -> float:
    """Peak signal-to-noise ratio in dB of an image clipped to [0, 1], the peak being 1."""
    error = float(np.mean(np.square(np.clip(image, 0.0, 1.0) - clean), dtype=np.float64))
    return -10.0 * float(np.log10(error)) if error > 0 else float("inf")


def ssim(image: FloatArray, clean: FloatArray) -> float:
    """Structural similarity (Wang et al. 2004) of an image clipped to [0, 1], over 7×7 windows, unbiased, range 1."""
    from scipy.ndimage import uniform_filter  # noqa: PLC0415 (slow to import)

    x, y = np.asarray(clean, np.float64), np.clip(np.asarray(image, np.float64), 0.0, 1.0)
    inside = (slice(WINDOW // 2, -(WINDOW // 2)),) * x.ndim
    unbiased = WINDOW**x.ndim / (WINDOW**x.ndim - 1)
    mean_x, mean_y, xx, yy, xy = (uniform_filter(z, WINDOW)[inside] for z in (x, y, x * x, y * y, x * y))
    variances = unbiased * (xx - mean_x * mean_x + (yy - mean_y * mean_y))
    covariance = unbiased * (xy - mean_x * mean_y)
    brightness = (2.0 * mean_x * mean_y + 0.01**2) / (mean_x * mean_x + mean_y * mean_y + 0.01**2)
    return float(np.mean(brightness * (2.0 * covariance + 0.03**2) / (variances + 0.03**2)))


def photograph() -> NDArray[np.uint8]:
    """A photograph, (600, 512, 3): Grace Hopper, by the US Navy, in the public domain; matplotlib carries it."""
    from matplotlib import cbook, image  # noqa: PLC0415 (slow to import)

    return np.asarray(image.imread(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)))
