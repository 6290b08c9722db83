"""Unknown noise: none, white, signal-dependent, varying from place to place, or that of a camera, by evidence.

Whether there is noise at all, and the level of what a camera has left of it, is learnt (decision.py). Where the
likelihood of white noise finds about that level too, noise is white, and channel by channel it says more
(channel_noise.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import ChannelAxis, FloatArray
from heatprior.border.entry import enter
from heatprior.border.gaps import with_all_or_no_channel_missing
from heatprior.border.pixels import as_channels, axis_or_none, in_unit_range, room_of, type_white, unwrap
from heatprior.border.scale import join_squares, squares_of
from heatprior.display import as_html, format_full_scale, format_level
from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import Progress, part_of, span_of
from heatprior.kernels.threads import products_in_one_thread
from heatprior.noise.channel_noise import ChannelNoise, channel_noise, doubts_of, why_constant
from heatprior.noise.decision import decide, describe
from heatprior.noise.defects import NO_DEFECTS, Defects, holds_mosaic, join_mosaic, mend, split_mosaic
from heatprior.noise.levels import Estimate, check_holds_patches, find_priors, likelihood_of, to_pixels
from heatprior.noise.likelihood import OCTAVES, check_in_range
from heatprior.noise.photon_noise import may_be_whole_counts, whole_counts
from heatprior.priors.protocol import DiffusedPrior, Prior

WORDS = {
    "constant": "white noise",
    "affine": "noise that changes with brightness",
    "map": "noise that differs from place to place",
    "camera": "camera noise",
}
KINDS = tuple(WORDS)  # that may be asked for; "auto" may find "none" as well
DECIDING_PART, LEVEL_PART = 0.1, 0.2  # of the time, when it is decided, and when noise is known to be white
SIZE = 7  # pixels along the side of the patches of the usual prior
GRAINY = 0.04  # of full scale, as indoors
TYPE_SCALES = (1.0, 255.0, 65535.0)
SAME_IN_COLOURS = float(np.sqrt(3.0))  # times the noise of a channel, where it is the same in all three: not averaged


NO_NOISE = ChannelNoise("none", Estimate(0.0, float(OCTAVES[0])), None, {}, float(OCTAVES[0]), None, 0.0, 0.0)


@dataclass(frozen=True)
class NoiseReport:
    """What `estimate_noise` found; as a string, one line in words.

    Attributes
    ----------
    sigma : ndarray
        What `denoise` takes: the standard deviation at every pixel, in the units and of the shape of the image.
    channels : tuple of ChannelNoise
        Image by image, channel by channel, grey levels being 0 to 1: model, level, gain and offset, with their errors.
    white : float
        The value that was taken for full scale.
    brightest : float
        What people take for full scale: 255 of 8 bits, however dark the image is.
    defects : Defects
        Of the sensor, such as hot pixels: they are left out of the estimate, and filled in by `denoise`.

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
    brightest: float
    defects: Defects = NO_DEFECTS

    @property
    def models(self) -> tuple[str, ...]:
        """Of each channel: "none", "constant", "affine", "map" or "camera"."""
        return tuple(channel.model for channel in self.channels)

    @property
    def is_none(self) -> bool:
        """Whether no image has any noise."""
        return set(self.models) == {"none"}

    @property
    def probability(self) -> float:
        """That there is noise whose removal pays: the highest of all channels."""
        return max(channel.probability for channel in self.channels)

    def __str__(self) -> str:
        return "; ".join([self.describe_kind(), *filter(None, [str(self.defects)])])

    def describe_kind(self) -> str:
        """The noise alone, without the defects of the sensor."""
        if self.is_none:
            return "no noise found"
        found = [channel for channel in self.channels if channel.model != "none"]
        kinds = ", ".join(dict.fromkeys(WORDS[channel.model] for channel in found))
        levels = sorted(channel.level.sigma * self.white for channel in found)
        low, high = format_level(levels[0]), format_level(levels[-1])
        level = low if levels[-1] < 1.05 * levels[0] else f"{low} to {high}"
        level = f"treated as sigma {level}" if "camera" in self.models else f"sigma {level}"
        known = self.brightest in TYPE_SCALES  # a full scale that was estimated says nothing to people
        return f"{kinds}, {level}{f' of {format_full_scale(self.brightest)}' if known else ''}"

    def __repr__(self) -> str:
        return f"<NoiseReport: {self}>"

    def _repr_html_(self) -> str:
        varies = self.sigma.ndim == 2 and np.ndim(self.channels[0].sigma) > 0
        return as_html(repr(self), self.sigma if varies else None)

    @property
    def remedy(self) -> float:
        """A sigma to begin with where noise is seen but none was found: that of a grainy picture, in one digit."""
        return float(f"{GRAINY * self.brightest:.1g}")


