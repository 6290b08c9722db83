"""The long jobs themselves: the library's own functions, as `heatprior noise`, `denoise`, `deblur` … call them."""

from __future__ import annotations

import time
from typing import Any

from heatprior.app.choices import Choice, target_name
from heatprior.app.denoising import denoise_by_choice
from heatprior.app.opened import FrameNoise, OpenedPicture
from heatprior.app.plain_words import noise_in_words
from heatprior.app.restoring import MASK, Restoration
from heatprior.kernels.row_bands import Progress, span_of
from heatprior.noise.channel_noise import doubts_of
from heatprior.noise.doubts import one_of_each
from heatprior.noise.estimation import estimate_noise
from heatprior.pixels.inputs import as_channels, in_unit_range

PATCH = 7  # pixels along the side of the patches that tell the noise
UNSURE = 1.0  # dB: what is foretold with a larger error is not told
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
    channels = as_channels(frame, picture.channel_axis)
    for done, (channel, pixels) in enumerate(zip(report.channels, channels, strict=True)):
        progress(ESTIMATING + (1.0 - ESTIMATING) * done / len(channels))
        found += doubts_of(channel, in_unit_range(pixels, report.white), PATCH)
    progress(1.0)
    noise = FrameNoise(report, from_part=False, doubts=tuple(one_of_each(found)))
    picture.noise[number] = noise
    return {"noise": noise_in_words(noise, picture.full_scale)}


def denoise_whole(picture: OpenedPicture, choice: Choice, progress: Progress) -> dict[str, Any]:
    """All frames, exactly as `heatprior denoise` does it; the pixels go to a file, so that memory is free again."""
    start = time.perf_counter()
    done = denoise_by_choice(picture, choice, progress)
    told: dict[str, Any] = {"result": picture.add(done.pixels, picture.image, done.error)}
    if done.error is not None:
        told["errors"] = True
    if done.predicted.stderr < UNSURE:
        told["predicted"] = f"{done.predicted.psnr:.1f} ± {done.predicted.stderr:.1f} dB"
    command = choice.command(picture.name, target_name(picture.name), done.told)
    return {**told, "command": command, "seconds": round(time.perf_counter() - start, 2)}


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
