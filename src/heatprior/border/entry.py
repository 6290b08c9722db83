"""How images enter and leave: every public function that takes one calls `enter`, and gives a `Result`.

Inside, an image is planes (H, W) of float32, grey levels being 0 to 1, each with its `Noise`. Colours are mixed to
brightness and two differences; transparency stays outside; axes in front are independent images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from heatprior.arrays import ChannelAxis, FloatArray
from heatprior.border.gaps import with_all_or_no_channel_missing
from heatprior.border.pixels import (
    ALONE,
    COLOUR,
    as_channels,
    as_noise_level,
    as_pixels,
    as_result_dtype,
    axis_or_none,
    integer_limits,
    is_alpha,
    mix_channels,
    unwrap,
    warn_of_unlikely_units,
)
from heatprior.border.scale import full_scale
from heatprior.errors import InvalidInputError
from heatprior.noise_value import Noise, as_noise, mix_noise

ROWS_AT_ONCE = 64  # that are converted to the type of the result at a time

Index = tuple[int, ...]  # of a channel, among (..., C)
Noises = Mapping[Index, Noise]  # of every channel, grey levels being 0 to 1


class Group(NamedTuple):
    """Channels of one image that belong together: the colours, mixed, or one by itself."""

    image: Index
    channels: range

    @property
    def place(self) -> tuple[Any, ...]:
        """The index of the group among the channels (..., C, H, W)."""
        return (*self.image, slice(self.channels.start, self.channels.stop))


class Entered(NamedTuple):
    """An image that has entered."""

    pixels: NDArray[Any]  # as they came, missing ones being NaN
    channel_axis: int | None
    full: float  # the value that stands for full scale
    has_alpha: bool  # the last channel is transparency, which stays as it is
    dtype: np.dtype[Any] | None = None  # of the result, if that is not the type of the pixels

    @property
    def result_dtype(self) -> np.dtype[Any]:
        """The type that results have."""
        return self.pixels.dtype if self.dtype is None else self.dtype

    @property
    def channels(self) -> NDArray[Any]:
        """A view of the pixels as channels (..., C, H, W)."""
        return as_channels(self.pixels, self.channel_axis)

    @property
    def colours(self) -> int:
        """The number of channels, transparency not counted."""
        return int(self.channels.shape[-3]) - self.has_alpha

    @property
    def mix(self) -> FloatArray:
        """What planes are made of, from the channels of a group: (d, d)."""
        return COLOUR if self.channel_axis is not None and self.colours == len(COLOUR) else ALONE

    def groups(self) -> Iterator[Group]:
        """Yield the groups of all images, image by image."""
        step = len(self.mix)
        for image in np.ndindex(self.channels.shape[:-3]):
            for first in range(0, self.colours, step):
                yield Group(image, range(first, first + step))

    def planes(self, group: Group, *, whole: bool = True) -> list[FloatArray]:
        """The planes of a group, grey levels being 0 to 1; of a `whole` image none may be empty."""
        channels = with_all_or_no_channel_missing(self.channels[group.place], whole=whole)
        return [np.asarray(mix_channels(channels, weights / self.full), np.float32) for weights in self.mix]

    def noises_of_planes(self, group: Group, noises: Noises) -> list[Noise]:
        """The noise of each plane of a group, from that of each channel."""
        own = [noises[*group.image, c] for c in group.channels]
        return [as_noise(mix_noise(own, weights)) if len(own) > 1 else own[0] for weights in self.mix]

    def noises(self, sigma: ArrayLike) -> dict[Index, Noise]:
        """The noise of each channel, by levels in the units of the image: a number, one per channel, or a map."""
        values = as_noise_level(sigma, self.pixels, self.channel_axis, self.full)
        warn_of_unlikely_units(values, self.pixels, self.full)
        shape = self.channels.shape
        is_map = values.shape[-2:] == shape[-2:] and shape[-2:] != (1, 1)
        if values.ndim <= 2:  # the same for all
            return dict.fromkeys(np.ndindex(shape[:-2]), noise_of_levels(values, self.full, is_map=is_map))
        own = np.broadcast_to(values, (*shape[:-2], *values.shape[-2:]))
        return {place: noise_of_levels(own[place], self.full, is_map=is_map) for place in np.ndindex(shape[:-2])}


class Result:
    """Room for what becomes of an image: planes leave group by group, unmixed, as pixels of the type of the image.

    The result may be of another size; transparency stays as it is, or is enlarged. With `keep_gaps` pixels that were
    missing are so again. Of a piece of a larger image only the pixels `inside` are wanted.
    """

    def __init__(self, entered: Entered, *, keep_gaps: bool = True, inside: tuple[slice, slice] | None = None) -> None:
        self._entered, self._keep_gaps = entered, keep_gaps
        self._wanted = entered.channels[(..., *(inside or ()))]
        self._room: NDArray[Any] | None = None  # (..., C, h, w)

    def leave(self, group: Group, planes: list[FloatArray]) -> None:
        """Unmix the planes of a group into its channels."""
        entered = self._entered
        if self._room is None:
            like, shape = entered.channels, planes[0].shape
            if shape == like.shape[-2:]:  # laid out in memory as the image is
                self._room = as_channels(np.empty_like(entered.pixels, entered.result_dtype), entered.channel_axis)
            else:
                self._room = np.empty((*like.shape[:-2], *shape), entered.result_dtype)
        back = np.linalg.inv(entered.mix) * entered.full
        for channel, weights in zip(self._room[group.place], back, strict=True):
            for start in range(0, len(channel), ROWS_AT_ONCE):
                rows = slice(start, start + ROWS_AT_ONCE)
                channel[rows] = as_type(mix_channels([plane[rows] for plane in planes], weights), channel.dtype)

    def image(self) -> NDArray[Any]:
        """The image, once all groups have left."""
        result, wanted, axis = self._room, self._wanted, self._entered.channel_axis
        assert result is not None
        if self._entered.has_alpha:
            result[..., -1, :, :] = as_type(resize(wanted[..., -1, :, :], result.shape[-2:]), result.dtype)
        if self._keep_gaps and wanted.dtype.kind == result.dtype.kind == "f" and result.shape == wanted.shape:
            np.copyto(result, np.nan, where=np.isnan(wanted))
        return result[..., 0, :, :] if axis is None else np.moveaxis(result, -3, axis)


def enter(
    image: ArrayLike,
    *,
    channel_axis: ChannelAxis = None,
    white: float | None = None,
    sigma: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Entered:
    """Check an image (..., H, W), and find its full scale if `white` is not given; `dtype` is that of the result."""
    held = unwrap(image, channel_axis)
    pixels, channel_axis = as_pixels(held.array), held.channel_axis
    channels = as_channels(pixels, channel_axis)
    check_not_colours(pixels, channel_axis)
    axis = axis_or_none(channel_axis)
    has_alpha = axis is not None and is_alpha(channels)
    given = 0.0 if sigma is None else float(np.max(as_noise_level(sigma, pixels, channel_axis, np.inf)))
    wanted = held.dtype if dtype is None else as_result_dtype(dtype)
    if wanted is not None and wanted.kind != "f" and pixels.dtype.kind == "f" and np.isnan(np.min(pixels)):
        raise InvalidInputError(f"pixels are missing, which {wanted} has no value for; fill them, or give a float type")
    return Entered(pixels, axis, full_scale(white, pixels, channel_axis, given), has_alpha, wanted)


def turn_volume(
    image: ArrayLike, sigma: ArrayLike | None, channel_axis: ChannelAxis, depth_axis: int
) -> tuple[NDArray[Any], ArrayLike | None, ChannelAxis, tuple[int, ...]]:
    """A volume (..., depth, [channels,] H, W), its noise levels likewise, where its channels are, and its old axes."""
    pixels = as_pixels(image)
    as_channels(pixels, channel_axis)
    channels = axis_or_none(channel_axis)
    if not isinstance(depth_axis, int | np.integer) or not -pixels.ndim <= depth_axis < pixels.ndim:
        raise InvalidInputError(f"depth_axis is {depth_axis!r}; the image has axes 0 to {pixels.ndim - 1}")
    special = [depth_axis % pixels.ndim] + ([] if channels is None else [channels % pixels.ndim])
    if len(set(special)) < len(special):
        raise InvalidInputError(f"depth_axis and channel_axis are both {depth_axis}; give two different axes")
    others = [axis for axis in range(pixels.ndim) if axis not in special]
    if len(others) < 2:
        raise InvalidInputError(
            f"the image has shape {pixels.shape}, which leaves no rows and columns beside depth"
            + (" and channels" * (channels is not None))
            + "; leave out depth_axis"
        )
    check_not_colours(pixels, channel_axis)
    axes = (*others[:-2], *special, *others[-2:])
    if sigma is not None and np.shape(np.asarray(sigma)) == pixels.shape:
        sigma = np.transpose(np.asarray(sigma), axes)
    return pixels.transpose(axes), sigma, () if channels is None else -3, axes


def check_not_colours(pixels: NDArray[Any], channel_axis: ChannelAxis) -> None:
    """Refuse what looks like colours if no channel axis was given."""
    if channel_axis is None and pixels.ndim > 2 and pixels.shape[-1] in (3, 4):
        raise InvalidInputError(
            f"the image has shape {pixels.shape}, as colours have; give channel_axis=-1, or () if it has none"
        )


def noise_of_levels(values: FloatArray, full: float, *, is_map: bool, ends: tuple[float, float] | None = None) -> Noise:
    """The noise of a channel by its level, or a map, over full scale; `ends` are those of all of a map that is cut."""
    if not is_map:
        return Noise.constant(float(values.reshape(-1)[0]) / full)
    lowest, highest = ends or (float(values.min()), float(values.max()))
    return as_noise(Noise(lambda rows: np.asarray(values[rows] / full), lowest / full, highest / full))


def as_type(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert values to a type of pixels: rounded and clipped if it is another and integers."""
    return values if dtype.kind == "f" or values.dtype == dtype else np.clip(np.rint(values), *integer_limits(dtype))


def resize(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Resize values (..., H, W): each becomes that of the nearest pixel."""
    rows, columns = (np.arange(length) * old // length for length, old in zip(shape, values.shape[-2:], strict=True))
    return values if values.shape[-2:] == tuple(shape) else values[..., rows[:, None], columns]
