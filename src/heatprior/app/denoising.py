"""A picture denoised as a person chose it: the noise as it is found or given, or some factor times that."""

from __future__ import annotations

from math import isfinite, log10
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.app.choices import Choice
from heatprior.app.opened import OpenedPicture
from heatprior.arrays import FloatArray
from heatprior.kernels.row_bands import Progress, part_of, span_of
from heatprior.noise.estimation import NoiseReport, estimate_noise
from heatprior.noise.grey_scale import full_scale
from heatprior.restoration.denoising import denoise
from heatprior.restoration.predicted_quality import PredictedPsnr

UNKNOWN = PredictedPsnr(float("nan"), float("nan"))
ESTIMATING = 0.2  # of the time, where the noise is estimated before


class Done(NamedTuple):
    """Pixels, their standard errors and expected PSNR if those were asked for, and what `denoise` was told."""

    pixels: NDArray[Any]
    error: FloatArray | None
    predicted: PredictedPsnr
    told: dict[str, Any]


def denoise_by_choice(picture: OpenedPicture, choice: Choice, progress: Progress) -> Done:
    """All frames of a picture."""
    values, image = picture.values, picture.image
    known = picture.noise.get(0) if picture.frames == 1 else None
    report = known.report if known is not None and not known.from_part else None
    if picture.frames == 1 or not choice.is_relative:
        return _denoised(values, choice, report, image.channel_axis, image.white, progress)
    white = full_scale(image.white, values, None, image.channel_axis)  # of all frames together, as `denoise` has it
    frames = [
        _denoised(
            picture.frame(number), choice, None, picture.channel_axis, white, part_of(progress, number, picture.frames)
        )
        for number in range(picture.frames)
    ]
    errors = None if frames[0].error is None else _stacked([frame.error for frame in frames], values.shape)
    told = {"noise": "of each frame"}
    return Done(
        _stacked([frame.pixels for frame in frames], values.shape),
        errors,
        _of_all([frame.predicted for frame in frames]),
        told,
    )


def _denoised(
    pixels: NDArray[Any],
    choice: Choice,
    report: NoiseReport | None,
    channel_axis: int | None,
    white: float | None,
    progress: Progress | None,
) -> Done:
    if report is None and choice.is_relative:
        first, progress = span_of(progress, 0.0, ESTIMATING), span_of(progress, ESTIMATING, 1.0)
        report = estimate_noise(pixels, channel_axis=channel_axis, white=white, progress=first)
    told = choice.told(report)
    keywords: dict[str, Any] = {"channel_axis": channel_axis, "white": white, **choice.keywords, **told}
    if not choice.error:
        return Done(denoise(pixels, progress=progress, **keywords), None, UNKNOWN, told)
    found = denoise(pixels, return_error=True, progress=progress, **keywords)
    return Done(found.pixels, found.error, found.predicted, told)


def _stacked(frames: list[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    return np.stack(frames).reshape(shape)


def _of_all(frames: list[PredictedPsnr]) -> PredictedPsnr:
    """That of the mean squared error of all frames, as sure as the least sure of them; unknown if one is."""
    if not all(isfinite(frame.psnr) for frame in frames):
        return UNKNOWN
    mean = sum(10.0 ** (-frame.psnr / 10.0) for frame in frames) / len(frames)
    return PredictedPsnr(-10.0 * log10(mean), max(frame.stderr for frame in frames))
