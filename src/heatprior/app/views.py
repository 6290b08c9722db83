"""What the page shows of a picture, quickly: noisy, denoised, their difference, maps of noise and of error."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.app import pictures
from heatprior.app.jobs import SupersededError
from heatprior.app.pictures import FrameNoise, OpenedPicture, Region
from heatprior.app.work import Choice, Restoration
from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import Progress
from heatprior.noise.estimation import estimate_noise
from heatprior.presets import QUICK
from heatprior.restoration.denoising import denoise

DEVIATIONS_SHOWN = 3.0  # standard deviations of the difference, from black to grey and from grey to white
LAYERS = ("noisy", "denoised", "difference", "noise", "error")
SMALLEST = 32  # pixels along a side that are left, however slow the computer is: fewer hold no patches
MEMORY = 0.7  # weight of the past in what is known of the speed
PART = 512  # pixels along the side of the part that tells the noise at first


class View(NamedTuple):
    """A BMP, the region that it shows, and the values of its black and white."""

    bmp: bytes
    region: Region
    black: float
    white: float


class ViewRequest(NamedTuple):
    """A layer of a frame: of the finished `result` of that name, or else a quick look by `choice`."""

    layer: str
    frame: int
    region: Region
    choice: Choice | Restoration
    result: str | None
    closeness: str = ""  # "exact": of the step that was asked for, and giving way to newer ones


def render(picture: OpenedPicture, wanted: ViewRequest, pace: Pace, is_old: Callable[[], bool] = lambda: False) -> View:
    """Render one layer; a closer look raises SupersededError once `is_old` says that a newer one waits."""
    if wanted.layer not in LAYERS:
        raise InvalidInputError(f"{wanted.layer[:40]!r} is no layer; expected {', '.join(LAYERS)}")
    if wanted.layer == "noise":
        noise = picture.noise.get((wanted.frame, wanted.choice.noise))
        if noise is None or noise.from_part:
            raise InvalidInputError("the noise map is not known yet; wait until the noise is estimated")
        return _render_map(picture.level_map(noise), wanted.region)
    if wanted.layer == "error":
        return _render_map(picture.error_map(wanted.frame, wanted.result or ""), wanted.region)
    black, white = picture.ends(wanted.frame)
    if wanted.layer == "noisy":
        pixels = picture.reduce(wanted.frame, wanted.region.step)[wanted.region.window]
        return View(pictures.encode_bmp(pictures.quantise(pixels, black, white)), wanted.region, black, white)
    region, clean = _get_denoised(picture, wanted, pace, is_old)
    if wanted.layer == "difference":
        noisy = picture.reduce(wanted.frame, region.step)[region.window]
        removed = np.subtract(noisy, clean, dtype=np.float32)
        spread = DEVIATIONS_SHOWN * float(np.nanstd(removed)) or 1.0
        return View(pictures.encode_bmp(pictures.quantise(removed, -spread, spread)), region, -spread, spread)
    return View(pictures.encode_bmp(pictures.quantise(clean, black, white)), region, black, white)


def is_quick_look(wanted: ViewRequest) -> bool:
    """Whether a view has to be denoised before it can be shown."""
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
    known = (wanted.frame, wanted.choice.noise)
    if known not in picture.noise:
        picture.noise[known] = guess_noise(picture, *known)
    if not wanted.closeness:
        step = pace.step_for(region, 3 if picture.image.colour else 1)
        region = Region.within(picture.frame_shape, region.x, region.y, region.width, region.height, step)
    key = (wanted.frame, region, wanted.choice, id(picture.noise[known]))
    if picture.last_look is None or picture.last_look[0] != key:
        clean = look_quickly(picture, wanted.frame, region, wanted.choice, pace, give_way)
        picture.last_look = (key, clean)
    return region, picture.last_look[1]


def _render_map(levels: FloatArray, region: Region) -> View:
    """Render a region of a map (H, W) in colours."""
    low, high = 0.0, pictures.contrast_range(levels)[1]  # from nothing on, so that nearly constant levels look so
    rows, columns = (slice(part.start * region.step, None, region.step) for part in region.window)
    height, width = (part.stop - part.start for part in region.window)
    part = levels[rows, columns][:height, :width]
    return View(pictures.encode_bmp(pictures.colourise(part, low, high)), region, low, high)


OF_DENOISING = (0.2, 1e-7, 1e6)  # of a look that follows a slider
OF_RESTORING = (1.0, 5e-6, 2e4)  # of one that takes several steps


class Pace:
    """Seconds for each value, a pixel of a channel, as the last looks had it; what is set up counts as values too."""

    def __init__(self, aim: float, cost: float, set_up: float) -> None:
        self._aim, self._cost = aim, cost  # seconds that a look may take; seconds for each value, at first a guess
        self._set_up = set_up  # values that take as long as what any look needs: tables of the prior, several scales

    def step_for(self, region: Region, channels: int) -> int:
        """The least step, from that of the region on, at which it takes no longer than it may."""
        step, side = region.step, min(region.width, region.height)
        while (region.width * region.height / step**2 * channels + self._set_up) * self._cost > self._aim:
            if 2 * step > pictures.LARGEST_STEP or side < 2 * step * SMALLEST:
                break
            step *= 2
        return step

    def learn(self, values: int, seconds: float) -> None:
        """Learn from how long a look took; very small ones tell nothing."""
        if values > 10_000:
            self._cost = MEMORY * self._cost + (1.0 - MEMORY) * seconds / (values + self._set_up)


def look_quickly(
    picture: OpenedPicture, number: int, region: Region, choice: Choice | Restoration, pace: Pace, progress: Progress
) -> NDArray[Any]:
    """Denoise or deblur a region of a frame at once: (H, W) or (H, W, 3) in float32, in the units of the image."""
    wide = region.grow(choice.margin(region.step), picture.frame_shape)
    noisy = np.asarray(picture.reduce(number, region.step)[wide.window], np.float32)
    start = time.perf_counter()
    noise = picture.noise[number, choice.noise]
    clean = choice.look(noisy, wide, noise, colour=picture.image.colour, done=progress)
    if clean is not noisy:
        pace.learn(clean.size, time.perf_counter() - start)
    rows, columns = region.window
    top, left = rows.start - wide.window[0].start, columns.start - wide.window[1].start
    return clean[top : top + rows.stop - rows.start, left : left + columns.stop - columns.start]


def guess_noise(picture: OpenedPicture, number: int, kind: str) -> FrameNoise:
    """Estimate the noise of a frame at first, from its middle."""
    frame = picture.frame(number)
    top, left = (max(0, (side - PART) // 2) for side in frame.shape[:2])
    part = frame[top : top + PART, left : left + PART]
    report = estimate_noise(part, kind, channel_axis=picture.channel_axis, white=picture.white)
    return FrameNoise(report, from_part=True, brightness=float(np.nanmedian(part)))


def warm_up() -> None:
    """Load or compile what the first look needs, before anybody waits for it."""
    image = np.random.default_rng(0).normal(0.5, 0.1, (64, 64)).astype(np.float32)
    estimate_noise(image)
    denoise(image, 0.1, quality=QUICK)
