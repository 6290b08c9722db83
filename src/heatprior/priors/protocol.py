"""What every prior offers, whatever it is made of: the density of a noisy patch at every noise level.

Section 2.2 of the paper. `sigma` is the standard deviation of the noise, sqrt(2t), in the units of the patches: one
number, or one per patch (an array that broadcasts against the leading axes of the patches). It is never state.

`DiffusedPrior` and `ImagePrior` are what a user has to write. `Prior` is what the algorithms ask for: the priors of
this package have all of it, and `adapter.complete` adds to any other what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.grids import EVERY, Cells, Grid
from heatprior.kernels.row_bands import Progress, Store
from heatprior.noise_model import Noise
from heatprior.priors.schedules import Schedules


class Posterior(NamedTuple):
    """Mean and variance, pixel by pixel, of the clean patch given the noisy one.

    Attributes
    ----------
    mean : ndarray
        Of the shape of the patches.
    variance : ndarray
        The same.

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

    Whatever has these three methods is one: `denoise`, `tweedie` and `restore` take it.

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
    """One on whole images y (..., H, W), taken to be cyclic; `sigma` is one number or one per image.

    Its log_prob may lack a constant, and its samples may be approximate: each prior says so.

    Examples
    --------
    >>> import heatprior as hp
    >>> isinstance(hp.load("wavelet"), hp.ImagePrior), isinstance(hp.load("patch7"), hp.ImagePrior)
    (True, False)
    """

    @property
    def margin(self) -> int:
        """How many pixels beyond an edge matter."""
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
        """Independent draws of the noisy image, (count, H, W); `progress` is told the part that is done."""
        ...

    def denoised(self, image: FloatArray, sigma: float) -> FloatArray:
        """One step of empirical Bayes of an image (H, W) of any size, the same wherever the image is shifted to."""
        ...

    def misfit(self, image: FloatArray, sigma: float) -> float:
        """What is least, on average, at the noise level that an image (H, W) has: −log f if that is normalised."""
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
        """How frequent each contrast is, (C,); None if the prior does not know, and the image alone decides."""
        ...

    @property
    def stride(self) -> int:
        """Pixels between two patches, at least: closer ones add hardly any information."""
        ...

    @property
    def most_patches(self) -> int:
        """Of larger images, patches that lie further apart are taken."""
        ...

    @property
    def photograph_error(self) -> tuple[float, float]:
        """What photographs, unlike the prior, add to the variance of the noise: a constant, and a part of it."""
        ...

    def block_side(self, wanted: int) -> int:
        """How many patches along the side of a block, of which `wanted` would suit filters."""
        ...

    def log_densities(self, image: FloatArray, sigmas: FloatArray, chosen: IntArray, stride: int) -> FloatArray:
        """(S, C, rows, columns): of the patches of an image, stride pixels apart, in the chosen directions."""
        ...


class Prior(DiffusedPrior, Protocol):
    """What restoring images, estimating noise and showing a prior need of it."""

    @property
    def card(self) -> Mapping[str, Any]:
        """Where it comes from, and what suits it."""
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
        store: Store,
        progress: Progress | None = None,
        *,
        grid: Grid = EVERY,
    ) -> None:
        """Hand to `store`, some rows at a time, by how much E[X | Y] differs from the image (H, W), in float32.

        Patches that overlap are averaged: all of them, or those that lie on a `grid`. The rows that `store` is given
        may be overwritten.
        """
        ...

    def cells(self, shape: tuple[int, int], grid: Grid = EVERY) -> Cells | None:
        """The cells in which a step of an image of this shape is computed; None if it looks at all of it at once."""
        ...

    def facts(self) -> dict[str, object]:
        """What it is, in a few words each, for people to read."""
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
