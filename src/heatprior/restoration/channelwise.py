"""A plan carried out: every image by itself, channel by channel, colours mixed first, stored in the type they had."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.kernels.row_bands import Progress, part_of
from heatprior.pixels.channels import mixed
from heatprior.pixels.gaps import with_all_or_no_channel_missing
from heatprior.pixels.inputs import as_channels, integer_limits
from heatprior.restoration.planning import Plan

ROWS_AT_ONCE = 64  # that are converted to the type of the result at a time


def carried_out(plan: Plan, pixels: NDArray[Any], progress: Progress | None = None) -> NDArray[Any]:
    """Denoise these pixels: those of the plan, or others of the same shape with the same noise."""
    channels = as_channels(pixels, plan.channel_axis)
    result = np.empty_like(pixels)
    clean = as_channels(result, plan.channel_axis)
    parts, mix = plan.together(), plan.mix
    back = np.linalg.inv(mix) * plan.full
    if plan.has_alpha:
        clean[..., -1, :, :] = channels[..., -1, :, :]
    for number, part in enumerate(parts):
        noisy = with_all_or_no_channel_missing(channels[part.place])
        denoised = [
            plan.denoise_channel(
                mixed(noisy, weights / plan.full),
                noise,
                progress=part_of(progress, number * len(mix) + d, len(parts) * len(mix)),
            )
            for d, (weights, noise) in enumerate(zip(mix, plan.noises(part), strict=True))
        ]
        is_result = len(parts) == len(mix) == plan.full == 1 and result.dtype == denoised[0].dtype
        if is_result and denoised[0].flags.c_contiguous and result.flags.c_contiguous:
            result = denoised[0].reshape(result.shape)  # it is not copied
            clean = as_channels(result, plan.channel_axis)
        for channel, original, weights in zip(clean[part.place], channels[part.place], back, strict=True):
            store(denoised, weights, original, channel)
    return result


def store(parts: list[FloatArray], weights: FloatArray, noisy: NDArray[Any], clean: NDArray[Any]) -> None:
    """Σ_d weights_d part_d as pixels of the type of `clean` (H, W), NaN where the noisy ones are."""
    for start in range(0, len(clean), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        values = mixed([part[rows] for part in parts], weights)
        if clean.dtype.kind == "f":
            clean[rows] = values
            np.copyto(clean[rows], np.nan, where=np.isnan(noisy[rows]))
        else:
            clean[rows] = np.clip(np.rint(values), *integer_limits(clean.dtype))
