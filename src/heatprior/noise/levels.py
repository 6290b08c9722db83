"""How much noise is in an image: the noise level at which the prior finds it most likely, section 4.4.

sigma = argmax Σ_blocks log Σ_c π_c f_c(block, sigma): the density of noisy patches is exact and normalised at every
noise level, so the level is a maximum-likelihood estimate. See contrasts.py for the f_c and likelihood.py for the peak.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import FloatArray, IntArray
from heatprior.errors import InvalidInputError
from heatprior.noise.blocks import GUESS, Blocks, Clipped, block_densities, side_for, stride_for, usable_patches
from heatprior.noise.contrasts import OCTAVES, check_in_range
from heatprior.noise.directions import NoisePrior, filters_below, repetition
from heatprior.noise.likelihood import Peak, Profile, find_peak, profile, standard_error
from heatprior.noise.whole_images import whole_image_level
from heatprior.pixels.gaps import fill_missing
from heatprior.pixels.inputs import as_channels, as_pixels, as_prior, as_white
from heatprior.priors.adapter import patch_size
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.patch import PatchPrior
from heatprior.priors.protocol import DiffusedPrior, ImagePrior

FINE = np.log(2.0) / 8.0  # step of log sigma, in the second look
REACH = 5  # steps to either side
MOST_LOOKS = 6
PART = 42  # pixels along the side of a part of the image whose score counts as independent; at least two blocks
FEWEST_PARTS = 16
CLIPPED, FEWEST_CLIPPED = 0.001, 3  # of the pixels, at the lowest or highest value: if more, values are cut off there
HELD_TEXTURE, MISFIT = 4.2 / 255, 0.01  # what photographs add to the variance of the noise, see `model_error`
MIXTURE_TEXTURE, MIXTURE_MISFIT = 3.0 / 255, 0.02  # the same for mixtures, which know texture better
WHOLE_TEXTURE, WHOLE_MISFIT = 7.0 / 255, 0.022  # the same for priors of whole images, which know one contrast only

Densities = Callable[[FloatArray, IntArray], Blocks]  # of log sigmas and filters


class NoiseLevel(NamedTuple):
    """The standard deviation of the noise, in the units of the image, and how well it is known.

    `stderr` is the statistical error if images are as the prior says; `model_error` the typical error because
    photographs are not (fine texture looks like noise), as measured on validation images. Numbers, or arrays (…) over
    images and channels.
    """

    sigma: float | FloatArray
    stderr: float | FloatArray
    model_error: float | FloatArray

    def __float__(self) -> float:
        return float(self.sigma)


class Estimate(NamedTuple):
    """Of one grey image, scaled to [0, 1]."""

    sigma: float
    stderr: float


def estimate_sigma(
    image: ArrayLike,
    *,
    prior: str | PathLike[str] | DiffusedPrior = "patch7",
    channel_axis: int | None = None,
    white: float | None = None,
) -> NoiseLevel:
    """The standard deviation of white Gaussian noise in an image, in the units of the image, with its error.

    `image`, `channel_axis` and `white` are those of `denoise`. One image gives numbers; with a channel axis, or more
    axes in front, arrays: one value for each channel of each image. Missing (NaN) and clipped pixels do not count.
    A sigma of 0 means less than `stderr`, such as in an image without any noise.
    """
    pixels = as_pixels(image)
    full = as_white(white, pixels)
    model = as_prior(prior)
    channels = as_channels(pixels, channel_axis)
    if not isinstance(model, ImagePrior):
        model = as_noise_prior(model)
        check_size(channels, model)
    estimates = [_level_of(scaled(channels[index], full), model) for index in np.ndindex(channels.shape[:-2])]
    sigma, stderr = (np.array(values) for values in zip(*estimates, strict=True))
    error = model_error(sigma, model)
    shape = channels.shape[:-2] if channel_axis is not None else channels.shape[:-3]
    if shape == ():
        return NoiseLevel(*(float(values[0] * full) for values in (sigma, stderr, error)))
    return NoiseLevel(*((values * full).reshape(shape) for values in (sigma, stderr, error)))


def _level_of(image: FloatArray, prior: NoisePrior | ImagePrior) -> Estimate:
    """By a prior on patches, or on whole images (which does not know of clipped pixels)."""
    if isinstance(prior, ImagePrior):
        return Estimate(*whole_image_level(without_gaps(image), prior))
    return noise_level(image, prior)


def model_error(sigma: FloatArray, prior: DiffusedPrior) -> FloatArray:
    """The typical error of sigma in photographs: a fixed variance, and a part of that of the noise, over 2 sigma.

    Without noise there is none. Fitted to the validation images of BSDS500 at 255 sigma from 5 to 100 (for mixtures, on
    sixteen of them; for priors of whole images, with `wavelet-density` on eight of them, from 5 to 50).
    """
    texture, misfit = HELD_TEXTURE, MISFIT
    if isinstance(prior, GaussianMixturePrior):
        texture, misfit = MIXTURE_TEXTURE, MIXTURE_MISFIT
    elif isinstance(prior, ImagePrior):
        texture, misfit = WHOLE_TEXTURE, WHOLE_MISFIT
    limited = np.maximum(sigma, texture / 2)
    return np.where(sigma > 0, (texture**2 + misfit * limited**2) / (2.0 * limited), 0.0)


def noise_level(image: FloatArray, prior: NoisePrior) -> Estimate:
    """Of a grey image (H, W) scaled to [0, 1], with NaN where pixels are missing."""
    size, stride = patch_size(prior), stride_for(prior, image.shape)
    whole = without_gaps(image)
    clipped = clipping(image)

    def densities(log_sigmas: FloatArray, filters: IntArray) -> Blocks:
        middle = float(np.exp(log_sigmas.mean())) if len(log_sigmas) <= 2 * REACH + 1 else GUESS
        usable = usable_patches(image, size, stride, clipped, middle)
        return block_densities(prior, whole, log_sigmas, filters, usable, stride)

    return search(prior, densities, stride, max(2, PART // (stride * side_for(prior))))


def level_of_patches(patches: FloatArray, prior: NoisePrior) -> Estimate:
    """The same of independent patches (n, b²)."""
    size = patch_size(prior)
    mosaic = patches.reshape(-1, size, size).swapaxes(0, 1).reshape(size, -1)
    usable = np.ones((1, len(patches)), bool)

    def densities(log_sigmas: FloatArray, filters: IntArray) -> Blocks:
        return block_densities(prior, mosaic, log_sigmas, filters, usable, size, 1)

    return search(prior, densities, size, 1)


def search(prior: NoisePrior, densities: Densities, stride: int, part: int) -> Estimate:
    """The peak of the likelihood: first among octaves, then closely, with the filters that suit it.

    The scores of parts of part×part blocks count as independent.
    """
    octaves = np.log(OCTAVES)
    filters = filters_below(prior, 0.0)
    blocks, fitted, peak = fit(octaves, filters, densities)
    for _ in range(MOST_LOOKS):
        log_sigma = float(np.clip(peak.log_sigma[0], octaves[0], octaves[-1]))
        centre = octaves[0] + FINE * np.rint((log_sigma - octaves[0]) / FINE)  # on a grid: images share tables
        used, filters = filters, filters_below(prior, float(np.exp(log_sigma)))
        if centre == fitted.log_sigmas[REACH] and np.array_equal(used, filters):
            break
        blocks, fitted, peak = fit(centre + FINE * np.arange(-REACH, REACH + 1), filters, densities)
    log_sigma = float(peak.log_sigma[0])
    check_in_range(log_sigma)
    if log_sigma <= octaves[0]:
        return Estimate(0.0, float(OCTAVES[0]))
    parts = parts_of(blocks, part)
    error = np.sqrt(repetition(prior, filters, stride) / peak.curvature)
    if len(np.unique(parts[blocks.usable])) >= FEWEST_PARTS:  # few would not tell the spread
        groups = blocks.usable.astype(np.int64) - 1
        error = np.maximum(error, standard_error(blocks.log_densities, fitted, peak, parts, groups))
    return Estimate(float(np.exp(log_sigma)), float(np.exp(log_sigma) * error[0]))


def fit(log_sigmas: FloatArray, filters: IntArray, densities: Densities) -> tuple[Blocks, Profile, Peak]:
    """The blocks of an image as one group."""
    blocks = densities(log_sigmas, filters)
    fitted = profile(log_sigmas, blocks.log_densities, blocks.usable.astype(np.int64) - 1, 1, blocks.usual)
    return blocks, fitted, find_peak(log_sigmas, fitted.values)


def parts_of(blocks: Blocks, side: int) -> IntArray:
    """The number of the part, side×side blocks, that each block belongs to."""
    rows, columns = (np.arange(count) // side for count in blocks.shape)
    return np.asarray((rows[:, None] * (columns[-1] + 1) + columns).reshape(-1))


def clipping(image: FloatArray) -> Clipped:
    """The lowest and highest value, where so many pixels have it that values beyond must have been cut off."""
    low, high = float(np.nanmin(image)), float(np.nanmax(image))
    many = max(CLIPPED * image.size, FEWEST_CLIPPED)
    return (
        low if np.count_nonzero(image == low) > many else -np.inf,
        high if np.count_nonzero(image == high) > many else np.inf,
    )


def as_noise_prior(prior: str | PathLike[str] | DiffusedPrior) -> NoisePrior:
    """A prior whose density is known in some directions by themselves: noise is estimated with those."""
    model = as_prior(prior)
    if not isinstance(model, PatchPrior | GaussianMixturePrior):
        raise InvalidInputError(
            "noise is estimated with a GaussianMixturePrior or a PatchPrior, not with "
            f"{type(model).__name__}; give sigma"
        )
    return model


def check_size(channels: NDArray[Any], prior: NoisePrior) -> None:
    """Refuse images that hold no patch."""
    size = patch_size(prior)
    if min(channels.shape[-2:]) < size:
        raise InvalidInputError(
            f"the image is {channels.shape[-2]}×{channels.shape[-1]} pixels but the prior acts on patches of "
            f"{size}×{size}; give a larger image, or a prior on smaller patches"
        )


def scaled(pixels: NDArray[Any], white: float) -> FloatArray:
    """Grey levels from 0 to 1, in float32."""
    return np.asarray(np.multiply(pixels, 1.0 / white, dtype=np.float32))


def without_gaps(image: FloatArray) -> FloatArray:
    """The image with NaN filled."""
    if not np.isnan(image).any():
        return image
    whole = image.copy()
    fill_missing(whole)
    return whole
