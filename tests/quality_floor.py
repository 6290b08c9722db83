"""What quality is today, on crops of installed pictures: the floor below which no change may bring it.

    python tests/quality_floor.py        measures anew and writes tests/quality_floor.json

Each row is the mean PSNR in dB of three crops. Nothing is chosen by these figures; a change that lowers one by more
than 0.02 dB has to be explained before the floor is written anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import skimage.data
from scipy.ndimage import convolve1d, gaussian_filter

import heatprior as hp

FLOOR = Path(__file__).with_suffix(".json")
CROPS = {"astronaut": (20, 150), "coffee": (60, 180), "chelsea": (60, 120)}  # the picture, and its first row and column
SIDE = 128
LEVELS = (10, 25, 50)  # 255 sigma


def crops() -> Iterator[np.ndarray]:
    """Colour crops (SIDE, SIDE, 3), grey levels being 0 to 1."""
    for name, (row, column) in CROPS.items():
        picture = getattr(skimage.data, name)()
        yield picture[row : row + SIDE, column : column + SIDE].astype(np.float32) / 255


def psnr(image: np.ndarray, clean: np.ndarray) -> float:
    return float(-10 * np.log10(np.mean(np.square(np.clip(image, 0, 1) - clean))))


def denoise_grey(clean: np.ndarray, sigma: float, rng: np.random.Generator, **options: Any) -> float:
    grey = clean.mean(axis=-1)
    noisy = (grey + sigma * rng.standard_normal(grey.shape)).astype(np.float32)
    return psnr(hp.denoise(noisy, options.pop("told", None), white=1.0, **options), grey)


def denoise_camera(clean: np.ndarray, sigma: float, rng: np.random.Generator) -> float:
    """Correlated noise as demosaicing leaves it, in 8 bits, nothing told."""
    noise = sigma * rng.standard_normal(clean.shape)
    for axis in (0, 1):
        noise = convolve1d(noise, np.array([0.25, 0.5, 0.25]), axis=axis, mode="wrap")
    noisy = np.clip(np.rint(255 * (clean + 1.5 * noise)), 0, 255).astype(np.uint8)
    return psnr(hp.denoise(noisy, channel_axis=-1) / 255.0, clean)


def deblur(clean: np.ndarray, sigma: float, rng: np.random.Generator) -> float:
    grey = clean.mean(axis=-1)
    point = np.zeros((9, 9))
    point[4, 4] = 1.0
    kernel = gaussian_filter(point, 1.5)
    blur = hp.operators.Blur(kernel / kernel.sum(), "cyclic")
    measured = gaussian_filter(grey, 1.5, mode="wrap", truncate=2.7)
    return psnr(hp.restore(measured + 0.1 * sigma * rng.standard_normal(grey.shape), blur, 0.1 * sigma), grey)


PATHS: dict[str, Callable[[np.ndarray, float, np.random.Generator], float]] = {
    "default": lambda clean, sigma, rng: denoise_grey(clean, sigma, rng, told=sigma),
    "fast": lambda clean, sigma, rng: denoise_grey(clean, sigma, rng, told=sigma, quality="fast"),
    "blind": denoise_grey,
    "camera": denoise_camera,
    "deblur": deblur,
}


def measure(path: str) -> dict[str, float]:
    """Mean PSNR by level."""
    found = {}
    for level in LEVELS:
        each = [PATHS[path](clean, level / 255, np.random.default_rng(i)) for i, clean in enumerate(crops())]
        found[str(level)] = round(float(np.mean(each)), 3)
    return found


if __name__ == "__main__":
    found = {path: measure(path) for path in PATHS}
    FLOOR.write_text(json.dumps(found, indent=1) + "\n")
    print(FLOOR.read_text())
