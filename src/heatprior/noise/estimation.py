"""Unknown noise: one level, a line over brightness, a map, or correlated noise, chosen by evidence.

Correlated noise is looked for in an image as a whole, the others channel by channel (channel_noise.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.row_bands import Progress, part_of, span_of
from heatprior.lazy import room_of
from heatprior.noise.cameras import MODEL_ERROR, FoundProfile, find_profile, noise_of_colours
from heatprior.noise.channel_noise import ChannelNoise, channel_noise, why_constant
from heatprior.noise.grey_scale import scale_for_noise, scale_of_images
from heatprior.noise.levels import Estimate, check_holds_patches, likelihood_of, without_gaps
from heatprior.noise.likelihood import OCTAVES
from heatprior.noise.maps import to_pixels
from heatprior.noise.profiles import NoiseProfile, smooth_brightness
from heatprior.pixels.channels import COLOUR, is_alpha, mixed
from heatprior.pixels.gaps import with_all_or_no_channel_missing
from heatprior.pixels.inputs import as_channels, as_pixels, as_white, in_unit_range, type_white
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.protocol import DiffusedPrior, Prior
from heatprior.zoo import as_prior

MODELS = ("constant", "affine", "map", "correlated")
CORRELATED_BY = "mixture"  # the prior by which correlated noise is found
CORRELATED_PART = 0.5  # of the time


@dataclass(frozen=True)
class NoiseReport:
    """What `estimate_noise` found.

    Attributes
    ----------
    sigma : ndarray
        What `denoise` takes: the standard deviation at every pixel, in the units and of the shape of the image.
    channels : tuple of ChannelNoise
        Image by image, channel by channel, grey levels being 0 to 1: model, level, gain and offset, with their errors.
    white : float
        The value that was taken for full scale.
    profiles : tuple of NoiseProfile or None
        Image by image, where the noise is correlated.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> noisy = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((96, 96))
    >>> report = hp.estimate_noise(noisy)
    >>> report.models
    ('constant',)
    >>> round(report.channels[0].level.sigma * report.white, 2)
    0.1
    """

    sigma: FloatArray
    channels: tuple[ChannelNoise, ...]
    white: float
    profiles: tuple[NoiseProfile | None, ...] = ()

    @property
    def profile(self) -> NoiseProfile | None:
        """Of the first image, if its noise is correlated."""
        return self.profiles[0] if self.profiles else None

    @property
    def models(self) -> tuple[str, ...]:
        """Of each channel: "constant", "affine", "map" or "correlated"."""
        return tuple(channel.model for channel in self.channels)


def estimate_noise(
    image: ArrayLike,
    noise: str = "auto",
    *,
    prior: str | PathLike[str] | DiffusedPrior = "patch7",
    channel_axis: int | None = None,
    white: float | None = None,
    progress: Progress | None = None,
) -> NoiseReport:
    """The noise of an image, as `denoise` without sigma takes it: what kind it is, how much and where.

    Parameters
    ----------
    image : array_like, (..., H, W)
        As in `denoise`.
    noise : {"auto", "constant", "affine", "map", "correlated"}
        One level for each channel; variance = gain · brightness + offset; a level for every window; noise that is
        correlated from pixel to pixel, its strength a function of brightness (always found with the prior "mixture");
        or "auto": the one with the most evidence. Where a kind cannot be told, a warning says why, and one level is
        taken.
    prior : str, path or DiffusedPrior
        Which says what images are like.
    channel_axis : int, optional
        As in `denoise`.
    white : float, optional
        As in `denoise`.
    progress : callable, optional
        Called with the fraction done, 0 to 1.

    Returns
    -------
    NoiseReport
        Its `.sigma` is what `denoise` takes, in the units of the image.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> noisy = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((96, 96))
    >>> report = hp.estimate_noise(noisy, "constant")
    >>> report.models, report.sigma.shape
    (('constant',), (96, 96))
    """
    check_kind(noise)
    if room := room_of(image):
        lazy: NoiseReport = room.estimate_noise(image, noise, prior=prior, channel_axis=channel_axis, white=white)
        return lazy
    pixels = as_pixels(image)
    full = scale_for_noise(white, pixels, channel_axis)
    model = as_prior(prior)
    channels = as_channels(pixels, channel_axis)
    check_holds_patches(channels, likelihood_of(model))
    indices = list(np.ndindex(channels.shape[:-3]))
    found: list[ChannelNoise] = []
    profiles: list[NoiseProfile | None] = []
    for number, index in enumerate(indices):
        own, profile = _image_noise(channels[index], full, model, noise, part_of(progress, number, len(indices)))
        found += own
        profiles.append(profile)
    if noise != "auto" and (reasons := [why_constant(channel) for channel in found if channel.model != noise]):
        why = ", ".join(dict.fromkeys(reasons))
        warnings.warn(f"{noise} noise cannot be estimated: {why}; one level was used", UserWarning, stacklevel=2)
    if all(channel.model == "constant" for channel in found):
        levels = np.array([channel.sigma for channel in found]).reshape(channels.shape[:-2])
        sigma = np.broadcast_to(levels[..., None, None] * full, channels.shape)
    else:
        sigma = np.empty(channels.shape, np.float32)
        for place, channel in zip(np.ndindex(channels.shape[:-2]), found, strict=True):
            sigma[place] = np.asarray(channel.sigma) * full
    scale = full / type_white(pixels)
    scaled = tuple(profile if profile is None else replace(profile, scale=scale) for profile in profiles)
    return NoiseReport(_as_image(sigma, channel_axis), tuple(found), full, scaled)


def _image_noise(
    channels: NDArray[Any], full: float, prior: Prior, noise: str, progress: Progress | None
) -> tuple[list[ChannelNoise], NoiseProfile | None]:
    """Of each channel (channels, H, W) of an image, and its profile if the noise is correlated."""
    rest = progress
    if noise in ("auto", "correlated"):
        first, rest = span_of(progress, 0.0, CORRELATED_PART), span_of(progress, CORRELATED_PART, 1.0)
        found = correlated_noise([channels], full, first, doubtful=noise == "auto")
        if found is not None and (noise == "correlated" or found.is_correlated):
            return _correlated_channels(channels, full, found), found.profile
        if first is not None:
            first(1.0)  # whoever cancels does not wait for the rest
    count = len(channels)
    kind = "constant" if noise == "correlated" else noise
    return [
        channel_noise(in_unit_range(channel, full), prior, kind, part_of(rest, number, count))
        for number, channel in enumerate(channels)
    ], None


def correlated_noise(
    images: Sequence[NDArray[Any]], full: float, progress: Progress | None = None, *, doubtful: bool = False
) -> FoundProfile | None:
    """The profile of images (channels, H, W) of one camera, without their transparency; None if it cannot be told.

    `doubtful` is that of `find_profile`.
    """
    prior = as_prior(CORRELATED_BY)
    colours = len(images[0]) - is_alpha(images[0])
    if not isinstance(prior, GaussianMixturePrior) or min(min(image.shape[-2:]) for image in images) < prior.size:
        return None
    grey = [in_unit_range(with_all_or_no_channel_missing(image[:colours]), full) for image in images]
    return find_profile(prior, grey, is_colour=colours == len(COLOUR), doubtful=doubtful, progress=progress)


def noise_profile(
    images: Sequence[ArrayLike], *, channel_axis: int | None = None, white: float | None = None
) -> NoiseProfile:
    """The noise profile of a camera from pictures of one kind together, for `denoise(image, noise=profile)`.

    Parameters
    ----------
    images : sequence of array_like
        Each (H, W), or with a `channel_axis`; they may differ in size.
    channel_axis : int, optional
        As in `denoise`.
    white : float, optional
        As in `denoise`, one for all images.

    Returns
    -------
    NoiseProfile
        The noise of each channel, or of brightness and two differences for colours.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> from scipy.ndimage import gaussian_filter
    >>> white_noise = np.random.default_rng(0).standard_normal((2, 96, 96))
    >>> pictures = [0.5 + 0.3 * gaussian_filter(noise, 0.7) for noise in white_noise]
    >>> hp.noise_profile(pictures).channels[0].sigma > 0.1
    True
    """
    pixels = [as_pixels(image) for image in images]
    if not pixels or any(one.ndim != 2 + (channel_axis is not None) for one in pixels):
        raise InvalidInputError("a noise profile is estimated from single images; give a list of (H, W), or of colours")
    channels = [as_channels(one, channel_axis) for one in pixels]
    if len({len(one) for one in channels}) > 1:
        raise InvalidInputError("the images have different numbers of channels; give images of one camera")
    by_type = {type_white(one) for one in pixels}
    if len(by_type) > 1:
        raise InvalidInputError("the images are of different types; give images of one camera and one type")
    full = scale_of_images(channels) if white is None else as_white(white, pixels[0])
    found = correlated_noise(channels, full)
    if found is None:
        raise InvalidInputError("the images hold too few usable patches to tell correlated noise; give larger ones")
    return replace(found.profile, scale=full / by_type.pop())


def _correlated_channels(channels: NDArray[Any], full: float, found: FoundProfile) -> list[ChannelNoise]:
    is_colour = len(found.profile.channels) == len(COLOUR)
    evidence = {"constant": 0.0, "correlated": found.evidence}
    result = []
    for number, noise in enumerate(noise_of_colours(found.profile, is_colour=is_colour)):
        grey = mixed(channels[:3], COLOUR[0] / full) if is_colour else in_unit_range(channels[number], full)
        levels = np.sqrt(np.interp(smooth_brightness(without_gaps(grey)), noise.brightness, noise.variances))
        level, error = Estimate(noise.sigma, noise.stderr), MODEL_ERROR * noise.sigma
        result.append(ChannelNoise("correlated", level, noise.line, evidence, levels, None, error, noise))
    for _ in channels[len(result) :]:  # transparency
        least = Estimate(0.0, float(OCTAVES[0]))
        result.append(ChannelNoise("correlated", least, None, evidence, least.stderr, None, 0.0))
    return result


def check_kind(noise: str) -> None:
    """Refuse what is no kind of noise."""
    if noise not in ("auto", *MODELS):
        raise InvalidInputError(f"noise is {noise!r}; expected 'auto', {', '.join(map(repr, MODELS))}")


def noise_levels_of(report: NoiseReport, shape: tuple[int, ...], channel_axis: int | None) -> FloatArray:
    """The local noise levels that a report rests on, whichever model was chosen, as an image of this shape."""
    levels = np.empty(shape, np.float32)
    channels = as_channels(levels, channel_axis)
    for index, channel in zip(np.ndindex(channels.shape[:-2]), report.channels, strict=True):
        local = channel.local
        found = channel.sigma if local is None else np.exp(to_pixels(local, local.log_sigma, channels.shape[-2:]))
        channels[index] = np.asarray(found) * report.white
    return levels


def _as_image(channels: NDArray[Any], channel_axis: int | None) -> NDArray[Any]:
    """The inverse of `as_channels`."""
    return channels[..., 0, :, :] if channel_axis is None else np.moveaxis(channels, -3, channel_axis)
