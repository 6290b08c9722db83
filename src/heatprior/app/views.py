"""What the page shows of a picture: noisy, denoised, their difference, maps of noise and error; as quickly as may be.

A quick look is `hp.denoise` of the fast quality, of the part that is seen and a margin. If that part is large, it is
reduced first, so that it has about as many pixels as the screen; means over step×step pixels have 1/step of the noise.
How far to reduce is learnt from how long the last looks took.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.app.jobs import SupersededError
from heatprior.app.pictures import (
    LARGEST_STEP,
    FrameNoise,
    OpenedPicture,
    Region,
    colourise,
    contrast_range,
    encode_bmp,
    quantise,
)
from heatprior.app.work import Choice
from heatprior.arrays import ChannelAxis, FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import Progress
from heatprior.noise.estimation import estimate_noise
from heatprior.presets import QUICK
from heatprior.restoration.denoising import denoise, strengthen

DEVIATIONS_SHOWN = 3.0  # standard deviations of the difference, from black to grey and from grey to white
LAYERS = ("noisy", "denoised", "difference", "noise", "error")
MARGIN = 12  # pixels around what is seen: the reach of two patches
AIM = 0.2  # seconds that a look may take
FIRST_GUESS = 1e-7  # seconds for each pixel of each channel
SET_UP = 1e6  # values that take as long as what a look needs whatever its size: tables of the prior, several scales
SMALLEST = 32  # pixels along a side that are left, however slow the computer is: fewer hold no patches
MEMORY = 0.7  # weight of the past in what is known of the speed
LITTLE = 0.1  # of their level: how much channels may differ and still be looked at with one
PART = 512  # pixels along the side of the part that tells the noise at first


class View(NamedTuple):
    """A BMP, the region that it shows, and the values of its black and white."""

    bmp: bytes
    region: Region
    black: float
    white: float


class ViewRequest(NamedTuple):
    """A layer of a frame; `result` names a finished one, otherwise it is a quick look by `choice`.

    A look whose `closeness` is "exact" has the step that was asked for, and gives way to newer ones.
    """

    layer: str
    frame: int
    region: Region
    choice: Choice
    result: str | None
    closeness: str = ""


def render(picture: OpenedPicture, wanted: ViewRequest, pace: Pace, is_old: Callable[[], bool] = lambda: False) -> View:
    """Render one layer; a closer look raises SupersededError once `is_old` says that a newer one waits."""
    if wanted.layer not in LAYERS:
        raise InvalidInputError(f"{wanted.layer[:40]!r} is no layer; expected {', '.join(LAYERS)}")
    if wanted.layer == "noise":
        return _render_map(_noise_levels(picture, wanted.frame), wanted.region)
    if wanted.layer == "error":
        return _render_map(picture.error_map(wanted.frame, wanted.result or ""), wanted.region)
    black, white = picture.ends(wanted.frame)
    if wanted.layer == "noisy":
        pixels = picture.reduce(wanted.frame, wanted.region.step)[wanted.region.window]
        return View(encode_bmp(quantise(pixels, black, white)), wanted.region, black, white)
    region, clean = _get_denoised(picture, wanted, pace, is_old)
    if wanted.layer == "difference":
        noisy = picture.reduce(wanted.frame, region.step)[region.window]
        removed = np.subtract(noisy, clean, dtype=np.float32)
        spread = DEVIATIONS_SHOWN * float(np.nanstd(removed)) or 1.0
        return View(encode_bmp(quantise(removed, -spread, spread)), region, -spread, spread)
    return View(encode_bmp(quantise(clean, black, white)), region, black, white)


def is_quick_look(wanted: ViewRequest) -> bool:
    """Whether the view must be computed first."""
    return wanted.result is None and wanted.layer in ("denoised", "difference")


def _get_denoised(
    picture: OpenedPicture, wanted: ViewRequest, pace: Pace, is_old: Callable[[], bool]
) -> tuple[Region, NDArray[Any]]:
    """The region shown, and its denoised pixels."""

    def give_way(_: float) -> None:
        if wanted.closeness and is_old():
            raise SupersededError

    region = wanted.region
    if wanted.result is not None:
        return region, picture.reduce(wanted.frame, region.step, wanted.result)[region.window]
    if wanted.frame not in picture.noise:
        picture.noise[wanted.frame] = guess_noise(picture, wanted.frame)
    if not wanted.closeness:
        step = pace.step_for(region, 3 if picture.image.colour else 1)
        region = Region.within(picture.frame_shape, region.x, region.y, region.width, region.height, step)
    key = (wanted.frame, region, wanted.choice, id(picture.noise[wanted.frame]))
    if picture.last_look is None or picture.last_look[0] != key:
        clean = denoise_quickly(picture, wanted.frame, region, wanted.choice, pace, progress=give_way)
        picture.last_look = (key, clean)
    return region, picture.last_look[1]


def _noise_levels(picture: OpenedPicture, frame: int) -> FloatArray:
    noise = picture.noise.get(frame)
    if noise is None or noise.from_part:
        raise InvalidInputError("the noise map is not known yet; wait until the noise is estimated")
    return picture.level_map(frame)


def _render_map(levels: FloatArray, region: Region) -> View:
    """Render a region of a map (H, W) in colours."""
    low, high = 0.0, contrast_range(levels)[1]  # from nothing on, so that nearly constant levels look so
    rows, columns = (slice(part.start * region.step, None, region.step) for part in region.window)
    height, width = (part.stop - part.start for part in region.window)
    part = levels[rows, columns][:height, :width]
    return View(encode_bmp(colourise(part, low, high)), region, low, high)


class Pace:
    """Seconds for each value, a pixel of a channel, as the last looks had it; what is set up counts as values too."""

    def __init__(self) -> None:
        self._cost = FIRST_GUESS

    def step_for(self, region: Region, channels: int) -> int:
        """The least step, from that of the region on, at which it takes no longer than it may."""
        step, side = region.step, min(region.width, region.height)
        while (region.width * region.height / step**2 * channels + SET_UP) * self._cost > AIM:
            if 2 * step > LARGEST_STEP or side < 2 * step * SMALLEST:
                break
            step *= 2
        return step

    def learn(self, values: int, seconds: float) -> None:
        """Take a look that was had into account; very small ones tell nothing."""
        if values > 10_000:
            self._cost = MEMORY * self._cost + (1.0 - MEMORY) * seconds / (values + SET_UP)


def denoise_quickly(
    picture: OpenedPicture, number: int, region: Region, choice: Choice, pace: Pace, progress: Progress | None = None
) -> NDArray[Any]:
    """Denoise a region of a frame at once: (H, W) or (H, W, 3) in float32, in the units of the image."""
    if choice.sigma is None and choice.strength <= 1.0 and picture.noise[number].report.is_none:
        return np.asarray(picture.reduce(number, region.step)[region.window], np.float32)
    sigma = _view_level(picture.noise[number], choice, _widen(picture, region), picture.channel_axis)
    start = time.perf_counter()
    clean = _denoise_region(picture, number, region, sigma, progress)
    pace.learn(clean.size, time.perf_counter() - start)
    return clean


def _denoise_region(
    picture: OpenedPicture, number: int, region: Region, sigma: Any, progress: Progress | None
) -> NDArray[Any]:
    wide = _widen(picture, region)
    noisy = np.asarray(picture.reduce(number, region.step)[wide.window], np.float32)
    white = picture.noise[number].report.white
    keywords: dict[str, Any] = {
        "quality": QUICK,
        "channel_axis": picture.channel_axis,
        "white": white,
    }
    clean: NDArray[Any] = np.asarray(denoise(noisy, sigma, progress=progress, **keywords), np.float32)
    rows, columns = region.window
    top, left = rows.start - wide.window[0].start, columns.start - wide.window[1].start
    return clean[top : top + rows.stop - rows.start, left : left + columns.stop - columns.start]


def _widen(picture: OpenedPicture, region: Region) -> Region:
    return region.grow(MARGIN, picture.frame_shape)


def guess_noise(picture: OpenedPicture, number: int) -> FrameNoise:
    """A first estimate, from the middle of a frame."""
    frame = picture.frame(number)
    top, left = (max(0, (side - PART) // 2) for side in frame.shape[:2])
    part = frame[top : top + PART, left : left + PART]
    report = estimate_noise(part, channel_axis=picture.channel_axis)
    return FrameNoise(report, from_part=True)


def warm_up() -> None:
    """Load or compile what the first look needs, before anybody waits for it."""
    image = np.random.default_rng(0).normal(0.5, 0.1, (64, 64)).astype(np.float32)
    estimate_noise(image)
    denoise(image, 0.1, quality=QUICK)


def _view_level(noise: FrameNoise, choice: Choice, region: Region, channel_axis: ChannelAxis) -> Any:
    """sigma of the reduced region: one number, one for each channel, or a map."""
    if choice.sigma is not None:
        return choice.sigma * choice.strength / region.step
    white = noise.report.white

    def reduce(levels: FloatArray) -> FloatArray:
        return np.asarray(strengthen(levels / white, choice.strength) * white / region.step)

    if noise.is_constant or noise.from_part:
        levels = reduce(noise.levels)
        return _merge_levels(levels) if channel_axis is not None else float(levels[0])
    rows = slice(region.y, region.y + region.height, region.step)  # it varies slowly: samples are near its means
    columns = slice(region.x, region.x + region.width, region.step)
    return reduce(noise.report.sigma[rows, columns])


def _merge_levels(levels: FloatArray) -> FloatArray | float:
    """One level for channels that differ little, whose tables the prior then computes once: half the time of a look."""
    mean = float(np.sqrt(np.mean(np.square(levels))))
    return mean if float(np.ptp(levels)) < LITTLE * mean else levels
