"""Validation: how well a prior denoises, in one step of empirical Bayes, and explains images not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource, scaled_by_type
from heatprior.data.trials import LEVELS, psnr, with_noise
from heatprior.errors import InvalidInputError
from heatprior.priors.expectation_maximisation import log_likelihood
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.one_step import denoised_once
from heatprior.priors.patch import PatchPrior

CROP = 160
MOST_IMAGES = 8
HELD_OUT_PATCHES = 20_000


class Validation:
    """The central 160×160 pixels of up to eight images, each with its noise.

    `sigma` is the noise that the images have already: if there is any, PSNR cannot be measured on them.
    """

    def __init__(self, images: Sequence[NDArray[Any]], size: int, sigma: float = 0.0) -> None:
        self.size = size
        self.sigma = sigma
        self._clean = [_centre(scaled_by_type(image)) for image in images if min(image.shape) >= size][:MOST_IMAGES]
        if not self._clean:
            raise InvalidInputError(f"none of {len(images)} validation images holds a patch of {size}×{size} pixels")

    @property
    def images(self) -> int:
        """How many images there are."""
        return len(self._clean)

    def psnr(self, prior: PatchPrior | GaussianMixturePrior) -> tuple[float, ...]:
        """Mean PSNR over the images, for each of LEVELS."""
        results = np.empty((len(self._clean), len(LEVELS)))
        for i, clean in enumerate(self._clean):
            for k, level in enumerate(LEVELS):
                sigma = level / 255.0
                results[i, k] = psnr(denoised_once(prior, with_noise(clean, i, sigma), sigma), clean)
        return tuple(float(value) for value in results.mean(axis=0))

    def log_likelihood(self, prior: GaussianMixturePrior) -> float:
        """Mean log-density of patches of the images, with the noise that these came with."""
        source = PatchSource(self._clean, self.size, self.sigma)
        patches = source.draw(HELD_OUT_PATCHES, np.random.default_rng(0)).T
        return log_likelihood(prior, patches, self.sigma)


def held_out(count: int) -> list[int]:
    """Which of `count` images to keep for validation: a tenth, at most eight, evenly spaced."""
    kept = min(MOST_IMAGES, count // 10)
    return [int((i + 0.5) * count / kept) for i in range(kept)]


def _centre(image: FloatArray) -> FloatArray:
    rows, columns = ((side - min(side, CROP)) // 2 for side in image.shape)
    return image[rows : rows + CROP, columns : columns + CROP]
