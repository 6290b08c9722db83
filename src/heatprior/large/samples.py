"""The noise of a large image, and its full scale, found once: from squares spread over all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.border.pixels import as_noise_level, as_pixels
from heatprior.border.scale import Groups, Places, join_squares, plane_of, scale_of_squares, squares
from heatprior.errors import InvalidInputError
from heatprior.noise.channel_noise import ChannelNoise
from heatprior.noise.estimation import NoiseReport, estimate_noise


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
        reports += [_at_one_level(report, channel) for channel in report.channels]
    return reports


def _at_one_level(report: NoiseReport, channel: ChannelNoise) -> NoiseReport:
    """What was found of one channel of a report, at one level."""
    level = channel.level.sigma
    alone = (replace(channel, sigma=level, local=None),)
    return replace(report, sigma=np.full((1, 1), level * report.white), channels=alone)


def full_scale_of_squares(found: Groups, given: NDArray[Any] | None, by_type: float) -> float:
    """Which value is full scale, as `hp.denoise` finds it, from squares (..., h, w) of every channel.

    `given` are the noise levels, if they are known and no map.
    """
    planes = [[as_pixels(plane_of(square)) for square in of_channel] for of_channel in found]
    full = scale_of_squares(planes, by_type, 0.0 if given is None else float(given.max()))
    if given is not None:
        as_noise_level(float(given.max()), planes[0][0], None, full)
    return full
