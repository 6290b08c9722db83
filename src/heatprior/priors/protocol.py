"""The protocols of priors: the density of a noisy patch at every noise level, and what the algorithms need besides.

Section 2.2 of the paper. `sigma` is the standard deviation of the noise, sqrt(2t), in the units of the patches: one
number, or one per patch; never state. `DiffusedPrior` and `ImagePrior` are what a user has to write, `Prior` is what
the algorithms ask for: `complete` adds to any other what it lacks, a step of an image being Tweedie's formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isqrt
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray, IntArray
from heatprior.display import describe_fields
from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import EVERY, Cells, Grid, Progress, average_by_bands, edges_of_bands, extract
from heatprior.locks import cached_property
from heatprior.noise_value import Noise, as_noise
from heatprior.priors.schedules import Schedules, schedules_on

TILE = 4096  # patches of one row that are extracted at once
RATIO = 1.25  # at most, between the noise levels that stand for a map


class Posterior(NamedTuple):
    """Mean and variance, pixel by pixel, of the clean patch given the noisy one.

    Attributes
    ----------
    mean : ndarray
        Posterior mean, of the shape of the patches.
    variance : ndarray
        Posterior variance, of the same shape.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> noisy = np.random.default_rng(0).random((3, 49))
    >>> mean, variance = hp.load("patch7").posterior(noisy, 0.1)
    >>> mean.shape == variance.shape == noisy.shape
    True
    """

    mean: FloatArray
    variance: FloatArray

    def __repr__(self) -> str:
        return describe_fields(self)


@runtime_checkable
class DiffusedPrior(Protocol):
    """A density f(·, t) that solves the heat equation, Eq. (1), evaluated at noise level sigma = sqrt(2t).

    Any object with these three methods is one, and can be passed to `denoise`, `tweedie` and `restore`.

    Examples
    --------
    >>> import heatprior as hp
    >>> isinstance(hp.load("patch7"), hp.DiffusedPrior)
    True
    >>> isinstance("patch7", hp.DiffusedPrior)
    False
    """

    def log_prob(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """log f(y, t), the log-density of the noisy patch."""

    def score(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """∇ log f(y, t)."""

    def sample(self, count: int, sigma: ArrayLike = 0.0, *, rng: np.random.Generator) -> FloatArray:
        """Independent draws of the noisy patch."""


@runtime_checkable
class ImagePrior(DiffusedPrior, Protocol):
    """A diffused prior on whole images y (..., H, W), taken to be cyclic; `sigma` is one number or one per image.

    Its log_prob may lack a constant, and its samples may be approximate: each prior says so.

    Examples
    --------
    >>> import heatprior as hp
    >>> isinstance(hp.load("wavelet-density"), hp.ImagePrior), isinstance(hp.load("patch7"), hp.ImagePrior)
    (True, False)
    """

    @property
    def margin(self) -> int:
        """The number of pixels beyond an edge that matter."""

    @property
    def unit(self) -> int:
        """The period of the coarsest band: pixels that a piece of an image needs along each side."""

    def sample(
        self,
        count: int,
        sigma: ArrayLike = 0.0,
        *,
        rng: np.random.Generator,
        shape: tuple[int, int] = (128, 128),
        progress: Progress | None = None,
    ) -> FloatArray:
        """Independent draws of the noisy image, (count, H, W); `progress` is called with the fraction done."""

    def denoise(self, image: FloatArray, sigma: float) -> FloatArray:
        """One step of empirical Bayes of an image (H, W) of any size, the same wherever the image is shifted to."""


class NoiseDirections(NamedTuple):
    """J orthonormal directions of patches, how far clean patches spread in each, and which of them reveal the noise."""

    unit: FloatArray  # (J, a)
    spread: FloatArray  # (J,)
    weak: float  # a spread below this part of the noise is weak beside it
    fewest: int  # directions that are used at least: the weakest


@dataclass(frozen=True)
class NoiseLikelihood:
    """How likely patches are at each noise level, by a prior whose density is known in some directions by themselves.

    Patches have an unknown contrast, one of C. A block of neighbours shares it.
    """

    size: int  # b, the side of a patch
    directions: NoiseDirections  # to choose from
    contrast_weights: FloatArray | None  # the frequency of each contrast, (C,); None if the image alone decides
    stride: int  # pixels between two patches, at least: closer ones add hardly any information
    most_patches: int  # to use; in larger images they lie further apart
    photograph_error: tuple[float, float]  # that photographs add to the variance of the noise: a constant, a fraction
    log_densities: Callable[[FloatArray, FloatArray, IntArray, int], FloatArray]
    """(image, sigmas, chosen, stride) → (S, C, rows, columns): of patches in the chosen directions."""
    block: int | None = None  # patches along the side of a block; None for as many as suit filters


class Prior(DiffusedPrior, Protocol):
    """A prior with all that restoring images, estimating noise and showing it need."""

    @property
    def card(self) -> Mapping[str, Any]:
        """Provenance and settings of the prior."""

    @property
    def patch_shape(self) -> tuple[int, ...]:
        """(b, b) pixels of a patch; () for a prior of whole images of any size."""

    @property
    def schedules(self) -> Schedules:
        """Noise levels and weights of half-quadratic splitting, step by step."""

    @property
    def noise_likelihood(self) -> NoiseLikelihood | None:
        """The likelihood by which noise is estimated from patches; None if there is none."""

    def denoise_step(
        self, image: FloatArray, noise: Noise, progress: Progress | None = None, *, grid: Grid = EVERY
    ) -> FloatArray:
        """E[X | Y = image] of an image (H, W) of float32 without NaN: a new image.

        Patches that overlap are averaged: all of them, or those that lie on a `grid`. A prior whose `takes_guide` is
        true takes a `guide` as well: where the image is a difference of colours, the brightness, denoised.
        """

    def cells(self, shape: tuple[int, int], grid: Grid = EVERY) -> Cells | None:
        """The cells in which a step of an image of this shape is computed; None if it looks at all of it at once."""

    def facts(self) -> dict[str, object]:
        """A summary of the prior, for printing."""


def tweedie(prior: DiffusedPrior, y: FloatArray, sigma: ArrayLike) -> FloatArray:
    """Posterior mean E[X | Y = y] = y + sigma² ∇ log f(y, t): Tweedie, Eq. (3).

    Parameters
    ----------
    prior : DiffusedPrior
        Any, on patches or on whole images.
    y : ndarray
        Noisy patches (..., b·b), or images (..., H, W), as the prior takes them.
    sigma : array_like
        Standard deviation of their noise: one number, or one per patch or image.

    Returns
    -------
    ndarray
        Of the shape of y.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> prior = hp.load("patch7")
    >>> noisy = prior.sample(5, 0.1, rng=np.random.default_rng(0))
    >>> bool(np.allclose(hp.tweedie(prior, noisy, 0.1), prior.posterior(noisy, 0.1).mean))
    True
    """
    score = prior.score(y, sigma)
    axes = (..., None, None) if isinstance(prior, ImagePrior) else (..., None)  # those of one image, or of one patch
    return np.asarray(y + np.square(sigma, dtype=np.float64)[axes] * score).astype(score.dtype)


def denoise_once(prior: Prior, image: FloatArray, noise: float | FloatArray | Noise) -> FloatArray:
    """E[X | Y = image], averaged over overlapping patches: (H, W), in float32. The image holds no NaN."""
    return prior.denoise_step(np.ascontiguousarray(image, np.float32), as_noise(noise))


class StoredPrior(Prior, Protocol):
    """A prior with a name for its kind (see `heatprior.kinds`) and a file of its own."""

    kind: ClassVar[str]

    @property
    def parameters(self) -> int:
        """The number of learnt parameters."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the prior as one safetensors file."""


