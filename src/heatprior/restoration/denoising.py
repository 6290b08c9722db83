"""`hp.denoise`: images of any type without their noise, blindly if need be, with the errors that remain if wanted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from numbers import Real
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from heatprior.arrays import ChannelAxis, FloatArray
from heatprior.border.entry import Entered, Group, Index, Noises, Result, as_type, enter, noise_of_levels, turn_volume
from heatprior.border.gaps import with_all_or_no_channel_missing
from heatprior.border.pixels import as_channels, mix_channels, room_of, type_white, unwrap
from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import Progress, part_of, span_of
from heatprior.noise.defects import NO_DEFECTS, Defects, holds_mosaic, join_mosaic, mend, split_mosaic
from heatprior.noise.stabilisation import PoissonGaussian
from heatprior.noise_value import Noise, as_noise
from heatprior.presets import DEFAULT, PRESETS, find_preset
from heatprior.priors.protocol import DiffusedPrior, Prior
from heatprior.restoration.pipeline import MOST_SCALES, ONE_STEP, Pipeline
from heatprior.restoration.symmetries import Denoiser
from heatprior.zoo import as_prior

if TYPE_CHECKING:
    from heatprior.noise.estimation import NoiseReport
    from heatprior.noise.profiles import NoiseProfile
    from heatprior.restoration.error_bars import DenoisedWithError

SCALES_OF_CORRELATED_NOISE = 2  # an error of its spectrum weighs more at every further scale
ESTIMATING_PART = 0.15  # of the time of denoising blindly, about
STRENGTHS = (0.1, 10.0)  # times what was found
FEWEST_SLICES = 8  # of a volume: as many as a patch has rows
FLOOR = 0.01  # of full scale: what a strength beyond 1 adds where less noise was found, so that it is never in vain
IN_CORRELATED_NOISE = "tuned"  # a mixture, for which noise of any covariance is exact; half a decibel above "mixture"


@dataclass(frozen=True)
class Settings:
    """How an image is denoised, for library, command line, page and blocks; `hp.denoise` says what each field means."""

    noise: str | NoiseProfile | PoissonGaussian = "auto"
    quality: str = DEFAULT
    prior: str | PathLike[str] | DiffusedPrior | None = None
    steps: int | None = None
    channel_axis: ChannelAxis = None
    white: float | None = None
    strength: float = 1.0
    keep_outliers: bool = False
    dtype: DTypeLike | None = None
    depth_axis: int | None = None

    def __post_init__(self) -> None:
        find_preset(self.quality)
        if self.steps not in (None, 1):
            raise InvalidInputError(f"steps is {self.steps!r}; expected None, the prior's own schedule, or 1")
        if not (isinstance(self.strength, Real) and STRENGTHS[0] <= self.strength <= STRENGTHS[1]):
            low, high = STRENGTHS
            raise InvalidInputError(f"strength is {self.strength!r}; expected {low:g} to {high:g} times what was found")
        if self.profile is None and self.counts is None and self.noise != "auto":
            from heatprior.noise.estimation import check_kind  # noqa: PLC0415 (only where noise is estimated)

            check_kind(self.noise)

    def check_sigma(self, sigma: object) -> None:
        """Refuse a noise level beside settings of its estimate."""
        if sigma is not None and self.noise != "auto":
            raise InvalidInputError("noise is for images whose noise is estimated; leave out sigma, or noise")
        if self.strength != 1.0 and (sigma is not None or not isinstance(self.noise, str)):
            raise InvalidInputError(
                "strength is for noise that is estimated; give sigma times that, or leave out strength"
            )

    @property
    def profile(self) -> NoiseProfile | None:
        """The noise of a camera, if that is what was given."""
        return cast("NoiseProfile", self.noise) if hasattr(self.noise, "at") else None

    @property
    def counts(self) -> PoissonGaussian | None:
        """The noise of counted photons, or another that can be stabilised, if that is what was given."""
        return cast("PoissonGaussian", self.noise) if hasattr(self.noise, "stabilise") else None

    def find_prior(self, *, correlated: bool = False) -> Prior:
        """The prior that was given, or that of the preset."""
        return as_prior(choose_prior(self.quality, correlated=correlated) if self.prior is None else self.prior)

    def pipeline(
        self,
        prior: Prior,
        shape: tuple[int, int],
        *,
        correlated: bool = False,
        has_gaps: bool = False,
        in_colour: bool = False,
    ) -> Pipeline:
        """How planes of this shape are denoised: half-quadratic splitting at several scales, or one step."""
        fillings = (1 + in_colour) * has_gaps
        if self.steps == 1:
            return Pipeline(prior, shape, ONE_STEP, most_scales=1, margin=0, fillings=fillings, in_colour=in_colour)
        scales = SCALES_OF_CORRELATED_NOISE if correlated else MOST_SCALES
        return Pipeline(prior, shape, most_scales=scales, fillings=fillings, in_colour=in_colour)


class Keywords(TypedDict, total=False):
    """The same for type checkers: what a call may name, with the types above."""

    noise: str | NoiseProfile | PoissonGaussian
    quality: str
    prior: str | PathLike[str] | DiffusedPrior | None
    steps: int | None
    channel_axis: ChannelAxis
    depth_axis: int | None
    white: float | None
    strength: float
    keep_outliers: bool
    dtype: DTypeLike | None
    progress: Progress | None


class Plan(NamedTuple):
    """An image that has entered, its noise, and how it will be denoised."""

    entered: Entered
    noises: Noises  # of each channel
    profile: NoiseProfile | None  # if that was given: then noise is correlated
    settings: Settings
    prior: Prior
    report: NoiseReport | None
    counts: Mapping[Index, PoissonGaussian] = MappingProxyType({})  # of each channel, if photons were counted
    defects: Defects = NO_DEFECTS  # of the sensor, no longer in what has entered
    mosaic: tuple[int, ...] | None = None  # the shape of the image, if what has entered are its colours one by one
    axes: tuple[int, ...] | None = None  # of the image, in their order in what has entered, if that is a volume

    @property
    def unchanged(self) -> set[Index]:
        """The channels in which no noise was found: they stay as they are, bit by bit."""
        places = np.ndindex(self.entered.channels.shape[:-2])
        models = () if self.report is None or self.settings.strength > 1.0 else self.report.models
        if self.mosaic is not None:  # of which the report tells in one
            return set(places) if set(models) == {"none"} else set()
        return {place for place, model in zip(places, models, strict=False) if model == "none"}

    def noises_of_planes(self, group: Group) -> list[Noise]:
        """Of each plane of a group, grey levels being 0 to 1."""
        if self.profile is None:
            return self.entered.noises_of_planes(group, self.noises)
        noisy = with_all_or_no_channel_missing(self.entered.channels[group.place])
        light = _smooth_brightness(mix_channels(noisy, self.entered.mix[0] / self.entered.full))
        return [channel.on(light) for channel in self.profile.channels[group.channels.start : group.channels.stop]]

    def join(self, planes: NDArray[Any]) -> NDArray[Any]:
        """What has the shape of what has entered in that of the image."""
        if self.axes is not None:
            return planes.transpose(np.argsort(self.axes))
        return planes if self.mosaic is None else join_mosaic(planes, self.mosaic)

    def denoise(self, progress: Progress | None = None) -> NDArray[Any]:
        """The image denoised."""
        return self.join(self.denoise_entered(self.entered, progress))

    def denoise_entered(self, entered: Entered, progress: Progress | None = None) -> NDArray[Any]:
        """What has entered denoised, or another of the same shape, with the same noise."""
        if self.counts:
            return self._denoise_counts(entered, progress)
        preset, volumes, unchanged = PRESETS[self.settings.quality], self._volumes(entered), self.unchanged
        pipelines, result = self._pipelines(self.prior), Result(entered)
        for number, groups in enumerate(volumes):
            planes = [entered.planes(group, whole=len(groups) == 1) for group in groups]
            if not unchanged.issuperset((*groups[0].image, c) for c in groups[0].channels):
                noises = [self.noises_of_planes(group) for group in groups]
                part = part_of(progress, number, len(volumes))
                if len(groups) > 1:
                    planes = self._denoise_slices(planes, noises, part)
                elif preset.adapts:
                    from heatprior.restoration.evidence import denoise_by_evidence  # noqa: PLC0415 (only for the best)

                    planes = [denoise_by_evidence(planes[0], noises[0], self.prior, self._denoiser, part)]
                else:
                    planes = [pipelines(planes[0][0].shape).denoise_planes(planes[0], noises[0], part)]
            for group, stack in zip(groups, planes, strict=True):
                result.leave(group, stack)
        image = result.image()
        for place in unchanged:
            as_channels(image, entered.channel_axis)[place] = as_type(entered.channels[place], image.dtype)
        return image

    def _volumes(self, entered: Entered) -> list[list[Group]]:
        """What is denoised together: the slices of a volume, or a slice alone where it is none, or has too few."""
        if self.settings.depth_axis is None or entered.channels.shape[-4] < FEWEST_SLICES:
            return [[group] for group in entered.groups()]
        volumes: dict[tuple[Index, int], list[Group]] = {}
        for group in entered.groups():
            volumes.setdefault((group.image[:-1], group.channels.start), []).append(group)
        return list(volumes.values())

    def _denoise_slices(
        self, planes: list[list[FloatArray]], noises: list[list[Noise]], progress: Progress | None
    ) -> list[list[FloatArray]]:
        """The slices of a volume, whose planes are volumes by themselves."""
        from heatprior.restoration.volumes import denoise_volume, levels_of_slices  # noqa: PLC0415 (only for volumes)

        preset, denoiser = PRESETS[self.settings.quality], self._denoiser(self.prior)

        def denoise_plane(plane: FloatArray, noise: Noise) -> FloatArray:
            return denoiser([plane], [noise])[0]

        for number in range(len(planes[0])):
            noisy, own = np.stack([stack[number] for stack in planes]), [stack[number] for stack in noises]
            part = part_of(progress, number, len(planes[0]))
            clean = denoise_volume(
                noisy, levels_of_slices(own), denoise_plane, part, axes=preset.axes, rounds=preset.rounds
            )
            for stack, plane in zip(planes, clean, strict=True):
                stack[number] = plane
        return planes

    def _denoise_counts(self, entered: Entered, progress: Progress | None) -> NDArray[Any]:
        """The same, of counted photons: each channel stabilised, white noise removed, the exact unbiased inverse taken.

        Full scale of stabilised values is found as that of any image: half or twice of it changes validation images by
        less than 0.03 dB. An iteration on a blend of data and estimate (Azzari, Foi 2016) gained nothing where the
        noise of few counts is told, nor did a first estimate from sums of 4×4 pixels.
        """
        from heatprior.noise.levels import without_gaps  # noqa: PLC0415 (only for counts)

        channels = entered.channels[..., : entered.colours, :, :]
        stabilised, sigma = np.empty(channels.shape, np.float32), np.empty(channels.shape, np.float32)
        for place, own in self.counts.items():
            stabilised[place] = own.stabilise(channels[place])
            sigma[place] = own.sigma_of_stabilised(without_gaps(np.asarray(channels[place], np.float32)))
        white, axis = self.settings.white, None if entered.channel_axis is None else -3
        full = None if white is None else max(own.stabilised_range(white) for own in self.counts.values())
        inner = enter(stabilised[..., 0, :, :] if axis is None else stabilised, channel_axis=axis, white=full)
        sigma *= self.settings.strength
        noises = {place: noise_of_levels(sigma[place], inner.full, is_map=True) for place in self.counts}
        made = Plan(inner, noises, self.profile, self.settings, self.prior, None)
        clean = as_channels(made.denoise(progress=progress), axis)
        inverse = entered._replace(pixels=np.empty(entered.pixels.shape, np.float32))
        for place, own in self.counts.items():
            inverse.channels[place] = own.unstabilise(clean[place])
        result = Result(entered)
        for group in entered.groups():
            result.leave(group, inverse.planes(group))
        return result.image()

    def _pipelines(self, prior: Prior) -> Callable[[tuple[int, ...]], Pipeline]:
        """What denoises planes of a shape by this prior."""
        return cache(lambda shape: self.settings.pipeline(prior, shape, correlated=self.profile is not None))

    def _denoiser(self, prior: Prior) -> Denoiser:
        """The same for planes of any shape."""
        pipelines = self._pipelines(prior)
        return lambda planes, noises, progress=None: pipelines(planes[0].shape).denoise_planes(planes, noises, progress)


@overload
def denoise(
    image: ArrayLike, sigma: ArrayLike | None = None, *, return_error: Literal[False] = False, **more: Unpack[Keywords]
) -> NDArray[Any]: ...
@overload
def denoise(
    image: ArrayLike, sigma: ArrayLike | None = None, *, return_error: Literal[True], **more: Unpack[Keywords]
) -> DenoisedWithError: ...
def denoise(
    image: ArrayLike,
    sigma: ArrayLike | None = None,
    *,
    noise: str | NoiseProfile | PoissonGaussian = "auto",
    quality: str = "default",
    prior: str | PathLike[str] | DiffusedPrior | None = None,
    steps: int | None = None,
    channel_axis: ChannelAxis = None,
    depth_axis: int | None = None,
    white: float | None = None,
    strength: float = 1.0,
    keep_outliers: bool = False,
    dtype: DTypeLike | None = None,
    return_error: bool = False,
    progress: Progress | None = None,
) -> NDArray[Any] | DenoisedWithError:
    """Remove noise of standard deviation `sigma` from an image; type, shape and units stay the same.

    Parameters
    ----------
    image : array_like, (..., H, W)
        Integers or floats, as a numpy, masked, dask or xarray array, a list, a Pillow image or a tensor; the result is
        of the same class. It may have one more axis, `channel_axis`. Leading axes are independent images. NaN and
        infinite pixels are missing: they have no influence, and are NaN in the result. A dask array is denoised
        lazily, block by block, to the same bits: see docs/large.md.
    sigma : array_like, optional
        Standard deviation of the noise in the units of the image: one number, one per channel, or a map, (H, W) or of
        the shape of the image. Default: estimated. If no noise is found, the image is returned unchanged, with a
        warning.
    noise : str, NoiseProfile or PoissonGaussian
        The noise model to estimate, as in `estimate_noise`; or the measured covariance of a camera's noise, which
        mixtures treat exactly and other priors as white noise of the same strength; or the gain and read noise of
        photon counts, which are variance-stabilised first.
    quality : {"default", "fast", "best"}
        Speed/quality preset: see docs/quality.md.
    prior : str, path or DiffusedPrior, optional
        Name of a shipped prior, path of a prior file, or any `DiffusedPrior` on square patches or on whole images
        (`ImagePrior`). Default: that of the quality preset.
    steps : 1, optional
        One step of empirical Bayes at one scale, as in the paper, instead of half-quadratic splitting at several.
    channel_axis : int, optional
        Axis of the channels. Three channels are colours, decorrelated by an orthogonal mix. (If their noise levels
        differ, the noise of the mixed channels is correlated; each gets its right variance, and the correlation is
        ignored.) A fourth that is transparency, most of it opaque or clear, is kept. Any other number of channels are
        denoised independently. Pass () for a stack without channels whose last axis has length 3 or 4.
    depth_axis : int, optional
        Axis of the slices of a volume, or of time: slices are then denoised together, as far as that helps
        (docs/volumes.md). "fast" denoises the slices along this axis, "default" those along all three axes, "best"
        those twice. The last two of the other axes are rows and columns. Fewer than 8 slices, and all axes without
        `depth_axis`, are independent images.
    white : float, optional
        Full scale, the value that stands for white. Default: 255, 65535 or 1.0 by type if the image fills that range,
        otherwise estimated from its values, one for all images of a stack.
    strength : float
        Factor on the noise level: below 1 keeps more grain, above 1 is smoother, even where no noise was found.
    keep_outliers : bool
        Keep isolated bright or dark pixels, such as stars of one pixel. By default hot and dead pixels and lines are
        filled in from their neighbours first, offsets of columns and rows are removed, and both are reported.
    dtype : data type, optional
        Type of the result, such as np.float32 for photon counts. Default: that of the image.
    return_error : bool
        Return a `DenoisedWithError`, with an error bar for each pixel; takes twice the time.
    progress : callable, optional
        Called with the fraction done, 0 to 1.

    Returns
    -------
    ndarray or DenoisedWithError
        The denoised image, of the type, shape and units of `image`: integers are rounded and clipped to their type,
        floats are not clipped. Computed in float32. With `return_error`, an object with the image `.pixels`, the
        standard error of each pixel `.error`, the predicted PSNR `.predicted`, and the noise `.noise`.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> clean = np.tile(np.linspace(0.2, 0.8, 64), (64, 1))
    >>> noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    >>> denoised = hp.denoise(noisy, 0.1)
    >>> bool(np.std(denoised - clean) < 0.3 * np.std(noisy - clean))
    True
    """
    held = unwrap(image, channel_axis, dtype)
    result_dtype = held.dtype if dtype is None else dtype
    settings = Settings(
        noise, quality, prior, steps, held.channel_axis, white, strength, keep_outliers, result_dtype, depth_axis
    )
    if room := room_of(held.array):
        if depth_axis is not None:
            raise InvalidInputError("a volume is denoised as a whole; give a numpy array, or leave out depth_axis")
        if return_error:
            raise InvalidInputError("errors are estimated for whole images; give a numpy array, or a crop")
        if dtype is not None:
            raise InvalidInputError("dtype is for arrays in memory; convert the dask array, as by image.astype(float)")
        lazy: NDArray[Any] = held.wrap(room.denoise(held.array, sigma, settings))
        return lazy
    if return_error and depth_axis is not None:
        raise InvalidInputError("errors are estimated for images; leave out return_error, or depth_axis")
    if return_error:
        from heatprior.restoration.error_bars import denoise_with_error  # noqa: PLC0415 (it needs what is above)

        found = denoise_with_error(held.array, sigma, settings, progress)
        warn_if_unchanged(found.noise, settings)
        return found._replace(pixels=held.wrap(found.pixels))
    made, progress = plan(held.array, sigma, settings, progress)
    warn_if_unchanged(made.report, settings)
    clean: NDArray[Any] = held.wrap(made.denoise(progress=progress))
    return clean


def warn_if_unchanged(report: NoiseReport | None, settings: Settings) -> None:
    """Say so where noise was to be removed and none was found."""
    if report is not None and report.is_none and settings.strength <= 1.0:
        warnings.warn(
            f"no noise found, image unchanged; if you see noise, give strength=2 or sigma={report.remedy:g}",
            stacklevel=3,
        )


def plan(
    image: ArrayLike, sigma: ArrayLike | None, settings: Settings, progress: Progress | None = None
) -> tuple[Plan, Progress | None]:
    """The plan for an image, its noise estimated if `sigma` is None; and what is left of the progress."""
    settings.check_sigma(sigma)
    axes = None
    if settings.depth_axis is not None:
        if settings.profile is not None or (settings.noise not in ("auto", "constant") and settings.counts is None):
            raise InvalidInputError("volumes have white noise or counts; leave out noise, or depth_axis")
        image, sigma, channel_axis, axes = turn_volume(image, sigma, settings.channel_axis, settings.depth_axis)
        settings = replace(settings, channel_axis=channel_axis)
    entered = enter(image, channel_axis=settings.channel_axis, white=settings.white, sigma=sigma, dtype=settings.dtype)
    mosaic = entered.pixels.shape if settings.profile is None and axes is None and holds_mosaic(entered) else None
    if mosaic is not None:
        if sigma is not None and np.shape(sigma)[-2:] == mosaic[-2:]:
            sigma = split_mosaic(np.broadcast_to(np.asarray(sigma), mosaic))
        entered = entered._replace(pixels=split_mosaic(entered.pixels))
    entered, defects = (entered, NO_DEFECTS) if settings.keep_outliers else mend(entered)
    defects = defects._replace(mosaic=int(mosaic is not None))
    report: NoiseReport | None = None
    noises: Noises = {}
    counts: dict[Index, PoissonGaussian] = {}
    profile = settings.profile and settings.profile.at(entered.full / type_white(entered.pixels))
    if profile is not None:
        if len(profile.channels) != entered.colours:
            raise InvalidInputError(
                f"the noise profile is for {len(profile.channels)} channels but the image has {entered.colours}; give "
                "one of images of this kind"
            )
    elif settings.counts is not None:
        counts = dict.fromkeys(_colours(entered), settings.counts)
        settings.counts.check_fits(entered.channels[..., : entered.colours, :, :])
        noises = {place: _noise_of_counts(entered, place, own) for place, own in counts.items()}
    elif sigma is not None:
        noises = entered.noises(sigma)
    else:
        from heatprior.noise import estimation  # noqa: PLC0415 (a third of what there is to import)

        estimating, progress = span_of(progress, 0.0, ESTIMATING_PART), span_of(progress, ESTIMATING_PART, 1.0)
        report = (estimation.estimate_noise if axes is None else estimation.estimate_noise_of_volume)(
            entered.pixels, str(settings.noise), channel_axis=settings.channel_axis, white=entered.full,
            keep_outliers=True, progress=estimating,
        )  # fmt: skip
        report = replace(report, defects=defects)
        found = dict(zip(np.ndindex(entered.channels.shape[:-2]), report.channels, strict=True))
        noises = {
            place: as_noise(np.asarray(strengthen(channel.sigma, settings.strength)))
            for place, channel in found.items()
        }
        models = {place: found[place].counts for place in _colours(entered)}
        if None not in models.values():  # no channel has other noise
            counts = {place: own.scale(report.white) for place, own in models.items() if own is not None}
        report = report if mosaic is None else estimation.report_of_mosaic(report, mosaic)
    prior = settings.find_prior(correlated=profile is not None)
    return Plan(entered, noises, profile, settings, prior, report, counts, defects, mosaic, axes), progress


def strengthen(sigma: FloatArray | float, strength: float) -> FloatArray | float:
    """The noise to remove, grey levels being 0 to 1, where `sigma` was found: times the strength, and no jump at 1."""
    return strength * sigma + max(0.0, strength - 1.0) * np.maximum(FLOOR - sigma, 0.0)


def _colours(entered: Entered) -> list[Index]:
    """All channels but transparency."""
    return [place for place in np.ndindex(entered.channels.shape[:-2]) if place[-1] < entered.colours]


def _noise_of_counts(entered: Entered, place: Index, counts: PoissonGaussian) -> Noise:
    """Of a channel, by its brightness, grey levels being 0 to 1."""
    light = _smooth_brightness(np.asarray(entered.channels[place], np.float32))
    return noise_of_levels(counts.sigma(light), entered.full, is_map=True)


def _smooth_brightness(channel: FloatArray) -> FloatArray:
    from heatprior.noise.levels import without_gaps  # noqa: PLC0415 (only where noise depends on brightness)
    from heatprior.noise.profiles import smooth_brightness  # noqa: PLC0415

    return smooth_brightness(without_gaps(channel))


def choose_prior(quality: str, *, correlated: bool = False) -> str:
    """The shipped prior of a preset; correlated noise needs a mixture."""
    return IN_CORRELATED_NOISE if correlated else PRESETS[quality].prior
