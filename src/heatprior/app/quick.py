"""The quick look: the part of a picture that is on the screen, denoised within a fraction of a second.

It is `hp.denoise` of the fast quality, of the part that is seen and a margin. If that part is large, it is reduced
first, so that it has about as many pixels as the screen; means over step×step pixels have 1/step of the noise. How
far to reduce is learnt from how long the last looks took.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.app.choices import QUICK, Choice
from heatprior.app.opened import FrameNoise, OpenedPicture
from heatprior.app.screen import LARGEST_STEP, Region
from heatprior.kernels.row_bands import Progress
from heatprior.noise.estimation import estimate_noise
from heatprior.restoration.denoising import denoise

MARGIN = 12  # pixels around what is seen: the reach of two patches
AIM = 0.2  # seconds that a look may take
FIRST_GUESS = 3e-7  # seconds for each pixel of each channel
SMALLEST = 32  # pixels along a side that are left, however slow the computer is: fewer hold no patches
MEMORY = 0.7  # weight of the past in what is known of the speed
PART = 512  # pixels along the side of the part that tells the noise at first


class Pace:
    """Seconds for each pixel of each channel, as the last looks had it."""

    def __init__(self) -> None:
        self._cost = FIRST_GUESS

    def step_for(self, region: Region, channels: int) -> int:
        """The least step, from that of the region on, at which it takes no longer than it may."""
        step, side = region.step, min(region.width, region.height)
        while region.width * region.height / step**2 * channels * self._cost > AIM:
            if 2 * step > LARGEST_STEP or side < 2 * step * SMALLEST:
                break
            step *= 2
        return step

    def learn(self, pixels: int, seconds: float) -> None:
        """Take a look that was had into account; very small ones tell nothing."""
        if pixels > 10_000:
            self._cost = MEMORY * self._cost + (1.0 - MEMORY) * seconds / pixels


def quick_look(
    picture: OpenedPicture, number: int, region: Region, choice: Choice, pace: Pace, progress: Progress | None = None
) -> NDArray[Any]:
    """The region of a frame, denoised: (H, W) or (H, W, 3) in float32 and in the units of the image."""
    wide = region.grown(MARGIN, picture.frame_shape)
    noisy = np.asarray(picture.reduced(number, region.step)[wide.reduced], np.float32)
    sigma = _level(picture.noise[number], choice, wide, picture.channel_axis)
    start = time.perf_counter()
    clean = denoise(
        noisy,
        sigma,
        quality=QUICK,
        channel_axis=picture.channel_axis,
        white=picture.noise[number].report.white,
        progress=progress,
    )
    pace.learn(noisy.size, time.perf_counter() - start)
    rows, columns = region.reduced
    top, left = rows.start - wide.reduced[0].start, columns.start - wide.reduced[1].start
    return clean[top : top + rows.stop - rows.start, left : left + columns.stop - columns.start]


def first_noise(picture: OpenedPicture, number: int) -> FrameNoise:
    """One level for each channel, from the middle of a frame: at once, and near enough to begin with."""
    frame = picture.frame(number)
    top, left = (max(0, (side - PART) // 2) for side in frame.shape[:2])
    part = frame[top : top + PART, left : left + PART]
    report = estimate_noise(part, "constant", channel_axis=picture.channel_axis, white=picture.image.white)
    return FrameNoise(report, from_part=True)


def warm_up() -> None:
    """Load, or compile, what the first look needs, before anybody waits for it."""
    image = np.random.default_rng(0).normal(0.5, 0.1, (64, 64)).astype(np.float32)
    estimate_noise(image, "constant")
    denoise(image, 0.1, quality=QUICK)


def _level(noise: FrameNoise, choice: Choice, region: Region, channel_axis: int | None) -> Any:
    """sigma of the reduced region: one number, one for each channel, or a map."""
    factor = choice.strength / region.step
    if choice.sigma is not None:
        return choice.sigma * factor
    if noise.is_constant or noise.from_part:
        return noise.levels * factor if channel_axis is not None else float(noise.levels[0] * factor)
    rows = slice(region.y, region.y + region.height, region.step)  # it varies slowly: samples are near its means
    columns = slice(region.x, region.x + region.width, region.step)
    return np.asarray(noise.report.sigma[rows, columns] * factor)
