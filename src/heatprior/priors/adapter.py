"""One empirical-Bayes step of a whole image with any prior, in bounded memory if it is one on patches.

Patch priors and mixtures have their fused kernels, a prior of whole images its own step. Any other prior gets its
patches cut out, some thousand at a time, and Tweedie's formula applied to them.
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.grids import EVERY, Grid
from heatprior.kernels.patches import extract
from heatprior.kernels.row_bands import Progress, Store, average_by_bands
from heatprior.priors import mixture_step as mixture_averaging
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.patch import PatchPrior
from heatprior.priors.patch_step import NoiseMap, average_posterior_changes, root_mean_squares
from heatprior.priors.protocol import DiffusedPrior, ImagePrior, tweedie
from heatprior.priors.whole_images import changes_of_image

COLUMNS = 4096  # patches of one row that are cut out at once


def patch_size(prior: DiffusedPrior) -> int:
    """b of a prior on b×b patches, by the length of a sample; 1 for a prior of whole images of any size."""
    if isinstance(prior, ImagePrior):
        return 1
    if isinstance(prior, PatchPrior):
        return prior.filters.size
    if isinstance(prior, GaussianMixturePrior):
        return prior.size
    pixels = prior.sample(1, rng=np.random.default_rng(0)).shape[-1]
    if isqrt(pixels) ** 2 != pixels:
        raise InvalidInputError(f"the samples of this prior have {pixels} pixels; patches must be square")
    return isqrt(pixels)


def average_changes_of(
    prior: DiffusedPrior,
    image: FloatArray,
    sigma: float | NoiseMap,
    store: Store,
    progress: Progress | None = None,
    *,
    grid: Grid = EVERY,
) -> None:
    """Hand to `store`, band by band, the mean over patches of E[X | Y] − Y; the rows it is given may be overwritten."""
    if isinstance(prior, PatchPrior):
        average_posterior_changes(prior, image, sigma, store, progress, grid=grid)
        return
    if isinstance(prior, GaussianMixturePrior):
        mixture_averaging.average_posterior_changes(prior, image, sigma, store, progress, grid=grid)
        return
    if isinstance(prior, ImagePrior):
        store(slice(0, len(image)), changes_of_image(prior, image, sigma))
        if progress is not None:
            progress(1.0)
        return
    size = patch_size(prior)
    width = image.shape[1]
    all_rows, all_columns = (grid.starts(length, size) for length in image.shape)

    def sum_of_changes(start: int, end: int) -> FloatArray:
        total = np.zeros((end - start + size - 1, width), np.float32)
        for row in all_rows[(all_rows >= start) & (all_rows < end)].tolist():
            rows = slice(row, row + size)
            sigmas = sigma if isinstance(sigma, float) else root_mean_squares(sigma.rows(rows), size)[0]
            for first in range(0, len(all_columns), COLUMNS):
                columns = all_columns[first : first + COLUMNS]
                left, right = columns[0], columns[-1] + size
                patches = extract(image[rows, left:right], size)[columns - left]
                level = np.asarray(sigmas if isinstance(sigmas, float) else sigmas[columns])
                changes = (tweedie(prior, patches, level) - patches).reshape(-1, size, size)
                for i in range(size):
                    for j in range(size):
                        total[row - start + i, columns + j] += changes[:, i, j]
        return total

    # in the caller's thread: not every prior may be called from several
    average_by_bands((image.shape[0], width), size, sum_of_changes, store, progress, at_once=1, grid=grid)
