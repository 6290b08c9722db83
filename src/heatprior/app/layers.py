"""What the page shows of a picture, part by part: noisy, denoised, their difference, maps of noise and error."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.app.choices import Choice
from heatprior.app.opened import OpenedPicture
from heatprior.app.quick import Pace, careful_look, first_noise, is_rough, quick_look
from heatprior.app.screen import Region, as_bmp, ends_of, in_8_bits, in_colours
from heatprior.app.turns import SupersededError
from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError

DEVIATIONS_SHOWN = 3.0  # standard deviations of the difference, from black to grey and from grey to white
LAYERS = ("noisy", "denoised", "difference", "noise", "error")


class Shown(NamedTuple):
    """A BMP, the region that it shows, the values of its black and white, and whether a closer look sees more."""

    bmp: bytes
    region: Region
    black: float
    white: float
    rough: bool = False


class Wanted(NamedTuple):
    """A layer of a frame; `result` names a finished one, otherwise it is a quick look by `choice`.

    A look whose `closeness` is "exact" has the step that was asked for, and a "careful" one takes into account that
    pixels share their noise, however long that takes; both give way to newer ones.
    """

    layer: str
    frame: int
    region: Region
    choice: Choice
    result: str | None
    closeness: str = ""


def show(picture: OpenedPicture, wanted: Wanted, pace: Pace, is_old: Callable[[], bool] = lambda: False) -> Shown:
    """One layer; a closer look ends, with SupersededError, once `is_old` says that a newer one waits."""
    if wanted.layer not in LAYERS:
        raise InvalidInputError(f"{wanted.layer[:40]!r} is no layer; expected {', '.join(LAYERS)}")
    if wanted.layer == "noise":
        return _as_map(_noise_levels(picture, wanted.frame), wanted.region)
    if wanted.layer == "error":
        return _as_map(picture.error_map(wanted.frame, wanted.result or ""), wanted.region)
    black, white = picture.ends(wanted.frame)
    if wanted.layer == "noisy":
        pixels = picture.reduced(wanted.frame, wanted.region.step)[wanted.region.reduced]
        return Shown(as_bmp(in_8_bits(pixels, black, white)), wanted.region, black, white)
    region, clean, rough = _denoised(picture, wanted, pace, is_old)
    if wanted.layer == "difference":
        noisy = picture.reduced(wanted.frame, region.step)[region.reduced]
        removed = np.subtract(noisy, clean, dtype=np.float32)
        spread = DEVIATIONS_SHOWN * float(np.nanstd(removed)) or 1.0
        return Shown(as_bmp(in_8_bits(removed, -spread, spread)), region, -spread, spread, rough)
    return Shown(as_bmp(in_8_bits(clean, black, white)), region, black, white, rough)


def is_quick_look(wanted: Wanted) -> bool:
    """Whether it must be computed first."""
    return wanted.result is None and wanted.layer in ("denoised", "difference")


def _denoised(
    picture: OpenedPicture, wanted: Wanted, pace: Pace, is_old: Callable[[], bool]
) -> tuple[Region, NDArray[Any], bool]:
    """Where it is, its pixels, and whether a careful look would see more."""

    def give_way(_: float) -> None:
        if wanted.closeness and is_old():
            raise SupersededError

    region = wanted.region
    if wanted.result is not None:
        return region, picture.reduced(wanted.frame, region.step, wanted.result)[region.reduced], False
    if wanted.frame not in picture.noise:
        picture.noise[wanted.frame] = first_noise(picture, wanted.frame)
    if not wanted.closeness:
        step = pace.step_for(region, 3 if picture.image.colour else 1)
        region = Region.within(picture.frame_shape, region.x, region.y, region.width, region.height, step)
    careful = wanted.closeness == "careful" and is_rough(picture, wanted.frame, region, wanted.choice)
    key = (wanted.frame, region, wanted.choice, careful, id(picture.noise[wanted.frame]))
    if picture.last_look is None or picture.last_look[0] != key:
        look = careful_look if careful else partial(quick_look, pace=pace)
        picture.last_look = (key, look(picture, wanted.frame, region, wanted.choice, progress=give_way))
    return region, picture.last_look[1], not careful and is_rough(picture, wanted.frame, region, wanted.choice)


def _noise_levels(picture: OpenedPicture, frame: int) -> FloatArray:
    noise = picture.noise.get(frame)
    if noise is None or noise.from_part:
        raise InvalidInputError("the noise map is not known yet; wait until the noise is estimated")
    return picture.level_map(frame)


def _as_map(levels: FloatArray, region: Region) -> Shown:
    """A region of a map (H, W), in colours."""
    low, high = 0.0, ends_of(levels)[1]  # from nothing on, so that nearly constant levels look so
    rows, columns = (slice(part.start * region.step, None, region.step) for part in region.reduced)
    height, width = (part.stop - part.start for part in region.reduced)
    part = levels[rows, columns][:height, :width]
    return Shown(as_bmp(in_colours(part, low, high)), region, low, high)
