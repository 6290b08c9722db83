"""`hp.restore`: an image from blurred, incomplete or indirect data, with any linear operator and any prior."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.row_bands import Progress, part_of
from heatprior.noise.levels import estimate_sigma
from heatprior.pixels.channels import ALONE, COLOUR
from heatprior.pixels.inputs import (
    as_channels,
    as_noise_level,
    as_pixels,
    as_white,
    integer_limits,
    warn_of_unlikely_units,
)
from heatprior.priors.protocol import DiffusedPrior
from heatprior.restoration.operators.linear import Linear
from heatprior.restoration.operators.measurement import Data, Measurement, Operator
from heatprior.restoration.plug_and_play import LEAST_SIGMA, Report, Restorer
from heatprior.restoration.qualities import QUALITIES
from heatprior.zoo import as_prior

COLOURS = len(COLOUR)


def restore(
    y: ArrayLike,
    operator: Any,
    sigma: ArrayLike | None = None,
    *,
    prior: str | PathLike[str] | DiffusedPrior = QUALITIES["default"].prior,
    shape: tuple[int, int] | None = None,
    channel_axis: int | None = None,
    white: float | None = None,
    report: Report | None = None,
    progress: Progress | None = None,
) -> NDArray[Any]:
    """The image x of which y = A x + Gaussian noise of standard deviation `sigma` was measured.

    Parameters
    ----------
    y : array_like
        What the operator gave. NaN are data that were not measured. For `Blur`, `Mask` and `Downsample` it is an image
        as in `denoise`: of any type, with axes in front or a `channel_axis`. Else it is an array of as many numbers as
        A gives, complex if A is.
    operator : Blur, Mask, Downsample, Fourier or linear operator
        A: one of these, or anything that `scipy.sparse.linalg.aslinearoperator` takes: (data, pixels) of an image of
        this `shape`, row by row. Its adjoint is tested first, and refused if wrong.
    sigma : array_like, optional
        A number, one per channel, or of the shape of y; in the units of y, and of the real and of the imaginary part if
        there are two. Where y is an image it is estimated if it is left out.
    prior : str, path or DiffusedPrior
        As in `denoise`.
    shape : (int, int), optional
        Height and width of the image, where the operator does not tell.
    channel_axis : int, optional
        Of y, if that is an image: every channel is restored.
    white : float, optional
        The value that stands for full scale of the image: by the type of y if that is an image, else 1.0.
    report : callable, optional
        Called with a `RestoringStep` after each step, which takes a little longer.
    progress : callable, optional
        Called with the fraction done, 0 to 1.

    Returns
    -------
    ndarray
        The image: of the type of y if that is one, else (H, W). Where AᵀA is a multiple of the identity, Aᵀy is the
        image with white noise, and is denoised as by `denoise`.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> x = np.tile(np.linspace(0.2, 0.8, 48), (48, 1))
    >>> rng = np.random.default_rng(0)
    >>> seen = rng.random(x.shape) < 0.5
    >>> y = np.where(seen, x + 0.01 * rng.standard_normal(x.shape), 0.0)
    >>> restored = hp.restore(y, hp.Mask(seen), 0.01)
    >>> bool(np.abs(restored - x).mean() < 0.02)
    True
    """
    described = _as_operator(operator, shape)
    restorer = Restorer(as_prior(prior), report)
    values = np.asarray(y)
    if not described.data_are_an_image:
        return _from_data(values, described, sigma, channel_axis, white, restorer, progress)
    if values.dtype.kind == "c":
        raise InvalidInputError("y is complex but the operator gives real data; give its real part")
    return _from_images(as_pixels(y), described, sigma, channel_axis, white, restorer, progress)


def _as_operator(operator: Any, shape: tuple[int, int] | None) -> Operator:
    """One of our own, or any other with the shape of the image."""
    if hasattr(operator, "data_are_an_image") and hasattr(operator, "on"):
        if shape is not None:
            raise InvalidInputError("shape is for operators of scipy; this one knows its own: leave it out")
        return operator  # type: ignore[no-any-return]
    if shape is None or len(shape) != 2 or not all(isinstance(n, int | np.integer) and n > 0 for n in shape):
        raise InvalidInputError(f"shape is {shape!r}; this operator needs the shape of the image, such as (256, 256)")
    return Linear(operator, (int(shape[0]), int(shape[1])))


def _from_data(
    y: Data,
    operator: Operator,
    sigma: ArrayLike | None,
    channel_axis: int | None,
    white: float | None,
    restorer: Restorer,
    progress: Progress | None,
) -> FloatArray:
    """Data that are no image: one image (H, W), float32 or float64."""
    if channel_axis is not None:
        raise InvalidInputError("channel_axis is for data that are an image; restore each channel by itself")
    if y.dtype.kind not in "iufc":
        raise InvalidInputError(f"y is of type {y.dtype}; expected numbers")
    measurement = operator.on(y.shape)
    if y.dtype.kind == "c" and not measurement.is_complex:
        raise InvalidInputError("y is complex but the operator gives real data; give it a complex dtype, or y.real")
    if sigma is None:
        raise InvalidInputError("sigma cannot be estimated from data that are no image; give it, in the units of y")
    full = 1.0 if white is None else white
    if not (isinstance(full, int | float | np.integer | np.floating) and 0 < full < np.inf):
        raise InvalidInputError(f"white is {white!r}; expected the positive value that stands for full scale")
    levels = np.asarray(sigma, np.float64)
    if levels.shape not in ((), y.shape) or not (np.isfinite(levels).all() and (levels > 0).all()):
        raise InvalidInputError(
            f"sigma is {sigma!r:.40}; expected a positive number, or one for each of the data {y.shape}"
        )
    result = restorer.restore(y / full, measurement, levels / full, progress)
    return np.asarray(result * full, np.float32 if y.dtype in (np.float32, np.complex64) else np.float64)


def _from_images(
    pixels: NDArray[Any],
    operator: Operator,
    sigma: ArrayLike | None,
    channel_axis: int | None,
    white: float | None,
    restorer: Restorer,
    progress: Progress | None,
) -> NDArray[Any]:
    """Every image by itself, channel by channel, colours mixed first: mixing and measuring change places."""
    channels = as_channels(pixels, channel_axis)
    measurement = operator.on(channels.shape[-2:])
    full = as_white(white, pixels)
    if sigma is None:
        found = estimate_sigma(_seen(pixels, channel_axis, measurement), channel_axis=channel_axis, white=full).sigma
        levels = np.maximum(found, LEAST_SIGMA * full).reshape(channels.shape[:-2])[..., None, None]
    else:
        levels = as_noise_level(sigma, pixels, channel_axis, full)
        warn_of_unlikely_units(levels, pixels, full)
    levels = np.broadcast_to(levels, channels.shape)
    mix = COLOUR if channel_axis is not None and channels.shape[-3] == COLOURS else ALONE
    jobs = [
        (*index, slice(first, first + len(mix)))
        for index in np.ndindex(channels.shape[:-3])
        for first in range(0, channels.shape[-3], len(mix))
    ]
    results = None
    for number, job in enumerate(jobs):
        own = channels[job].astype(np.float64) / full
        parts = []
        for d, weights in enumerate(mix):
            noise = _mixed_levels(levels[job], weights / full)
            part = part_of(progress, number * len(mix) + d, len(jobs) * len(mix))
            parts.append(restorer.restore(np.tensordot(weights, own, axes=1), measurement, noise, part))
        image = np.tensordot(np.linalg.inv(mix) * full, np.stack(parts), axes=1)
        if results is None:
            results = np.empty((*channels.shape[:-2], *image.shape[-2:]), pixels.dtype)
        results[job] = np.clip(np.rint(image), *integer_limits(pixels.dtype)) if pixels.dtype.kind != "f" else image
    assert results is not None
    return results[..., 0, :, :] if channel_axis is None else np.moveaxis(results, -3, channel_axis)


def _mixed_levels(levels: FloatArray, weights: FloatArray) -> FloatArray:
    """sqrt(Σ_c weights_c² sigma_c²), one number if it is the same everywhere; `levels` are (c, h, w)."""
    if levels.strides[-2:] == (0, 0) or levels[0].size == 1:
        levels = levels[:, :1, :1]
    mixed = np.sqrt(np.tensordot(np.square(weights), np.square(levels), axes=1))
    return np.asarray(mixed[0, 0] if mixed.size == 1 else mixed)


def _seen(pixels: NDArray[Any], channel_axis: int | None, measurement: Measurement) -> NDArray[Any]:
    """The image with NaN where nothing was seen, to estimate its noise."""
    if measurement.blind is None:
        return pixels
    values = as_channels(pixels, channel_axis).astype(np.float32)
    values[..., measurement.blind] = np.nan
    return np.moveaxis(values, -3, channel_axis) if channel_axis is not None else values[..., 0, :, :]
