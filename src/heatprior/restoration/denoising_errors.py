"""`hp.denoise_with_error`: a denoised image with the standard error of every pixel, and its predicted PSNR."""

from __future__ import annotations

from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.row_bands import Progress, span_of
from heatprior.noise.estimation import NoiseReport
from heatprior.pixels.channels import is_alpha
from heatprior.pixels.inputs import as_channels, integer_limits
from heatprior.priors.protocol import DiffusedPrior
from heatprior.restoration.denoising import Plan, planned
from heatprior.restoration.standard_errors import (
    PredictedPsnr,
    Probe,
    calibration_on,
    predicted_psnr,
    probe,
    probed_variance,
)

LEAST_LEVEL = 1e-6  # of full scale
SEED = 0  # of the probe: the same image has the same errors


class DenoisedWithError(NamedTuple):
    """A denoised image, the standard deviation of what is wrong with each pixel, and its PSNR without the truth."""

    pixels: NDArray[Any]
    error: FloatArray  # of the shape and in the units of the image
    predicted: PredictedPsnr
    noise: NoiseReport | None


def denoise_with_error(
    image: ArrayLike,
    sigma: ArrayLike | None = None,
    *,
    noise: str = "auto",
    quality: str = "default",
    prior: str | PathLike[str] | DiffusedPrior | None = None,
    method: str = "hqs",
    adapt: bool = False,
    scales: int | None = None,
    channel_axis: int | None = None,
    white: float | None = None,
    progress: Progress | None = None,
) -> DenoisedWithError:
    """As `denoise`, which it runs twice; see `standard_errors` for why that tells the errors.

    Not for correlated noise, of which no probe is drawn; take `noise="constant"` there for errors of the white part.
    """
    plan, progress = planned(
        image,
        sigma,
        noise=noise,
        quality=quality,
        prior=prior,
        method=method,
        adapt=adapt,
        scales=scales,
        channel_axis=channel_axis,
        white=white,
        progress=progress,
    )
    if any(profile is not None for profile in plan.profiles):
        raise InvalidInputError("the noise is correlated, and errors are known for white noise; give noise='constant'")
    noisy = plan.pixels.astype(np.float32)
    clean = plan.run(noisy, span_of(progress, 0.0, 0.5))
    drawn = _drawn(plan)
    second = span_of(progress, 0.5, 1.0)
    found = probe(lambda pixels: plan.run(np.asarray(pixels, np.float32), second), noisy, clean, drawn)
    planes = Probe(*(as_channels(values, channel_axis) for values in found))
    grey = plan.sigmas / plan.full
    variance = calibration_on(plan.card).variance(probed_variance(planes) / plan.full**2, grey)
    error = np.empty(noisy.shape, np.float32)
    as_channels(error, channel_axis)[...] = np.where(planes.drawn == 0.0, 0.0, plan.full * np.sqrt(variance))
    observed, denoised = (as_channels(values, channel_axis) for values in (noisy, clean))
    predicted = predicted_psnr(observed, denoised, np.square(plan.sigmas), planes, plan.full, _doubt(plan.report))
    return DenoisedWithError(_as_type(clean, plan.pixels.dtype), error, predicted, plan.report)


def _drawn(plan: Plan) -> FloatArray:
    """Noise to probe with, of the shape of the image: ± sigma; none on transparency, which is not denoised."""
    signs = np.random.default_rng(SEED).integers(0, 2, plan.pixels.shape, np.int8)
    drawn = (2.0 * signs - 1.0).astype(np.float32)
    channels = as_channels(drawn, plan.channel_axis)
    channels *= plan.sigmas.astype(np.float32)
    if plan.channel_axis is not None and is_alpha(as_channels(plan.pixels, plan.channel_axis), plan.full):
        channels[..., -1, :, :] = 0.0
    return drawn


def _doubt(report: NoiseReport | None) -> float:
    """The relative error of an estimated variance, on average over channels; none if it was given."""
    if report is None:
        return 0.0
    errors = [
        2.0 * float(np.hypot(channel.level.stderr, channel.model_error)) / max(channel.level.sigma, LEAST_LEVEL)
        for channel in report.channels
    ]
    return float(np.mean(errors))


def _as_type(values: FloatArray, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Floats as pixels of a type: rounded and clipped if they are integers."""
    return (values if dtype.kind == "f" else np.clip(np.rint(values), *integer_limits(dtype))).astype(dtype)
