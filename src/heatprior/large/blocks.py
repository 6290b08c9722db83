"""What the blocks of a large image share, and what a task computes of one of them, in one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.border.entry import Entered, Group, Index, Result, as_type, noise_of_levels
from heatprior.border.gaps import Window
from heatprior.border.pixels import as_channels, as_noise_level, as_pixels, in_unit_range
from heatprior.border.scale import Groups, Places, join_squares, plane_of, scale_of_squares, squares
from heatprior.errors import InvalidInputError
from heatprior.kernels.threads import limit_threads
from heatprior.noise.defects import REACH, Rule, find_isolated
from heatprior.noise.estimation import NoiseReport, estimate_noise
from heatprior.noise_value import Noise
from heatprior.restoration.pipeline import Pipeline
from heatprior.restoration.pyramid import shift


def squares_of_channel(
    shape: Sequence[int], axis: int | None, channel: int, places: Callable[..., list[Places]] = squares
) -> list[Places]:
    """Where to look in one channel of an image that may have an axis of channels."""
    if axis is None:
        return places(shape)
    here = slice(channel, channel + 1)
    alone = places([1 if number == axis else length for number, length in enumerate(shape)])
    return [(*place[:axis], here, *place[axis + 1 :]) for place in alone]


def noise_of_squares(
    found: Sequence[Sequence[NDArray[Any]]], noise: str, prior: Any, white: float, *, in_colour: bool
) -> list[NoiseReport]:
    """Of squares (..., h, w) of every channel: whether there is noise, as in memory, and if so one level for each."""
    if noise not in ("auto", "constant"):
        raise InvalidInputError(
            f"{noise} noise needs the whole image, which blocks do not see; leave out noise, or give sigma as a map"
        )
    planes = [[plane_of(square) for square in own] for own in found]
    reports: list[NoiseReport] = []
    for own in [planes] if in_colour else [[channel] for channel in planes]:
        if (joined := join_squares(own)) is None:
            raise InvalidInputError("squares spread over the image hold one value each, or nothing; give sigma")
        report = estimate_noise(joined, noise, prior=prior, channel_axis=0, white=white)
        for channel in report.channels:
            level = channel.level.sigma
            alone = (replace(channel, sigma=level, local=None),)
            reports.append(replace(report, sigma=np.full((1, 1), level * report.white), channels=alone))
    return reports


def full_scale_of_squares(found: Groups, given: NDArray[Any] | None, by_type: float) -> float:
    """Full scale as `hp.denoise` finds it, from squares of every channel; `given` are noise levels, but no map."""
    planes = [[as_pixels(plane_of(square)) for square in of_channel] for of_channel in found]
    full = scale_of_squares(planes, by_type, 0.0 if given is None else float(given.max()))
    if given is not None:
        as_noise_level(float(given.max()), planes[0][0], None, full)
    return full


@dataclass(frozen=True, eq=False)
class Levels:
    """The noise of a block: numbers or a map, in the units of the image."""

    sigma: FloatArray  # broadcasts against (..., channels, h, w)
    ends: tuple[NDArray[Any], ...] | None = None  # of a map: lowest and highest in the whole image, (..., channels)

    def of_block(self, places: tuple[slice, ...]) -> Levels:
        """Those of a block of the whole image (..., channels, H, W), if these are numbers."""
        shape = np.shape(self.sigma)
        own = zip(places[len(places) - len(shape) :], shape, strict=True)
        return Levels(np.asarray(self.sigma)[tuple(place if length > 1 else slice(None) for place, length in own)])

    def noises(self, shape: tuple[int, ...], white: float) -> dict[Index, Noise]:
        """Of every channel of a block (..., channels, h, w), grey levels being 0 to 1."""
        sigma, noises = np.asarray(self.sigma), {}
        values = np.broadcast_to(sigma, (*shape[:-2], *(sigma.shape[-2:] if sigma.ndim >= 2 else (1, 1))))
        for place in np.ndindex(shape[:-2]):
            ends = None if self.ends is None else (float(self.ends[0][place]), float(self.ends[1][place]))
            noises[place] = noise_of_levels(values[place], white, is_map=ends is not None, ends=ends)
        return noises


def reads_of_block(pipeline: Pipeline, wanted: Window) -> Window:
    """What has to be read for the pixels `wanted`: what the pipeline reads, and what tells outliers among that."""
    rows, columns = (
        slice(max(0, place.start - REACH), min(length, place.stop + REACH))
        for place, length in zip(pipeline.reads(wanted), pipeline.shape, strict=True)
    )
    return rows, columns


def denoise_block(
    channels: NDArray[Any],
    levels: Levels,
    pipeline: Pipeline,
    wanted: Window,
    *,
    white: float,
    in_colour: bool = False,
    alpha: bool = False,
    rules: Sequence[Rule] = (),
) -> NDArray[Any]:
    """The pixels `wanted` of channels (..., channels, h, w), of which what `reads_of_block` says is here.

    As `hp.denoise` of the whole image, in type, units and bits. `in_colour` if the channels are those of one image,
    not images by themselves; `alpha` if the last of them is transparency. By the `rules`, one for each channel or one
    for all, hot and dead pixels are filled in.
    """
    read = pipeline.reads(wanted)
    here = shift(read, reads_of_block(pipeline, wanted))
    pixels = _fill_outliers(as_pixels(channels), rules, white, colours=channels.shape[-3] - alpha)[(..., *here)]
    inside = shift(wanted, read)
    if pixels.dtype.kind != "f" and pixels.min() == pixels.max():
        return pixels[(..., *inside)].copy()  # nothing to see: the noise that is estimated elsewhere is not here
    axis = pixels.ndim - 3 if in_colour else None
    entered = Entered(pixels if in_colour else np.moveaxis(pixels, -3, 0), axis, white, alpha)
    noises = levels.noises(pixels.shape, white)

    result, unchanged = Result(entered, inside=inside), list[Index]()
    with limit_threads(1):  # a scheduler runs several blocks at a time
        for group in entered.groups():
            own = {(*group.image, c): noises[_place(group, c, in_colour=in_colour)] for c in group.channels}
            planes = entered.planes(group, whole=False)
            if any(noise.highest > 0.0 for noise in own.values()):
                planes = pipeline.denoise_planes(planes, entered.noises_of_planes(group, own), wanted=wanted)
            else:
                planes = [plane[inside] for plane in planes]
            result.leave(group, planes)
            unchanged += [place for place, noise in own.items() if noise.highest == 0.0]
    clean = result.image()
    for place in unchanged:  # bit by bit
        as_channels(clean, axis)[place] = entered.channels[place][inside]
    return clean if in_colour else np.moveaxis(clean, 0, -3)


def _fill_outliers(pixels: NDArray[Any], rules: Sequence[Rule], white: float, *, colours: int) -> NDArray[Any]:
    """Channels (..., channels, h, w) with hot and dead pixels filled in, as `mend` does it in a whole image."""
    mended = pixels
    for place in np.ndindex(pixels.shape[:-2] if rules else (0,)):
        if place[-1] >= colours:
            continue
        rule = rules[place[-1] % len(rules)]
        found = find_isolated(in_unit_range(pixels[place], white), *rule)
        if len(found.rows):
            mended = pixels.copy() if mended is pixels else mended
            mended[place][found.rows, found.columns] = as_type(found.filled * np.float64(white), pixels.dtype)
    return mended


def _place(group: Group, channel: int, *, in_colour: bool) -> Index:
    """Of a channel among (..., channels): where channels are images by themselves, they are in front."""
    return (*group.image, channel) if in_colour else (*group.image[1:], group.image[0])


def check_local(pipeline: Pipeline) -> None:
    """Refuse what looks at the whole image at once, before any block is computed."""
    pipeline.reads((slice(0, 1), slice(0, 1)))