def estimate_noise(
    image: ArrayLike,
    noise: str = "auto",
    *,
    prior: str | PathLike[str] | DiffusedPrior | None = None,
    channel_axis: ChannelAxis = None,
    white: float | None = None,
    keep_outliers: bool = False,
    progress: Progress | None = None,
) -> NoiseReport:
    """Estimate the noise of an image as `denoise` does without `sigma`: its kind, its level, and where it is.

    Parameters
    ----------
    image : array_like, (..., H, W)
        As in `denoise`.
    noise : {"auto", "constant", "affine", "map", "camera"}
        Noise model. "constant": one level per channel; "affine": variance = gain · brightness + offset, as for photon
        counts; "map": a level for every window; "camera": noise that a camera has processed, one level for all
        channels; "auto": the one with the most evidence, or none. A model that cannot be fitted is replaced by
        "constant", with a warning.
    prior : str, path or DiffusedPrior, optional
        As in `estimate_sigma`.
    channel_axis : int, optional
        As in `denoise`.
    white : float, optional
        As in `denoise`.
    keep_outliers : bool
        As in `denoise`.
    progress : callable, optional
        Called with the fraction done, 0 to 1.

    Returns
    -------
    NoiseReport
        The noise found; its `.sigma` can be passed to `denoise`, and is in the units of the image.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> noisy = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((96, 96))
    >>> report = hp.estimate_noise(noisy, "constant")
    >>> report.models, report.sigma.shape
    (('constant',), (96, 96))
    """
    check_kind(noise)
    image, channel_axis = unwrap(image, channel_axis)[:2]
    if room := room_of(image):
        lazy: NoiseReport = room.estimate_noise(image, noise, prior=prior, channel_axis=channel_axis, white=white)
        return lazy
    entered = enter(image, channel_axis=channel_axis, white=white)
    if holds_mosaic(entered):
        planes = split_mosaic(entered.pixels)
        report = estimate_noise(
            planes, noise, prior=prior, white=entered.full, keep_outliers=keep_outliers, progress=progress
        )
        return report_of_mosaic(report, entered.pixels.shape)
    entered, defects = (entered, NO_DEFECTS) if keep_outliers else mend(entered)
    full, channels = entered.full, entered.channels
    priors = find_priors(prior)
    check_holds_patches(channels, likelihood_of(priors[0]))
    groups = list(entered.groups())
    by_place = dict.fromkeys(np.ndindex(channels.shape[:-2]), NO_NOISE)  # as that of transparency is
    for number, group in enumerate(groups):
        grey = in_unit_range(with_all_or_no_channel_missing(channels[group.place]), full)
        own = _group_noise(grey, priors, noise, part_of(progress, number, len(groups)))
        by_place |= {(*group.image, c): one for c, one in zip(group.channels, own, strict=True)}
    found = list(by_place.values())
    if noise != "auto" and (
        reasons := [why_constant(channel) for channel in found if channel.model not in (noise, "none")]
    ):
        why = ", ".join(dict.fromkeys(reasons))
        warnings.warn(f"{noise} noise cannot be estimated: {why}; one level was used", UserWarning, stacklevel=2)
    if all(np.ndim(channel.sigma) == 0 for channel in found):
        levels = np.array([channel.sigma for channel in found]).reshape(channels.shape[:-2])
        sigma = np.broadcast_to(levels[..., None, None] * full, channels.shape)
    else:
        sigma = np.empty(channels.shape, np.float32)
        for place, channel in by_place.items():
            sigma[place] = np.asarray(channel.sigma) * full
    brightest = type_white(entered.pixels) if entered.pixels.dtype.itemsize == 1 else full
    return NoiseReport(_as_image(sigma, entered.channel_axis), tuple(found), full, brightest, defects)


def estimate_noise_of_volume(
    volume: NDArray[Any],
    noise: str,
    *,
    channel_axis: ChannelAxis,
    white: float,
    keep_outliers: bool,
    progress: Progress | None,
) -> NoiseReport:
    """Of a volume (..., D, H, W), or with channels (..., D, C, H, W): one level, or one law of counts, per channel.

    From squares spread over its slices, whose noise is one and the same.
    """
    channels = as_channels(volume, channel_axis)
    found = squares_of(channels)
    joined = join_squares(found)
    look = np.stack([own[0] for own in found]) if joined is None else joined
    report = estimate_noise(
        look, noise, channel_axis=0, white=white, keep_outliers=keep_outliers, progress=progress
    )  # fmt: skip
    own = [replace(channel, sigma=channel.level.sigma, local=None) for channel in report.channels]
    levels = np.array([channel.level.sigma for channel in own]) * white
    sigma = np.broadcast_to(levels[:, None, None], channels.shape)
    every = tuple(own[place[-1]] for place in np.ndindex(channels.shape[:-2]))
    return replace(report, sigma=_as_image(sigma, axis_or_none(channel_axis)), channels=every)


