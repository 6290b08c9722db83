"""A denoised image with the standard error of every pixel, and its predicted PSNR: the same plan, carried out twice."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import FloatArray
from heatprior.kernels.row_bands import Progress, span_of
from heatprior.noise.estimation import NoiseReport
from heatprior.pixels.inputs import as_channels, integer_limits
from heatprior.restoration.channelwise import carried_out
from heatprior.restoration.options import Keywords, Options
from heatprior.restoration.planning import Plan, Together, planned
from heatprior.restoration.predicted_quality import (
    Ingredients,
    PredictedPsnr,
    ingredients,
    predicted,
    risk_table_on,
)
from heatprior.restoration.probe_signs import positive_signs
from heatprior.restoration.standard_errors import Probe, calibration_on, one_level, probe, probed_variance

LEAST_LEVEL = 1e-6  # of full scale
SEED = 0  # of the probe: the same image has the same errors
CORRELATED = " correlated"  # noise: behind a method's name on cards
TOO_HIGH = 0.5  # the mean of the errors of estimated levels over their typical size, on validation images


class DenoisedWithError(NamedTuple):
    """A denoised image, the standard deviation of what is wrong with each pixel, and its PSNR without the truth.

    Attributes
    ----------
    pixels : ndarray
        The image, as `denoise` gives it.
    error : ndarray
        Standard deviation of what is wrong with each pixel, in the units of the image and of its shape.
    predicted : PredictedPsnr
        The PSNR that the image should have, `.psnr`, and its standard error, `.stderr`, in dB.
    noise : NoiseReport or None
        What was found of the noise, if `sigma` was not given.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> noisy = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((64, 64))
    >>> found = hp.denoise(noisy, 0.1, quality="fast", return_error=True)
    >>> found.pixels.shape == found.error.shape == noisy.shape
    True
    """

    pixels: NDArray[Any]
    error: FloatArray  # of the shape and in the units of the image
    predicted: PredictedPsnr
    noise: NoiseReport | None  # if it was estimated


def predicted_psnr(
    image: ArrayLike, sigma: ArrayLike | None = None, *, progress: Progress | None = None, **keywords: Unpack[Keywords]
) -> PredictedPsnr:
    """The PSNR that `denoise` of the same arguments will reach, in dB, and its standard error: without the truth.

    Parameters
    ----------
    image : array_like, (..., H, W)
        As in `denoise`. It is denoised twice; `denoise(…, return_error=True)` gives the prediction as well.
    sigma : array_like, optional
        As in `denoise`.
    progress : callable, optional
        Called with the fraction done, 0 to 1.
    **keywords
        Those of `denoise`.

    Returns
    -------
    PredictedPsnr
        `.psnr` and `.stderr`, in dB. Both are NaN if the noise is not what was told (clipped at black or white, say) or
        the image is unlike any photograph.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> noisy = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((64, 64))
    >>> hp.predicted_psnr(noisy, 0.1).psnr > 25
    True
    """
    return denoise_with_error(image, sigma, Options(**keywords), progress).predicted


class Probed(NamedTuple):
    """A plan carried out and probed, in floats: what errors and risk are computed from."""

    plan: Plan
    noisy: FloatArray  # of the shape of the image
    clean: FloatArray
    found: Probe  # (..., channels, H, W), in the units of the image
    levels: FloatArray  # of the noise, likewise
    alike: float  # pixels that count as one

    @property
    def variance(self) -> FloatArray:
        """That of the errors by the derivative alone: (..., channels, H, W)."""
        return probed_variance(self.found, self.alike)

    def ingredients(self) -> Ingredients:
        """What the risk is estimated from: of all channels but transparency."""
        removed = as_channels(self.noisy - self.clean, self.plan.channel_axis)
        kept = slice(None, -1 if self.plan.has_alpha else None)
        return ingredients(removed[..., kept, :, :], Probe(*(values[..., kept, :, :] for values in self.found)))


def probed(image: ArrayLike, sigma: ArrayLike | None, options: Options, progress: Progress | None = None) -> Probed:
    """The image denoised, and once more with some noise added to it."""
    plan, progress = planned(image, sigma, options, progress)
    noisy = plan.pixels.astype(np.float32)
    clean = carried_out(plan, noisy, span_of(progress, 0.0, 0.5))
    second = span_of(progress, 0.5, 1.0)
    there = _with_noise_as_found(plan)
    drawn = noise_like(there, np.random.default_rng(SEED))
    found = probe(lambda pixels: carried_out(plan, pixels, second), noisy, clean, drawn)
    planes = Probe(*(as_channels(values, plan.channel_axis) for values in found))
    return Probed(plan, noisy, clean, planes, noise_levels(there), _pixels_alike(there))


def denoise_with_error(
    image: ArrayLike, sigma: ArrayLike | None, options: Options, progress: Progress | None = None
) -> DenoisedWithError:
    """As `denoise`, which it runs twice; see `standard_errors` for why that tells the errors."""
    done = probed(image, sigma, options, progress)
    plan, axis, full = done.plan, done.plan.channel_axis, done.plan.full
    calibration = calibration_on(plan.card, calibrated_way(plan))
    variance = calibration.variance(done.variance / full**2, _over(done.levels, full))
    error = np.empty(done.noisy.shape, np.float32)
    as_channels(error, axis)[...] = np.where(done.found.drawn == 0.0, 0.0, full * np.sqrt(variance))
    parts, table = done.ingredients(), risk_table_on(plan.card, calibrated_way(plan))
    levels, (excess, doubt) = done.levels[..., : parts.known.shape[-3], :, :], _errors_of_noise(plan.report)
    quality = predicted(parts, levels, full, table=table, excess=excess, doubt=doubt, alike=done.alike)
    return DenoisedWithError(_as_type(done.clean, plan.pixels.dtype), error, quality, plan.report)


def _with_noise_as_found(plan: Plan) -> Plan:
    """The plan with the noise that is there: of photographs another one than that which is denoised with."""
    return plan._replace(profiles=[own if own is None else own.as_found() for own in plan.profiles])


def _over(levels: FloatArray, full: float) -> FloatArray:
    """Levels over full scale, one number for all pixels if they are one."""
    return np.broadcast_to(one_level(levels) / full, levels.shape)


def noise_like(plan: Plan, rng: np.random.Generator) -> FloatArray:
    """Noise of the covariance that the plan takes the image's to have, in its units and shape, in float32.

    White noise is ± sigma, which tells a trace better than a Gaussian, and more so by the signs that are taken
    (`probe_signs`). Transparency has none.
    """
    drawn = np.zeros(plan.pixels.shape, np.float32)
    channels = as_channels(drawn, plan.channel_axis)
    for part in plan.together():
        channels[part.place] = _noise_of_part(plan, part, rng)
    return drawn


def noise_levels(plan: Plan) -> FloatArray:
    """The standard deviation of that noise, in the units of the image: (..., channels, H, W)."""
    if all(profile is None for profile in plan.profiles):
        return plan.sigmas
    levels = np.array(plan.sigmas, np.float32)
    squares = np.square(np.linalg.inv(plan.mix) * plan.full)
    for part in plan.together():
        if part.profile is not None:
            own = np.array([np.broadcast_to(noise.rows(slice(None)), levels.shape[-2:]) for noise in plan.noises(part)])
            levels[part.place] = np.sqrt(np.tensordot(squares, np.square(own), axes=1))
    return levels


def _noise_of_part(plan: Plan, part: Together, rng: np.random.Generator) -> FloatArray:
    """(d, H, W)."""
    levels = plan.sigmas[part.place]
    if part.profile is None:
        sigma = np.asarray(one_level(levels), np.float32)
        return np.where(positive_signs(levels.shape, rng), sigma, -sigma)
    height, width = levels.shape[-2:]
    fields = [
        noise.rows(slice(None)) * (1.0 if noise.spectrum is None else noise.spectrum.field((height, width), rng))
        for noise in plan.noises(part)
    ]
    return np.asarray(np.tensordot(np.linalg.inv(plan.mix) * plan.full, np.array(fields), axes=1))


def _pixels_alike(plan: Plan) -> float:
    """How many pixels count as one because their noise is correlated, at most; 1 if it is white."""
    spectra = [channel.spectrum for profile in plan.profiles if profile is not None for channel in profile.channels]
    return max((spectrum.pixels_alike for spectrum in spectra), default=1.0)


def calibrated_way(plan: Plan) -> str:
    """Under which name a prior's card has the tables for a plan: its method, and whether the noise is correlated."""
    return plan.method if all(profile is None for profile in plan.profiles) else plan.method + CORRELATED


def _errors_of_noise(report: NoiseReport | None) -> tuple[float, float]:
    """Of an estimated variance: the part by which it is too large on average, and its relative error beside that.

    Both on average over channels, and none if it was given. Texture passes for white noise, but noise seldom for
    texture; that of a camera may be found too weak as well as too strong.
    """
    if report is None:
        return 0.0, 0.0
    levels = np.array([max(channel.level.sigma, LEAST_LEVEL) for channel in report.channels])
    chance = np.array([channel.level.stderr for channel in report.channels])
    typical = np.array([channel.model_error for channel in report.channels])
    mean = np.where([model == "correlated" for model in report.models], 0.0, TOO_HIGH)
    errors = np.hypot(chance, np.sqrt(1.0 - mean**2) * typical)
    return float(np.mean(2.0 * mean * typical / levels)), float(np.mean(2.0 * errors / levels))


def _as_type(values: FloatArray, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Floats as pixels of a type: rounded and clipped if they are integers."""
    return (values if dtype.kind == "f" else np.clip(np.rint(values), *integer_limits(dtype))).astype(dtype)
