"""`hp.denoise` of a dask array: lazy, block by block as it is chunked, with the same bits as the whole in memory.

Not `map_overlap`, which wants one depth for all blocks, at most as deep as the smallest chunk: what a block needs
follows from where it lies (`Pipeline.reads`), and is cut out of the array, never rechunked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from os import PathLike
from typing import Any

import dask.array as da
import numpy as np
from dask import compute, delayed
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import ChannelAxis
from heatprior.border.pixels import (
    MOSTLY,
    TYPE_NAMES,
    WHITES,
    as_channels,
    as_noise_level,
    axis_or_none,
    check_white,
    is_lazy,
    type_white,
)
from heatprior.border.scale import squares_of
from heatprior.errors import InvalidInputError
from heatprior.large import blocks
from heatprior.noise.defects import places_of_rule, rule_of_squares
from heatprior.noise.estimation import NoiseReport
from heatprior.presets import PRESETS
from heatprior.priors.protocol import DiffusedPrior
from heatprior.restoration.denoising import Settings, strengthen


def denoise(image: da.Array, sigma: ArrayLike | da.Array | None, settings: Settings) -> da.Array:
    """As `hp.denoise`, with the same bits: a dask array of the same chunks. A map `sigma` may be a dask array too."""
    if not PRESETS[settings.quality].is_local or not isinstance(settings.noise, str):
        local = " or ".join(repr(name) for name, preset in PRESETS.items() if preset.is_local)
        raise InvalidInputError(
            f"blocks are denoised at quality {local}, without a noise profile or counts; leave that out"
        )
    settings.check_sigma(sigma)
    channel_axis, white, noise = axis_or_none(settings.channel_axis), settings.white, str(settings.noise)
    stand_in = _stand_in(image)
    as_channels(stand_in, channel_axis)
    by_type = _full_scale(white, image)
    channels = _channels(image, channel_axis)
    in_colour = channel_axis is not None and channels.shape[-3] in (3, 4)
    if in_colour and len(channels.chunks[-3]) > 1:
        raise InvalidInputError(
            f"the {channels.shape[-3]} channels are in {len(channels.chunks[-3])} chunks, but colours belong together; "
            f"rechunk({{{channel_axis}: -1}}) first"
        )
    shape = (int(channels.shape[-2]), int(channels.shape[-1]))
    pipeline = settings.pipeline(settings.find_prior(), shape, has_gaps=image.dtype.kind == "f", in_colour=in_colour)
    blocks.check_local(pipeline)
    alpha = _has_alpha(channels) if in_colour and channels.shape[-3] == 4 else False
    given, largest = None, np.inf if white is None else by_type
    if sigma is not None:
        given = _given_levels(sigma, stand_in, channels, channel_axis, largest)
    full = _likely_scale(channels, by_type, given) if white is None else by_type
    cut: Callable[..., Any]  # the levels of a block
    if given is None:
        reports = delayed(blocks.noise_of_squares)(squares_of(channels), noise, None, full, in_colour=in_colour)
        cut = partial(delayed(blocks.Levels.of_block), delayed(_levels_of)(reports, channels.ndim, settings.strength))
    else:
        cut = _cut_levels(given, channels)
    rules = []  # by which hot and dead pixels of every channel are told: from squares, as in memory
    if not settings.keep_outliers:
        pixels = shape[0] * shape[1]
        rules = [delayed(rule_of_squares)(own, full, pixels) for own in squares_of(channels, places_of_rule)]
    edges = [[0, *np.cumsum(lengths).tolist()] for lengths in channels.chunks]
    work, shared = delayed(blocks.denoise_block, pure=False), delayed(pipeline, pure=False)

    def nest(places: tuple[slice, ...]) -> Any:
        """The blocks whose places begin so, nested as da.block takes them."""
        if len(places) < channels.ndim:
            return [nest((*places, slice(*ends))) for ends in pairwise(edges[len(places)])]
        wanted = (places[-2], places[-1])
        read, here = pipeline.reads(wanted), (*places[:-2], *blocks.reads_of_block(pipeline, wanted))
        about = {"white": full, "in_colour": in_colour, "alpha": alpha, "rules": rules[places[-3]] if rules else ()}
        block = work(channels[here], cut((*places[:-2], *read)), shared, wanted, **about)
        return da.from_delayed(block, tuple(place.stop - place.start for place in places), channels.dtype)

    clean = da.block(nest(()))
    return clean[..., 0, :, :] if channel_axis is None else da.moveaxis(clean, -3, channel_axis)


def estimate_noise(
    image: da.Array,
    noise: str = "auto",
    *,
    prior: str | PathLike[str] | DiffusedPrior | None = None,
    channel_axis: ChannelAxis = None,
    white: float | None = None,
) -> NoiseReport:
    """One level per channel, from squares spread over the image: computed now; see `hp.estimate_noise`."""
    channel_axis = axis_or_none(channel_axis)
    as_channels(_stand_in(image), channel_axis)
    by_type, channels = _full_scale(white, image), _channels(image, channel_axis)
    (full,) = compute(_likely_scale(channels, by_type, None)) if white is None else (by_type,)
    in_colour = channel_axis is not None and channels.shape[-3] in (3, 4)
    found = delayed(blocks.noise_of_squares)(squares_of(channels), noise, prior, full, in_colour=in_colour)
    (reports,) = compute(found)
    values = np.broadcast_to(_levels_of(reports, channels.ndim).sigma, channels.shape)
    sigma = values[..., 0, :, :] if channel_axis is None else np.moveaxis(values, -3, channel_axis)
    return NoiseReport(sigma, tuple(report.channels[0] for report in reports), full, reports[0].brightest)


def _given_levels(sigma: Any, stand_in: NDArray[Any], channels: da.Array, channel_axis: int | None, full: float) -> Any:
    """Check noise levels: one number, one per channel, or a map, as `hp.denoise` takes them."""
    if not is_lazy(sigma):
        return as_noise_level(sigma, stand_in, channel_axis, full)
    shapes = (channels.shape[-2:], stand_in.shape)
    if sigma.shape not in shapes:
        raise InvalidInputError(f"sigma has shape {sigma.shape}; expected a map {shapes[0]} or {shapes[1]}")
    return _channels(sigma, channel_axis) if sigma.shape == stand_in.shape and stand_in.ndim > 2 else sigma


def _cut_levels(values: Any, channels: da.Array) -> Callable[[tuple[slice, ...]], Any]:
    """What cuts the levels of a block out of those that `_given_levels` gives; of a map, with the ends of all of it."""
    if values.shape[-2:] != channels.shape[-2:]:
        return blocks.Levels(np.asarray(values)).of_block
    maps = da.broadcast_to(values, channels.shape)
    ends = [getattr(values, end)(axis=(-2, -1)) for end in ("min", "max")]
    ends = [delayed(np.broadcast_to)(end, channels.shape[:-2]) for end in ends]
    return lambda places: delayed(blocks.Levels)(maps[places], tuple(end[places[:-2]] for end in ends))


def _likely_scale(channels: da.Array, by_type: float, levels: Any) -> Any:
    """Full scale, delayed until squares have been looked at."""
    given = None if levels is None or levels.shape[-2:] == channels.shape[-2:] else levels
    return delayed(blocks.full_scale_of_squares)(squares_of(channels), given, by_type)


def _levels_of(reports: list[NoiseReport], dimensions: int, strength: float = 1.0) -> blocks.Levels:
    """One level per channel, as it broadcasts against (..., channels, h, w)."""
    found = [(float(report.sigma.flat[0]), report.white) for report in reports]
    levels = np.array([strengthen(level / white, strength) * white for level, white in found])
    return blocks.Levels(levels.reshape((1,) * (dimensions - 3) + (-1, 1, 1)))


def _channels(image: da.Array, channel_axis: int | None) -> da.Array:
    return image[..., None, :, :] if channel_axis is None else da.moveaxis(image, channel_axis, -3)


def _stand_in(image: da.Array) -> NDArray[Any]:
    """Make an array of the same shape and type that takes no memory, for checks."""
    if any(np.isnan(length) for length in image.shape):
        raise InvalidInputError("the dask array has chunks of unknown size; compute_chunk_sizes() first")
    if image.dtype.newbyteorder("=") not in WHITES or image.ndim < 2 or image.size == 0:
        raise InvalidInputError(f"the dask array is {image.dtype} {image.shape}; expected (..., H, W) of {TYPE_NAMES}")
    return np.broadcast_to(np.zeros((), image.dtype), image.shape)


def _full_scale(white: float | None, image: da.Array) -> float:
    nothing = np.zeros((1, 1), image.dtype)
    return type_white(nothing) if white is None else check_white(white, nothing)


def _has_alpha(channels: da.Array) -> Any:
    """Whether the last of four channels is transparency, as `is_alpha` tells: from all of it."""
    last = channels[..., -1, :, :]
    return delayed(bool)(((last == last.max()) | (last == 0)).mean() > MOSTLY)
