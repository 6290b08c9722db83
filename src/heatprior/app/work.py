"""The long jobs themselves: the library's own functions, as `heatprior noise`, `denoise`, `deblur` … call them."""

from __future__ import annotations

import re
import time
from math import isfinite
from typing import Any

from heatprior.app.choices import Choice, target_name
from heatprior.app.opened import FrameNoise, OpenedPicture
from heatprior.app.plain_words import noise_in_words
from heatprior.app.restoring import MASK, Restoration
from heatprior.kernels.row_bands import Progress, span_of
from heatprior.noise.channel_noise import doubts_of
from heatprior.noise.estimation import estimate_noise
from heatprior.pixels.inputs import as_channels, in_unit_range
from heatprior.restoration.denoising import denoise

NUMBER = re.compile(r"\d+(\.\d+)?")
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
        found += doubts_of(channel, in_unit_range(pixels, report.white), PATCH)
    progress(1.0)
    kinds = {NUMBER.sub("#", doubt): doubt for doubt in reversed(found)}  # of those that differ in a figure, the first
    noise = FrameNoise(report, from_part=False, doubts=tuple(reversed(kinds.values())))
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
    image = picture.image
    keywords = {"channel_axis": image.channel_axis, "white": image.white, "progress": progress, **choice.keywords}
    told: dict[str, Any] = {"command": choice.command(picture.name, target_name(picture.name), level)}
    if choice.error:
        found = denoise(picture.values, level, return_error=True, **keywords)
        told |= {"result": picture.add(found.pixels, image, found.error), "errors": True}
        if isfinite(found.predicted.psnr):
            told["predicted"] = f"{found.predicted.psnr:.1f} dB"
    else:
        told["result"] = picture.add(denoise(picture.values, level, **keywords), image)
    return {**told, "seconds": round(time.perf_counter() - start, 2)}


def restore_whole(picture: OpenedPicture, wanted: Restoration, progress: Progress) -> dict[str, Any]:
    """All frames, exactly as `heatprior deblur`, `inpaint` or `upscale` does it."""
    start = time.perf_counter()
    like = wanted.like(picture.image)
    pixels = wanted.run(picture.values, picture.image, picture.path.parent / f".{MASK}", progress)
    return {
        "result": picture.add(pixels, like),
        "factor": wanted.factor,
        "target": wanted.target(picture.name),
        "seconds": round(time.perf_counter() - start, 2),
        "command": wanted.command(picture.name),
    }
