"""The protocols of priors: the density of a noisy patch at every noise level, and what the algorithms need besides.

Section 2.2 of the paper. `sigma` is the standard deviation of the noise, sqrt(2t), in the units of the patches: one
number, or one per patch (an array that broadcasts against the leading axes of the patches). It is never state.

`DiffusedPrior` and `ImagePrior` are what a user has to write. `Prior` is what the algorithms ask for: the priors of
this package have all of it, and `adapter.complete` adds to any other what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.patches import EVERY, Cells, Grid
from heatprior.kernels.row_bands import Progress
from heatprior.noise_value import Noise, as_noise
from heatprior.priors.schedules import Schedules


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
        ...

    def score(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """∇ log f(y, t)."""
        ...

    def sample(self, count: int, sigma: ArrayLike = 0.0, *, rng: np.random.Generator) -> FloatArray:
        """Independent draws of the noisy patch."""
        ...


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
        ...

    @property
    def unit(self) -> int:
        """The period of the coarsest band: pixels that a piece of an image needs along each side."""
        ...

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
        ...

    def denoise(self, image: FloatArray, sigma: float) -> FloatArray:
        """One step of empirical Bayes of an image (H, W) of any size, the same wherever the image is shifted to."""
        ...

    def misfit(self, image: FloatArray, sigma: float) -> float:
        """A loss that is least, on average, at the noise level of the image (H, W): −log f if that is normalised."""
        ...


class NoiseDirections(NamedTuple):
    """J orthonormal directions of patches, how far clean patches spread in each, and which of them reveal the noise."""

    unit: FloatArray  # (J, a)
    spread: FloatArray  # (J,)
    weak: float  # a spread below this part of the noise is weak beside it
    fewest: int  # directions that are used at least: the weakest


class NoiseLikelihood(Protocol):
    """How likely patches are at each noise level, by a prior whose density is known in some directions by themselves.

    Patches have an unknown contrast, one of C. A block of patches_per_block² neighbours shares it.
    """

    @property
    def size(self) -> int:
        """b, the side of a patch."""
        ...

    @property
    def directions(self) -> NoiseDirections:
        """The directions to choose from."""
        ...

    @property
    def contrast_weights(self) -> FloatArray | None:
        """The frequency of each contrast, (C,); None if the prior does not know it and the image alone decides."""
        ...

    @property
    def stride(self) -> int:
        """Pixels between two patches, at least: closer ones add hardly any information."""
        ...

    @property
    def most_patches(self) -> int:
        """The most patches to use; in larger images they lie further apart."""
        ...

    @property
    def photograph_error(self) -> tuple[float, float]:
        """What photographs, unlike the prior, add to the variance of the noise: a constant, and a fraction of it."""
        ...

    def block_side(self, wanted: int) -> int:
        """The number of patches along the side of a block; `wanted` would suit filters."""
        ...

    def log_densities(self, image: FloatArray, sigmas: FloatArray, chosen: IntArray, stride: int) -> FloatArray:
        """(S, C, rows, columns): of the patches of an image, stride pixels apart, in the chosen directions."""
        ...


class Prior(DiffusedPrior, Protocol):
    """A prior with all that restoring images, estimating noise and showing it need."""

    @property
    def card(self) -> Mapping[str, Any]:
        """Provenance and settings of the prior."""
        ...

    @property
    def patch_shape(self) -> tuple[int, ...]:
        """(b, b) pixels of a patch; () for a prior of whole images of any size."""
        ...

    @property
    def schedules(self) -> Schedules:
        """Noise levels and weights of half-quadratic splitting, step by step."""
        ...

    @property
    def noise_likelihood(self) -> NoiseLikelihood | None:
        """The likelihood by which noise is estimated from patches; None if there is none."""
        ...

    def denoise_step(
        self,
        image: FloatArray,
        noise: Noise,
        progress: Progress | None = None,
        *,
        grid: Grid = EVERY,
    ) -> FloatArray:
        """E[X | Y = image] of an image (H, W) of float32 without NaN: a new image.

        Patches that overlap are averaged: all of them, or those that lie on a `grid`.
        """
        ...

    def cells(self, shape: tuple[int, int], grid: Grid = EVERY) -> Cells | None:
        """The cells in which a step of an image of this shape is computed; None if it looks at all of it at once."""
        ...

    def facts(self) -> dict[str, object]:
        """A summary of the prior, for printing."""
        ...


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


def denoise_once(
    prior: Prior,
    image: FloatArray,
    noise: float | FloatArray | Noise,
    progress: Progress | None = None,
    *,
    grid: Grid = EVERY,
) -> FloatArray:
    """E[X | Y = image], averaged over overlapping patches on the grid: (H, W), in float32. The image holds no NaN."""
    return prior.denoise_step(np.ascontiguousarray(image, np.float32), as_noise(noise), progress, grid=grid)


class StoredPrior(Prior, Protocol):
    """A prior with a name for its kind (see `heatprior.kinds`) and a file of its own."""

    kind: ClassVar[str]

    @property
    def parameters(self) -> int:
        """The number of learnt parameters."""
        ...

    def save(self, path: str | PathLike[str]) -> None:
        """Write the prior as one safetensors file."""
        ...


def with_card(facts: dict[str, object], card: Mapping[str, Any]) -> dict[str, object]:
    """The facts of a prior, and the entries of its card that they do not name already."""
    return facts | {key: value for key, value in card.items() if key not in facts}