def with_card(prior: Any, **facts: object) -> dict[str, object]:
    """The facts of a prior, and what its card says in words; settings on it, tables of numbers, are for programs."""
    known = {"name": prior.card.get("name", "none"), "kind": prior.kind, **facts, "parameters": prior.parameters}
    return known | {key: value for key, value in prior.card.items() if key not in known and isinstance(value, str)}


def denoise_whole(prior: ImagePrior, image: FloatArray, noise: Noise, progress: Progress | None = None) -> FloatArray:
    """Denoise an image (H, W) of float32 by one step with a prior of whole images, as `Prior.denoise_step` does.

    Such a prior takes images to be cyclic and of one noise level. So an image is mirrored beyond its edges, as far as
    the filters reach and on to a size that suits the Fourier transform. A map of noise levels is taken as a few levels:
    the changes of each pixel are straight in log sigma between them.
    """
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
        self.log_prob, self.score, self.sample = prior.log_prob, prior.score, prior.sample
        self.card: Mapping[str, Any] = getattr(prior, "card", {})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._prior, name)

    @cached_property
    def patch_shape(self) -> tuple[int, ...]:
        """That of the object, or of one of its samples; () if it is one of whole images."""
        declared: tuple[int, ...] | None = getattr(self._prior, "patch_shape", None)
        if declared is not None or isinstance(self._prior, ImagePrior):
            return declared or ()
        pixels = self._prior.sample(1, rng=np.random.default_rng(0)).shape[-1]
        if isqrt(pixels) ** 2 != pixels:
            raise InvalidInputError(f"the samples of this prior have {pixels} pixels; patches must be square")
        return (isqrt(pixels), isqrt(pixels))

    @property
    def schedules(self) -> Schedules:
        """The schedules on the card, if there is one."""
        return schedules_on(self.card)

    def denoise_step(
        self, image: FloatArray, noise: Noise, progress: Progress | None = None, *, grid: Grid = EVERY
    ) -> FloatArray:
        """One step of empirical Bayes, see `Prior`."""
        if isinstance(self._prior, ImagePrior):
            return denoise_whole(self._prior, image, noise, progress)
        size, width = self.patch_shape[0], image.shape[1]
        all_rows, all_columns = grid.places(image.shape, size)

        def sum_of_changes(band: range) -> FloatArray:
            start, end = band.start, band.stop
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
