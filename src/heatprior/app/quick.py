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

from heatprior.app.choices import QUICK, Choice, strengthened
from heatprior.app.opened import FrameNoise, OpenedPicture
from heatprior.app.screen import LARGEST_STEP, Region
from heatprior.arrays import FloatArray
from heatprior.kernels.row_bands import Progress
from heatprior.noise.estimation import estimate_noise
from heatprior.restoration.denoising import denoise

MARGIN = 12  # pixels around what is seen: the reach of two patches
AIM = 0.2  # seconds that a look may take
FIRST_GUESS = 1e-7  # seconds for each pixel of each channel
SET_UP = 1e6  # values that take as long as what a look needs whatever its size: tables of the prior, several scales
SMALLEST = 32  # pixels along a side that are left, however slow the computer is: fewer hold no patches
MEMORY = 0.7  # weight of the past in what is known of the speed
LITTLE = 0.1  # of their level: how much channels may differ and still be looked at with one
PART = 512  # pixels along the side of the part that tells the noise at first


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


def quick_look(
    picture: OpenedPicture, number: int, region: Region, choice: Choice, pace: Pace, progress: Progress | None = None
) -> NDArray[Any]:
    """The region of a frame, denoised: (H, W) or (H, W, 3) in float32 and in the units of the image."""
    told = {"sigma": _level(picture.noise[number], choice, _wide(picture, region), picture.channel_axis)}
    start = time.perf_counter()
    clean = _look(picture, number, region, told, progress)
    pace.learn(clean.size, time.perf_counter() - start)
    return clean


def careful_look(
    picture: OpenedPicture, number: int, region: Region, choice: Choice, progress: Progress | None = None
) -> NDArray[Any]:
    """As `quick_look`, and that neighbouring pixels share their noise is taken into account: several times slower."""
    told = strengthened(picture.noise[number].report, choice.strength)
    return _look(picture, number, region, told, progress)


def is_rough(picture: OpenedPicture, number: int, region: Region, choice: Choice) -> bool:
    """Whether a careful look sees more: where noise is correlated, and not reduced; means over pixels are less so."""
    return choice.sigma is None and region.step == 1 and picture.noise[number].report.profile is not None


def _look(
    picture: OpenedPicture, number: int, region: Region, told: dict[str, Any], progress: Progress | None
) -> NDArray[Any]:
    wide = _wide(picture, region)
    noisy = picture.reduced(number, region.step)[wide.reduced]
    if "noise" not in told:  # a profile is in units of the type of the pixels, which must stay
        noisy = np.asarray(noisy, np.float32)
    white = picture.noise[number].report.white
    keywords: dict[str, Any] = {"quality": QUICK, "channel_axis": picture.channel_axis, "white": white, **told}
    clean: NDArray[Any] = np.asarray(denoise(noisy, progress=progress, **keywords), np.float32)
    rows, columns = region.reduced
    top, left = rows.start - wide.reduced[0].start, columns.start - wide.reduced[1].start
    return clean[top : top + rows.stop - rows.start, left : left + columns.stop - columns.start]


def _wide(picture: OpenedPicture, region: Region) -> Region:
    return region.grown(MARGIN, picture.frame_shape)


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
    factor = choice.strength / region.step * _excess(noise, region.step)
    if choice.sigma is not None:
        return choice.sigma * choice.strength / region.step
    if noise.is_constant or noise.from_part:
        return _alike(noise.levels) * factor if channel_axis is not None else float(noise.levels[0] * factor)
    rows = slice(region.y, region.y + region.height, region.step)  # it varies slowly: samples are near its means
    columns = slice(region.x, region.x + region.width, region.step)
    return np.asarray(noise.report.sigma[rows, columns] * factor)


def _alike(levels: FloatArray) -> FloatArray | float:
    """One level for channels that differ little, whose tables the prior then computes once: half the time of a look."""
    mean = float(np.sqrt(np.mean(np.square(levels))))
    return mean if float(np.ptp(levels)) < LITTLE * mean else levels


def _excess(noise: FrameNoise, step: int) -> float:
    """How much more noise the means over step×step pixels have than if it were white: 1 if it is.

    Their variance is the mean of the autocovariance over all pairs of the pixels.
    """
    profile = noise.report.profile
    if profile is None or step == 1:
        return 1.0
    spectrum = profile.channels[0].spectrum
    lags = np.arange(1 - min(step, spectrum.side // 2), min(step, spectrum.side // 2))
    pairs = (step - np.abs(lags)) / step
    near = spectrum.autocovariance[np.ix_(lags % spectrum.side, lags % spectrum.side)]
    return float(np.sqrt(max(float(pairs @ near @ pairs), 0.0)))
