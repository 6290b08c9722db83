"""The noise around every pixel: a map of levels with their errors, in the units of the image."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import ChannelAxis, FloatArray
from heatprior.border.pixels import as_channels, as_pixels, in_unit_range
from heatprior.border.scale import full_scale
from heatprior.errors import InvalidInputError
from heatprior.noise.levels import check_holds_patches, clipping, likelihood_of, without_gaps
from heatprior.noise.maps import WINDOW, local_levels, to_pixels
from heatprior.priors.protocol import DiffusedPrior
from heatprior.zoo import as_prior


@dataclass(frozen=True)
class LocalNoise:
    """A map of noise levels and their standard errors, of the shape and in the units of the image.

    Attributes
    ----------
    sigma : ndarray
        Standard deviation of the noise around every pixel.
    stderr : ndarray
        Its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> noisy = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((96, 96))
    >>> found = noise_map(noisy)
    >>> bool((abs(found.sigma - 0.1) < 5 * found.stderr).all())
    True
    """

    sigma: FloatArray
    stderr: FloatArray


def noise_map(
    image: ArrayLike,
    *,
    prior: str | PathLike[str] | DiffusedPrior = "patch7",
    window: float = WINDOW,
    channel_axis: ChannelAxis = None,
    white: float | None = None,
) -> LocalNoise:
    """The standard deviation of the noise around every pixel, in the units of the image, with its standard error.

    Parameters
    ----------
    image : array_like, (..., H, W)
        As in `denoise`.
    prior : str, path or DiffusedPrior
        Which says what images are like.
    window : float
        Width in pixels of the weights, a Gaussian: a wider one is smoother and surer.
    channel_axis : int, optional
        As in `denoise`.
    white : float, optional
        As in `denoise`.

    Returns
    -------
    LocalNoise
        `.sigma` and `.stderr`, of the shape and in the units of the image. Levels below 0.0004 of full scale are given
        as that.

    Examples
    --------
    >>> import numpy as np
    >>> noisy = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((96, 96))
    >>> found = noise_map(noisy)
    >>> found.sigma.shape == found.stderr.shape == noisy.shape
    True
    """
    if not (isinstance(window, int | float | np.integer | np.floating) and 1.0 <= window < np.inf):
        raise InvalidInputError(f"window is {window!r}; expected the width of the weights in pixels, 1 or more")
    pixels = as_pixels(image)
    full = full_scale(white, pixels, channel_axis)
    likelihood = likelihood_of(as_prior(prior))
    channels = as_channels(pixels, channel_axis)
    check_holds_patches(channels, likelihood)
    maps = [np.empty(pixels.shape, np.float32) for _ in range(2)]
    for index in np.ndindex(channels.shape[:-2]):
        grey = in_unit_range(channels[index], full)
        local = local_levels(likelihood, grey, without_gaps(grey), clipping(grey), window)
        sigma = np.exp(to_pixels(local, local.log_sigma, grey.shape)) * full
        as_channels(maps[0], channel_axis)[index] = sigma
        as_channels(maps[1], channel_axis)[index] = to_pixels(local, local.error, grey.shape) * sigma
    return LocalNoise(*maps)
