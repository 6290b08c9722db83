"""Training material that is made up: patches of a known prior, and small folders of images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from examples import filter_bank
from PIL import Image

from heatprior.priors.experts import Experts
from heatprior.priors.patch import PatchPrior


class DrawnFromPrior:
    """What a PatchSource is to a training, with the patches of a known prior."""

    images = 1

    def __init__(self, prior: PatchPrior) -> None:
        self.prior = prior
        self.size = prior.filters.size

    def draw(self, count, rng):
        return self.prior.sample(count, rng=rng).T


def sparse_prior(components: int = 31) -> PatchPrior:
    """Eight filters on 3×3 with peaked, lopsided experts of many widths."""
    means = np.linspace(-1.0, 1.0, components)
    widths = np.geomspace(0.03, 0.3, 8)
    logits = [
        -((np.abs(means - (0.1 if j % 2 else -0.05)) / width) ** (0.7 if j % 3 else 1.0))
        for j, width in enumerate(widths)
    ]
    return PatchPrior(filter_bank(3, 8), Experts(np.stack(logits)))


def landscape(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Smooth hills and a cliff, float64 in [0, 1]."""
    hills = rng.standard_normal(shape).cumsum(axis=0).cumsum(axis=1)
    hills[:, shape[1] // 2 :] += np.ptp(hills) / 2
    return (hills - hills.min()) / np.ptp(hills)


def folder_of_images(folder: Path, count: int = 3, shape: tuple[int, int] = (40, 48), *, seed: int = 0) -> Path:
    """Grey PNGs of 8 bits."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    for number in range(count):
        Image.fromarray(np.uint8(255 * landscape(shape, rng))).save(folder / f"{number:02}.png")
    return folder
