"""The long jobs themselves: the library's own functions, as `heatprior noise` and `heatprior denoise` call them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from heatprior.app.choices import PAINS, Choice, target_name
from heatprior.app.opened import FrameNoise, OpenedPicture
from heatprior.app.plain_words import noise_in_words
from heatprior.kernels.row_bands import Progress, span_of
from heatprior.noise.doubts import doubts
from heatprior.noise.estimation import estimate_noise
from heatprior.pixels.inputs import as_channels, in_unit_range
from heatprior.restoration.denoising import denoise_and_report

PATCH = 7  # pixels along the side of the patches that tell the noise
ESTIMATING = 0.8  # of the time, when doubts are looked for


def estimate(picture: OpenedPicture, number: int, progress: Progress) -> dict[str, Any]:
    """What kind of noise a frame has, how much and where, and what speaks against it."""
    frame = picture.frame(number)
    report = estimate_noise(
        frame,
        channel_axis=picture.channel_axis,
        white=picture.image.white,
        progress=span_of(progress, 0.0, ESTIMATING),
    )
    found: list[str] = []
    for channel, pixels in zip(report.channels, as_channels(frame, picture.channel_axis), strict=True):
        found += doubts(in_unit_range(pixels, report.white), channel.level.sigma, PATCH)
    progress(1.0)
    noise = FrameNoise(report, from_part=False, doubts=tuple(dict.fromkeys(found)))
    picture.noise[number] = noise
    return {"noise": noise_in_words(noise)}


def denoise_whole(picture: OpenedPicture, choice: Choice, progress: Progress) -> dict[str, Any]:
    """All frames, exactly as `heatprior denoise` does it; the pixels go to a file, so that memory is free again."""
    start = time.perf_counter()
    known = picture.noise.get(0) if picture.frames == 1 else None
    level = choice.level(known.report if known is not None and not known.from_part else None)
    if level is None and choice.strength != 1.0:
        report = estimate_noise(
            picture.values,
            channel_axis=picture.image.channel_axis,
            white=picture.image.white,
            progress=span_of(progress, 0.0, 1.0 - ESTIMATING),
        )
        level, progress = choice.level(report), span_of(progress, 1.0 - ESTIMATING, 1.0) or progress
    arguments: Mapping[str, Any] = PAINS[choice.pains].arguments
    pixels, _ = denoise_and_report(
        picture.values,
        level,
        channel_axis=picture.image.channel_axis,
        white=picture.image.white,
        progress=progress,
        **arguments,
    )
    seconds = time.perf_counter() - start
    result = picture.add(pixels, choice, level, seconds)
    command = choice.command(picture.name, target_name(picture.name), level)
    return {"result": result, "seconds": round(seconds, 2), "command": command}
