"""`hp.denoise`: images of any type without their noise, channel by channel, by a recipe; blindly if need be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.row_bands import Progress, part_of, span_of
from heatprior.lazy import room_of
from heatprior.noise.estimation import NoiseReport, check_kind, estimate_noise
from heatprior.noise.levels import without_gaps
from heatprior.noise.profiles import NoiseProfile, smooth_brightness
from heatprior.noise_model import ConstantNoise, Noise, NoiseMap, mixed_noise
from heatprior.pixels.channels import ALONE, COLOUR, is_alpha, mixed
from heatprior.pixels.gaps import with_all_or_no_channel_missing
from heatprior.pixels.inputs import (
    as_channels,
    as_noise_level,
    as_pixels,
    as_white,
    integer_limits,
    warn_of_unlikely_units,
)
from heatprior.priors.protocol import DiffusedPrior
from heatprior.restoration.adaptation import as_mixture
from heatprior.restoration.qualities import QUALITIES, over_symmetries, prior_name
from heatprior.restoration.recipes import EVERY_SCALE, Recipe, usual_scales
from heatprior.restoration.splitting import METHODS
from heatprior.zoo import as_prior, shipped

ROWS_AT_ONCE = 64  # that are converted to the type of the result at a time
SCALES_OF_CORRELATED_NOISE = 2  # an error of its spectrum weighs more at every further scale
ESTIMATING_PART = 0.15  # of the time of denoising blindly, about


class Plan(NamedTuple):
    """An image that has been looked at: its pixels, its noise in its units and shape, and how it will be denoised."""

    pixels: NDArray[Any]
    channel_axis: int | None
    sigmas: FloatArray  # (..., channels, H, W)
    profiles: Sequence[NoiseProfile | None]
    full: float
    denoise_channel: Callable[..., FloatArray]
    card: Mapping[str, Any]  # of the prior
    report: NoiseReport | None

    def run(self, pixels: NDArray[Any], progress: Progress | None = None) -> NDArray[Any]:
        """Denoise these pixels, or others of the same shape with the same noise."""
        return _denoised(
            pixels, self.channel_axis, self.sigmas, self.profiles, self.full, self.denoise_channel, progress
        )


class Denoised(NamedTuple):
    """A denoised image, and what was found of its noise if that was estimated."""

    pixels: NDArray[Any]
    noise: NoiseReport | None


def denoise(
    image: ArrayLike,
    sigma: ArrayLike | None = None,
    *,
    noise: str | NoiseProfile = "auto",
    quality: str = "default",
    prior: str | PathLike[str] | DiffusedPrior | None = None,
    method: str = "hqs",
    adapt: bool = False,
    scales: int | None = None,
    channel_axis: int | None = None,
    white: float | None = None,
    progress: Progress | None = None,
) -> NDArray[Any]:
    """The image without its Gaussian noise of standard deviation `sigma`; same type, shape and units as it came.

    `image` is (..., H, W) of integers of up to 32 bits or of floats, or has one more axis, `channel_axis`; axes in
    front are independent images. NaN and infinite pixels are missing: they have no influence, and are NaN in the
    result. Results of integer type are rounded and clipped to it; floats are not clipped. Inside, all is float32.

    `sigma` is in the units of the image: one number, one per channel, or a map, (H, W) or of the shape of the image.
    Without it the noise is estimated, always with patch7 and mixture: `noise` says what kind it is, as in
    `estimate_noise`, which reports what was found; or it is the `NoiseProfile` of a camera. Correlated noise is exact
    for mixtures; other priors take it for white noise of the same strength.
    `quality` is "fast", "default" or "best": docs/quality.md says what they take and give.
    `prior` is the name of a shipped prior, the path of one, or any `DiffusedPrior` on square patches
    or on whole images (`ImagePrior`), instead of the one that belongs to the quality.
    `method` is "hqs", half-quadratic splitting, or "eb", one step of empirical Bayes: faster, less good.
    `adapt` fits the prior to the image first, without any clean pixel, if it is a mixture: better, and slower.
    `scales` is at how many sizes the image is denoised, at most: 2 means at half its size as well, where patches see
    twice as far, and low frequencies are taken from there. By default as many as the image holds; 1 with "eb".
    `channel_axis`: three channels are colours, decorrelated by an orthogonal mix. (Where their noise levels differ, the
    noise of the mixed channels is correlated; each gets its right variance, and the correlation is ignored.) A fourth
    that is transparency, most of it opaque or clear, stays as it is. Any other number of channels: each by itself.
    `white` is the value that stands for full scale, which the prior needs to know: 255, 65535 or 1.0 by type.
    `progress` is called with the fraction done, 0 to 1.
    A dask array is denoised block by block when it is computed, at one scale: see docs/large.md.
    """
    if room := room_of(image):
        if quality == "best" or isinstance(noise, NoiseProfile):
            raise InvalidInputError("blocks are denoised at quality 'fast' or 'default', without a noise profile")
        given = prior_name(quality, density=adapt) if prior is None else prior
        lazy: NDArray[Any] = room.denoise(
            image, sigma, noise=noise, prior=given, method=method, adapt=adapt, scales=scales,
            channel_axis=channel_axis, white=white,
        )  # fmt: skip
        return lazy
    return denoise_and_report(
        image,
        sigma,
        noise=noise,
        quality=quality,
        prior=prior,
        method=method,
        adapt=adapt,
        scales=scales,
        channel_axis=channel_axis,
        white=white,
        progress=progress,
    ).pixels


def denoise_and_report(
    image: ArrayLike,
    sigma: ArrayLike | None = None,
    *,
    noise: str | NoiseProfile = "auto",
    quality: str = "default",
    prior: str | PathLike[str] | DiffusedPrior | None = None,
    method: str = "hqs",
    adapt: bool = False,
    scales: int | None = None,
    channel_axis: int | None = None,
    white: float | None = None,
    progress: Progress | None = None,
) -> Denoised:
    """As `denoise`, together with what was found of the noise."""
    plan, progress = planned(
        image,
        sigma,
        noise=noise,
        quality=quality,
        prior=prior,
        method=method,
        adapt=adapt,
        scales=scales,
        channel_axis=channel_axis,
        white=white,
        progress=progress,
    )
    return Denoised(plan.run(plan.pixels, progress), plan.report)


def planned(
    image: ArrayLike,
    sigma: ArrayLike | None = None,
    *,
    noise: str | NoiseProfile = "auto",
    quality: str = "default",
    prior: str | PathLike[str] | DiffusedPrior | None = None,
    method: str = "hqs",
    adapt: bool = False,
    scales: int | None = None,
    channel_axis: int | None = None,
    white: float | None = None,
    progress: Progress | None = None,
) -> tuple[Plan, Progress | None]:
    """What `denoise` will do with an image, checked and with its noise estimated; and what is left of the progress."""
    pixels = as_pixels(image)
    channels = as_channels(pixels, channel_axis)
    if channel_axis is None and pixels.ndim > 2 and pixels.shape[-1] in (3, 4):
        raise InvalidInputError(
            f"the image has shape {pixels.shape}, as colours have; give channel_axis=-1, or transpose it if it has none"
        )
    full = as_white(white, pixels)
    if method not in METHODS:
        raise InvalidInputError(f"method is {method!r}; expected {' or '.join(map(repr, METHODS))}")
    if scales is not None and (not isinstance(scales, int | np.integer) or scales < 1):
        raise InvalidInputError(f"scales is {scales!r}; expected a whole number of at least 1")
    if quality not in QUALITIES:
        raise InvalidInputError(f"quality is {quality!r}; expected {', '.join(map(repr, QUALITIES))}")
    given = noise if isinstance(noise, NoiseProfile) else None
    check_kind("auto" if isinstance(noise, NoiseProfile) else noise)
    if sigma is not None and noise != "auto":
        raise InvalidInputError("noise is for images whose noise is estimated; leave out sigma, or noise")
    report, profiles = None, [given] * int(np.prod(channels.shape[:-3]))
    if given is not None:
        sigma = given.channels[0].sigma * full  # where the profile says nothing
    elif sigma is None:
        estimating, progress = span_of(progress, 0.0, ESTIMATING_PART), span_of(progress, ESTIMATING_PART, 1.0)
        report = estimate_noise(pixels, str(noise), channel_axis=channel_axis, white=full, progress=estimating)
        sigma, profiles = report.sigma, list(report.profiles)
    sigmas = np.broadcast_to(as_noise_level(sigma, pixels, channel_axis, full), channels.shape)
    if report is None:
        warn_of_unlikely_units(sigma, pixels, full)
    correlated = any(profile is not None for profile in profiles)
    chosen = shipped(prior_name(quality, density=adapt or correlated)) if prior is None else prior
    model = as_mixture(chosen) if adapt else as_prior(chosen)
    usual = min(usual_scales(model, method), SCALES_OF_CORRELATED_NOISE if correlated else EVERY_SCALE)
    recipe = Recipe(METHODS[method], adapt, scales or usual)
    denoise_channel = over_symmetries(partial(recipe.follow, prior=model), QUALITIES[quality].symmetries)
    return Plan(pixels, channel_axis, sigmas, profiles, full, denoise_channel, model.card, report), progress


def _denoised(
    pixels: NDArray[Any],
    channel_axis: int | None,
    sigmas: FloatArray,
    profiles: Sequence[NoiseProfile | None],
    full: float,
    denoise_channel: Callable[..., FloatArray],
    progress: Progress | None,
) -> NDArray[Any]:
    """Every image by itself, channel by channel, colours mixed first; `sigmas` (..., channels, H, W) are its units."""
    channels = as_channels(pixels, channel_axis)
    result = np.empty_like(pixels)
    clean = as_channels(result, channel_axis)
    has_alpha = channel_axis is not None and is_alpha(channels, full)
    colours = channels.shape[-3] - has_alpha
    is_colour = channel_axis is not None and colours == 3
    mix = COLOUR if is_colour else ALONE
    back = np.linalg.inv(mix) * full
    jobs = [
        ((*index, slice(first, first + len(mix))), profile)
        for index, profile in zip(np.ndindex(channels.shape[:-3]), profiles, strict=True)
        for first in range(0, colours, len(mix))
    ]
    check_profiles(profiles, colours)
    if has_alpha:
        clean[..., -1, :, :] = channels[..., -1, :, :]
    for number, (job, profile) in enumerate(jobs):
        noisy = with_all_or_no_channel_missing(channels[job])
        if profile is None:
            own = [noise_of_channel(values, full) for values in sigmas[job]]
            noises = [mixed_noise(own, weights) for weights in mix]
        else:
            light = smooth_brightness(without_gaps(mixed(noisy, mix[0] / full)))
            noises = [channel.on(light) for channel in profile.channels[job[-1]]]
        parts = [
            denoise_channel(
                mixed(noisy, weights / full),
                noises[d],
                progress=part_of(progress, number * len(mix) + d, len(jobs) * len(mix)),
            )
            for d, weights in enumerate(mix)
        ]
        is_result = len(jobs) == 1 and not is_colour and full == 1 and result.dtype == parts[0].dtype
        if is_result and parts[0].flags.c_contiguous and result.flags.c_contiguous:
            result = parts[0].reshape(result.shape)  # it is not copied
            clean = as_channels(result, channel_axis)
        for channel, original, weights in zip(clean[job], channels[job], back, strict=True):
            store(parts, weights, original, channel)
    return result


def check_profiles(profiles: Sequence[NoiseProfile | None], colours: int) -> None:
    """Refuse the profile of a camera with other channels."""
    for profile in profiles:
        if profile is not None and len(profile.channels) != colours:
            raise InvalidInputError(
                f"the noise profile is for {len(profile.channels)} channels but the image has {colours}; estimate one "
                "from images of this kind"
            )


def noise_of_channel(values: FloatArray, full: float, ends: tuple[float, float] | None = None) -> Noise:
    """The noise of a channel (H, W), grey levels being 0 to 1; constant if it was broadcast from one number.

    `ends` are the lowest and the highest level of the whole channel, if only a piece is here.
    """
    if values.strides == (0, 0) or values.size == 1:
        return ConstantNoise(float(values[0, 0]) / full)
    lowest, highest = ends or (float(values.min()), float(values.max()))
    return NoiseMap(lambda rows: np.asarray(values[rows] / full), lowest / full, highest / full)


def store(parts: list[FloatArray], weights: FloatArray, noisy: NDArray[Any], clean: NDArray[Any]) -> None:
    """Σ_d weights_d part_d as pixels of the type of `clean` (H, W), NaN where the noisy ones are."""
    for start in range(0, len(clean), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        values = mixed([part[rows] for part in parts], weights)
        if clean.dtype.kind == "f":
            clean[rows] = values
            np.copyto(clean[rows], np.nan, where=np.isnan(noisy[rows]))
        else:
            clean[rows] = np.clip(np.rint(values), *integer_limits(clean.dtype))
