"""What `hp.denoise` will do with an image: options checked, noise told or estimated, prior and recipe chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.row_bands import Progress, span_of
from heatprior.noise.estimation import NoiseReport, check_kind, estimate_noise
from heatprior.noise.grey_scale import full_scale
from heatprior.noise.levels import without_gaps
from heatprior.noise.profiles import NoiseProfile, smooth_brightness
from heatprior.noise_model import ConstantNoise, Noise, NoiseMap, mixed_noise
from heatprior.pixels.channels import ALONE, COLOUR, is_alpha, mixed
from heatprior.pixels.gaps import with_all_or_no_channel_missing
from heatprior.pixels.inputs import as_channels, as_noise_level, as_pixels, type_white, warn_of_unlikely_units
from heatprior.restoration.adaptation import as_mixture
from heatprior.restoration.blending import AUTO, blended
from heatprior.restoration.options import Options
from heatprior.restoration.qualities import QUALITIES, Denoiser, over_symmetries, prior_name
from heatprior.restoration.recipes import EVERY_SCALE, Recipe, usual_scales
from heatprior.restoration.splitting import METHODS
from heatprior.zoo import as_prior, shipped

SCALES_OF_CORRELATED_NOISE = 2  # an error of its spectrum weighs more at every further scale
ESTIMATING_PART = 0.15  # of the time of denoising blindly, about


class Together(NamedTuple):
    """Channels of one image that are denoised together: the colours, mixed, or one by itself."""

    place: tuple[Any, ...]  # among the channels (..., C, H, W)
    profile: NoiseProfile | None


class Plan(NamedTuple):
    """An image that has been looked at: its pixels, its noise in its units and shape, and how it will be denoised."""

    pixels: NDArray[Any]
    channel_axis: int | None
    sigmas: FloatArray  # (..., channels, H, W)
    profiles: Sequence[NoiseProfile | None]
    full: float
    denoise_channel: Denoiser
    card: Mapping[str, Any]  # of the prior
    method: str
    report: NoiseReport | None
    has_alpha: bool  # the last channel is transparency, which stays as it is

    @property
    def channels(self) -> NDArray[Any]:
        """(..., C, H, W)."""
        return as_channels(self.pixels, self.channel_axis)

    @property
    def mix(self) -> FloatArray:
        """What is denoised, from the channels that belong together: (d, d)."""
        is_colour = self.channel_axis is not None and self.channels.shape[-3] - self.has_alpha == len(COLOUR)
        return COLOUR if is_colour else ALONE

    def together(self) -> list[Together]:
        """All that is denoised, image by image."""
        channels, step = self.channels, len(self.mix)
        colours = channels.shape[-3] - self.has_alpha
        check_profiles(self.profiles, colours)
        return [
            Together((*index, slice(first, first + step)), profile)
            for index, profile in zip(np.ndindex(channels.shape[:-3]), self.profiles, strict=True)
            for first in range(0, colours, step)
        ]

    def noises(self, part: Together) -> Iterator[Noise]:
        """Of each mixed channel, grey levels being 0 to 1."""
        if part.profile is None:
            own = [noise_of_channel(values, self.full) for values in self.sigmas[part.place]]
            return (mixed_noise(own, weights) for weights in self.mix)
        noisy = with_all_or_no_channel_missing(self.channels[part.place])
        light = smooth_brightness(without_gaps(mixed(noisy, self.mix[0] / self.full)))
        return (channel.on(light) for channel in part.profile.channels[part.place[-1]])


def planned(
    image: ArrayLike, sigma: ArrayLike | None, options: Options, progress: Progress | None = None
) -> tuple[Plan, Progress | None]:
    """The plan for an image, its noise estimated if `sigma` is None; and what is left of the progress."""
    pixels = as_pixels(image)
    channels = as_channels(pixels, options.channel_axis)
    if options.channel_axis is None and pixels.ndim > 2 and pixels.shape[-1] in (3, 4):
        raise InvalidInputError(
            f"the image has shape {pixels.shape}, as colours have; give channel_axis=-1, or transpose it if it has none"
        )
    _check(options, sigma)
    axis, white = options.channel_axis, options.white
    full = full_scale(white, pixels, sigma, axis)
    given = None if options.profile is None else options.profile.at(full / type_white(pixels))
    report, profiles = None, [given] * int(np.prod(channels.shape[:-3]))
    if given is not None:
        sigma = given.channels[0].sigma * full  # where the profile says nothing
    elif sigma is None:
        estimating, progress = span_of(progress, 0.0, ESTIMATING_PART), span_of(progress, ESTIMATING_PART, 1.0)
        report = estimate_noise(pixels, str(options.noise), channel_axis=axis, white=white, progress=estimating)
        sigma = report.sigma
        profiles = [own if own is None else own.at(full / type_white(pixels)) for own in report.profiles]
    sigmas = np.broadcast_to(as_noise_level(sigma, pixels, options.channel_axis, full), channels.shape)
    if report is None:
        warn_of_unlikely_units(sigma, pixels, full)
    denoise_channel, card = _denoiser(options, correlated=any(profile is not None for profile in profiles))
    has_alpha = options.channel_axis is not None and is_alpha(channels)
    plan = Plan(
        pixels, options.channel_axis, sigmas, profiles, full, denoise_channel, card, options.method, report, has_alpha
    )
    return plan, progress


def _check(options: Options, sigma: ArrayLike | None) -> None:
    """Refuse what cannot be done with any image."""
    if options.method not in METHODS:
        raise InvalidInputError(f"method is {options.method!r}; expected {' or '.join(map(repr, METHODS))}")
    scales = options.scales
    if scales is not None and (not isinstance(scales, int | np.integer) or scales < 1):
        raise InvalidInputError(f"scales is {scales!r}; expected a whole number of at least 1")
    if options.quality not in QUALITIES:
        raise InvalidInputError(f"quality is {options.quality!r}; expected {', '.join(map(repr, QUALITIES))}")
    if options.prior == AUTO and options.adapt:
        raise InvalidInputError("prior 'auto' is adapted where that helps; leave out adapt")
    check_kind("auto" if options.profile is not None else str(options.noise))
    if sigma is not None and options.noise != "auto":
        raise InvalidInputError("noise is for images whose noise is estimated; leave out sigma, or noise")


def _denoiser(options: Options, *, correlated: bool) -> tuple[Denoiser, Mapping[str, Any]]:
    """What denoises a channel, and the card of its prior."""
    if options.prior == AUTO:
        usual, card = _denoiser(replace(options, prior=None), correlated=correlated)
        if correlated:
            return usual, card
        changes: list[dict[str, Any]] = [{"quality": "default", "adapt": True}, {"scales": 1}]
        others = [_denoiser(replace(options, prior=None, **change), correlated=False)[0] for change in changes]
        return blended(usual, *others), card
    name = prior_name(options.quality, density=options.adapt, correlated=correlated)
    chosen = shipped(name) if options.prior is None else options.prior
    model = as_mixture(chosen) if options.adapt else as_prior(chosen)
    most = min(usual_scales(model, options.method), SCALES_OF_CORRELATED_NOISE if correlated else EVERY_SCALE)
    recipe = Recipe(METHODS[options.method], options.adapt, options.scales or most)
    return over_symmetries(partial(recipe.follow, prior=model), QUALITIES[options.quality].symmetries), model.card


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
