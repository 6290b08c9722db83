"""Images that the clean one might be, given the noisy one: for a flicker picture, and for error bars of measurements.

Priors of whole images are drawn from exactly, coefficient by coefficient. Of priors of patches each patch is drawn
exactly; where patches overlap, their deviations from the posterior mean are added and divided by the root of their
number, so that a pixel varies as much as in one patch, and neighbours go together as they do there. The deviations are
then scaled to the standard errors of the denoised image, around which the draws lie.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray
from heatprior.border.entry import enter
from heatprior.border.pixels import check_one_level
from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import Grid, average, extract
from heatprior.priors.protocol import DiffusedPrior
from heatprior.restoration.denoising import Settings
from heatprior.restoration.error_bars import denoise_with_error
from heatprior.zoo import as_prior

LEAST_VARIANCE = 1e-12


def posterior_samples(
    image: ArrayLike,
    sigma: float,
    count: int = 1,
    *,
    prior: str | PathLike[str] | DiffusedPrior = "mixture",
    rng: np.random.Generator,
    white: float | None = None,
) -> FloatArray:
    """Draw the clean image from its posterior, given a grey one with noise `sigma`.

    Parameters
    ----------
    image : array_like, (H, W)
        A grey image, as in `denoise`.
    sigma : float
        Standard deviation of the noise, in the units of the image.
    count : int
        Number of draws.
    prior : str, path or DiffusedPrior
        A prior of patches, a mixture, or a wavelet prior.
    rng : numpy.random.Generator
        Random number generator.
    white : float, optional
        As in `denoise`.

    Returns
    -------
    ndarray, (count, H, W)
        Floats in the units of the image.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> rng = np.random.default_rng(0)
    >>> noisy = 0.5 + 0.1 * rng.standard_normal((32, 32))
    >>> hp.posterior_samples(noisy, 0.1, 3, rng=rng).shape
    (3, 32, 32)
    """
    entered = enter(image, white=white, sigma=sigma)
    pixels = entered.pixels
    if pixels.ndim != 2 or np.isnan(pixels).any():
        raise InvalidInputError(f"the image has shape {pixels.shape} or holds NaN; expected a whole grey image (H, W)")
    check_one_level(sigma)
    if count < 0:
        raise InvalidInputError(f"count is {count}; expected 0 or more")
    full = entered.full
    model: Any = as_prior(prior)
    if not hasattr(model, "posterior_sample"):
        raise InvalidInputError(
            "the prior has no posterior to draw from; take 'mixture', 'patch7' or 'wavelet-density'"
        )
    grey = np.asarray(pixels, np.float64) / full
    if not model.patch_shape:
        drawn = [_of_whole_image(grey, sigma / full, model, rng) for _ in range(count)]
        return np.array(drawn).reshape(count, *grey.shape) * full
    clean, error, *_ = denoise_with_error(grey, sigma / full, Settings(prior=prior, white=1.0, keep_outliers=True))
    drawn = [clean + error * _deviation(grey, sigma / full, model, rng) for _ in range(count)]
    return np.array(drawn).reshape(count, *grey.shape) * full


def _deviation(image: FloatArray, sigma: float, prior: Any, rng: np.random.Generator) -> FloatArray:
    """From the posterior means of patches on a grid, over its standard deviation, pixel by pixel: (H, W)."""
    size = prior.patch_shape[0]
    stride = max(1, size // 2)
    grid = Grid(stride, int(rng.integers(stride)))
    patches = extract(image, size, grid)
    mean, variance = prior.posterior(patches, sigma)
    deviations = prior.posterior_sample(patches, sigma, rng=rng) - mean
    shape = (image.shape[0], image.shape[1])
    counts = np.multiply.outer(*grid.counts(shape, size))
    total, spread = (counts * average(values, shape, size, grid) for values in (deviations, variance))
    return np.asarray(total / np.sqrt(np.maximum(spread, LEAST_VARIANCE)))


def _of_whole_image(image: FloatArray, sigma: float, prior: Any, rng: np.random.Generator) -> FloatArray:
    """An exact draw of an image that is mirrored beyond its edges, as far as the prior asks for."""
    before = prior.margin
    sides = [(before, before + -(length + 2 * before) % prior.unit) for length in image.shape]
    drawn = prior.posterior_sample(np.pad(image, sides, mode="symmetric"), sigma, rng=rng)
    return np.asarray(drawn[before : before + image.shape[0], before : before + image.shape[1]])
