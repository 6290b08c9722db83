"""Any object with log_prob, score and sample as a `Prior`: what it lacks is made from these three.

A step of an image is Tweedie's formula, on a few thousand patches at a time, or on the whole image. If the object has
no `patch_shape`, it is inferred from one sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import isqrt
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import EVERY, Cells, Grid, extract
from heatprior.kernels.row_bands import Progress, average_by_bands, edges_of_bands
from heatprior.noise_value import Noise
from heatprior.priors.protocol import DiffusedPrior, ImagePrior, Prior, tweedie
from heatprior.priors.schedules import Schedules, schedules_on
from heatprior.priors.whole_image_step import denoise_whole

TILE = 4096  # patches of one row that are extracted at once


def complete(prior: object) -> Prior:
    """The prior itself if it has all that is needed, else the prior with what it lacks."""
    if hasattr(type(prior), "denoise_step"):
        return cast("Prior", prior)
    if not isinstance(prior, DiffusedPrior):
        raise InvalidInputError(
            f"prior is {type(prior).__name__}; expected a name such as 'patch7', a path, or an object with log_prob, "
            "score and sample"
        )
    return AdaptedPrior(prior)


class AdaptedPrior:
    """A `DiffusedPrior` on square patches, or an `ImagePrior`, with the rest of what a `Prior` is."""

    noise_likelihood = None

    def __init__(self, prior: DiffusedPrior) -> None:
        self._prior = prior
        self.card: Mapping[str, Any] = getattr(prior, "card", {})

    def log_prob(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """That of the object."""
        return self._prior.log_prob(y, sigma)

    def score(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """That of the object."""
        return self._prior.score(y, sigma)

    def sample(self, count: int, sigma: ArrayLike = 0.0, *, rng: np.random.Generator) -> FloatArray:
        """That of the object."""
        return self._prior.sample(count, sigma, rng=rng)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._prior, name)

    @cached_property
    def patch_shape(self) -> tuple[int, ...]:
        """That of the object, or of one of its samples; () if it is one of whole images."""
        if isinstance(self._prior, ImagePrior):
            return ()
        declared: tuple[int, ...] | None = getattr(self._prior, "patch_shape", None)
        if declared is not None:
            return declared
        pixels = self._prior.sample(1, rng=np.random.default_rng(0)).shape[-1]
        if isqrt(pixels) ** 2 != pixels:
            raise InvalidInputError(f"the samples of this prior have {pixels} pixels; patches must be square")
        return (isqrt(pixels), isqrt(pixels))

    @property
    def schedules(self) -> Schedules:
        """The schedules on the card, if there is one."""
        return schedules_on(self.card)

    def denoise_step(
        self,
        image: FloatArray,
        noise: Noise,
        progress: Progress | None = None,
        *,
        grid: Grid = EVERY,
    ) -> FloatArray:
        """One step of empirical Bayes, see `Prior`."""
        if isinstance(self._prior, ImagePrior):
            return denoise_whole(self._prior, image, noise, progress)
        size, width = self.patch_shape[0], image.shape[1]
        all_rows, all_columns = grid.places(image.shape, size)

        def sum_of_changes(start: int, end: int) -> FloatArray:
            total = np.zeros((end - start + size - 1, width), np.float32)
            for row in all_rows[(all_rows >= start) & (all_rows < end)].tolist():
                rows = slice(row, row + size)
                sigmas = noise.patches(rows, size)
                for first in range(0, len(all_columns), TILE):
                    columns = all_columns[first : first + TILE]
                    left, right = columns[0], columns[-1] + size
                    patches = extract(image[rows, left:right], size)[columns - left]
                    levels = sigmas if noise.is_constant else sigmas[0, columns]
                    changes = (tweedie(self._prior, patches, levels) - patches).reshape(-1, size, size)
                    for i in range(size):
                        for j in range(size):
                            total[row - start + i, columns + j] += changes[:, i, j]
            return total

        # in the caller's thread: not every prior may be called from several
        return average_by_bands(image, size, sum_of_changes, progress, at_once=1, grid=grid)

    def cells(self, shape: tuple[int, int], grid: Grid = EVERY) -> Cells | None:
        """Bands of rows, tiles of columns; None for a prior of whole images."""
        if not self.patch_shape:
            return None
        size = self.patch_shape[0]
        columns = np.append(grid.starts(shape[1], size)[::TILE], shape[1] - size + 1)
        return Cells(edges_of_bands(shape[0], size), columns)

    def facts(self) -> dict[str, object]:
        """Its class, and what its card says."""
        return {"kind": type(self._prior).__name__, **self.card}