def report_of_mosaic(planes: NoiseReport, shape: tuple[int, ...]) -> NoiseReport:
    """Of a mosaic (..., H, W) from that of its four planes (..., 4, h, w): in one, by the plane of middling noise."""
    sigma, channels = join_mosaic(planes.sigma, shape), []
    for number, own in enumerate(sigma.reshape(-1, *shape[-2:])):
        noisy = [channel for channel in planes.channels[4 * number : 4 * number + 4] if channel.model != "none"]
        noisy.sort(key=lambda channel: channel.level.sigma)
        chosen = noisy[len(noisy) // 2] if noisy else planes.channels[4 * number]
        channels.append(replace(chosen, sigma=own / planes.white if noisy else chosen.sigma, local=None))
    return replace(planes, sigma=sigma, channels=tuple(channels), defects=planes.defects._replace(mosaic=1))


@products_in_one_thread()
def _group_noise(
    channels: FloatArray, priors: Sequence[Prior], noise: str, progress: Progress | None
) -> Sequence[ChannelNoise]:
    """Of channels (C, H, W) that belong together, grey levels being 0 to 1."""
    if len(channels) > 1 and all(np.array_equal(channels[0], other, equal_nan=True) for other in channels[1:]):
        (own,) = _group_noise(channels[:1], priors, noise, progress)  # a grey picture saved in colours
        return [replace(own, sigma=own.sigma * SAME_IN_COLOURS)] * len(channels)
    if noise == "auto" and (known := _black_and_white(channels) or _whole_counts(channels, priors, progress)):
        return known
    done = progress or (lambda _: None)
    spread = np.nanmedian(np.abs(channels - np.nanmedian(channels)))
    check_in_range(float(np.log(spread + OCTAVES[0])))  # else the value of full scale is wrong
    decision = decide(describe(channels), in_colour=len(channels) > 1) if noise in ("auto", "camera") else None
    done(DECIDING_PART)
    if decision is not None and noise == "auto" and not decision.pays:
        return [replace(NO_NOISE, probability=decision.probability)] * len(channels)
    if decision is not None and (noise == "camera" or not decision.is_white):
        level = Estimate(decision.level, decision.error)
        own = ChannelNoise("camera", level, None, {}, decision.level, None, 0.0, decision.probability)
        return [own] * len(channels)
    done(LEVEL_PART)
    rest, kind = span_of(progress, LEVEL_PART, 1.0), "constant" if noise == "camera" else noise
    found = [
        channel_noise(channel, priors, kind, part_of(rest, number, len(channels)))
        for number, channel in enumerate(channels)
    ]
    if noise != "auto":
        return found
    probability = 1.0 if decision is None else decision.probability
    return [NO_NOISE if own.level.sigma == 0.0 else replace(own, probability=probability) for own in found]


def _black_and_white(channels: FloatArray) -> Sequence[ChannelNoise]:
    """No noise, of channels without a grey, such as a fax: none could be seen. Nothing if there are greys."""
    return [NO_NOISE] * len(channels) if ((channels == 0.0) | (channels == 1.0)).all() else []


def _whole_counts(channels: FloatArray, priors: Sequence[Prior], progress: Progress | None) -> Sequence[ChannelNoise]:
    """Of channels whose values are numbers of photons; none if they are not. No decision was learnt on those."""
    if not all(may_be_whole_counts(channel) for channel in channels):
        return []
    parts = [part_of(progress, number, len(channels)) for number in range(len(channels))]
    found = [channel_noise(channel, priors, "auto", part) for channel, part in zip(channels, parts, strict=True)]
    floors = [float(np.nanmin(channel)) for channel in channels]
    counts = [whole_counts(*one) for one in zip(channels, floors, [own.affine for own in found], strict=True)]
    return found if all(own.counts == one is not None for own, one in zip(found, counts, strict=True)) else []


def check_kind(noise: object) -> None:
    """Refuse what is no kind of noise."""
    if noise not in ("auto", *KINDS):
        raise InvalidInputError(f"noise is {noise!r}; expected 'auto', {', '.join(map(repr, KINDS))}")


def find_doubts(
    report: NoiseReport, image: NDArray[Any], channel_axis: ChannelAxis, done: Progress | None = None
) -> list[list[str]]:
    """What makes the noise that was found doubtful, channel by channel."""
    channels = as_channels(image, channel_axis)
    found: list[list[str]] = []
    for own, pixels in zip(report.channels, channels.reshape(-1, *channels.shape[-2:]), strict=True):
        if done is not None:
            done(len(found) / len(report.channels))
        found.append(doubts_of(own, in_unit_range(pixels, report.white), SIZE, report.white))
    return found


def noise_levels_of(report: NoiseReport, shape: tuple[int, ...], channel_axis: ChannelAxis) -> FloatArray:
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
