"""`hp.restore`: an image from blurred, incomplete or indirect data, with any linear operator and any prior."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from heatprior.arrays import ChannelAxis, FloatArray
from heatprior.border.entry import Entered, Noises, Result, enter
from heatprior.border.pixels import as_channels, axis_or_none, unwrap
from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import Progress, part_of
from heatprior.noise.levels import estimate_sigma
from heatprior.noise_value import Noise
from heatprior.presets import DEFAULT, find_preset
from heatprior.priors.protocol import DiffusedPrior
from heatprior.restoration import operators
from heatprior.restoration.operators.mask import Mask
from heatprior.restoration.operators.measurement import Data, Measurement, Operator
from heatprior.restoration.plug_and_play import LEAST_SIGMA, Report, Restorer
from heatprior.zoo import as_prior

LITTLE = 1 / 255  # of full scale: the noise of pixels that stay as they are


def restore(
    y: ArrayLike,
    operator: Any,
    sigma: ArrayLike | None = None,
    *,
    quality: str = DEFAULT,
    prior: str | PathLike[str] | DiffusedPrior | None = None,
    shape: tuple[int, int] | None = None,
    channel_axis: ChannelAxis = None,
    white: float | None = None,
    report: Report | None = None,
    progress: Progress | None = None,
) -> NDArray[Any]:
    """Restore an image x from measurements y = A x + Gaussian noise of standard deviation `sigma`.

    Parameters
    ----------
    y : array_like
        The data. NaN marks data that were not measured. For `Blur`, `Mask` and `Downsample` it is an image as in
        `denoise`: of any type, with leading axes or a `channel_axis`. Otherwise an array of the size of A's range,
        complex if A is.
    operator : an operator of `hp.operators`, or any linear operator
        A: Blur, Mask, Downsample, Fourier, or anything that `scipy.sparse.linalg.aslinearoperator` takes, of shape
        (data, pixels), with the pixels of an image of this `shape` row by row. Its adjoint is tested first.
    sigma : array_like, optional
        Standard deviation of the noise in the units of y (of the real and of the imaginary part, if complex): a
        number, one per channel, or of the shape of y. Default: estimated, if y is an image.
    quality : {"default", "fast", "best"}
        "fast" takes a fourth of the steps, for a first look; "best" is the same as "default".
    prior : str, path or DiffusedPrior, optional
        As in `denoise`.
    shape : (int, int), optional
        Height and width of the image, if the operator does not imply them.
    channel_axis : int, optional
        Axis of the channels of y, if that is an image; each is restored.
    white : float, optional
        Full scale of the image: as in `denoise` if y is an image, otherwise 1.0.
    report : callable, optional
        Called with a `RestoringStep` after each step, which takes a little longer.
    progress : callable, optional
        Called with the fraction done, 0 to 1.

    Returns
    -------
    ndarray
        The image, of the type of y if that is one, otherwise (H, W). If AᵀA is a multiple of the identity, Aᵀy is the
        image with white noise, and is denoised as by `denoise`.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> x = np.tile(np.linspace(0.2, 0.8, 48), (48, 1))
    >>> rng = np.random.default_rng(0)
    >>> seen = rng.random(x.shape) < 0.5
    >>> y = np.where(seen, x + 0.01 * rng.standard_normal(x.shape), 0.0)
    >>> restored = hp.restore(y, hp.operators.Mask(seen), 0.01)
    >>> bool(np.abs(restored - x).mean() < 0.02)
    True
    """
    described = _as_operator(operator, shape)
    preset = find_preset(quality)
    restorer = Restorer(as_prior(preset.prior if prior is None else prior), report, preset.haste)
    held = unwrap(y, channel_axis)
    values = np.asarray(held.array)
    if not described.data_are_an_image:
        return _from_data(values, described, sigma, channel_axis, white, restorer, progress)
    if values.dtype.kind == "c":
        raise InvalidInputError("y is complex but the operator gives real data; give its real part")
    entered = enter(held.array, channel_axis=held.channel_axis, white=white, sigma=sigma, dtype=held.dtype)
    image: NDArray[Any] = held.wrap(_from_image(entered, described, sigma, restorer, progress))
    return image


def _as_operator(operator: Any, shape: tuple[int, int] | None) -> Operator:
    """One of our own, or any other with the shape of the image."""
    if hasattr(operator, "data_are_an_image") and hasattr(operator, "on"):
        if shape is not None:
            raise InvalidInputError("shape is for operators of scipy; this one knows its own: leave it out")
        return operator  # type: ignore[no-any-return]
    if shape is None or len(shape) != 2 or not all(isinstance(n, int | np.integer) and n > 0 for n in shape):
        raise InvalidInputError(f"shape is {shape!r}; this operator needs the shape of the image, such as (256, 256)")
    return Linear(operator, (int(shape[0]), int(shape[1])))


@dataclass(frozen=True, eq=False)
class Linear:
    """y = A x with A (data, pixels): x are the pixels of an image of this `shape`, row by row."""

    data_are_an_image: ClassVar[bool] = False  # that one knows
    matrix: Any  # what `scipy.sparse.linalg.aslinearoperator` takes
    shape: tuple[int, int]

    def on(self, data_shape: tuple[int, ...]) -> Measurement:
        """For data of any shape, as many as the operator gives."""
        try:
            operator: LinearOperator = aslinearoperator(self.matrix)
        except TypeError as error:
            raise InvalidInputError(
                f"the operator is of type {type(self.matrix).__name__}; expected one of "
                f"{', '.join(operators.__all__)}, or what scipy.sparse.linalg.aslinearoperator takes"
            ) from error
        rows, columns = operator.shape
        if columns != prod(self.shape):
            raise InvalidInputError(
                f"the operator acts on {columns} pixels but shape {self.shape} has {prod(self.shape)}; give the shape "
                "of the image"
            )
        if rows != prod(data_shape):
            raise InvalidInputError(f"the operator gives {rows} data but y has shape {data_shape}; expected as many")

        def forward(image: FloatArray) -> Data:
            return np.asarray(operator.matvec(image.reshape(-1))).reshape(data_shape)

        def adjoint(data: Data) -> FloatArray:
            try:
                return np.asarray(operator.rmatvec(data.reshape(-1))).real.reshape(self.shape)
            except NotImplementedError as error:
                raise InvalidInputError("the operator has no adjoint; give it one (rmatvec)") from error

        is_complex = np.dtype(operator.dtype or np.float64).kind == "c"
        return Measurement(self.shape, data_shape, forward, adjoint, is_complex=is_complex)


def _from_data(
    y: Data,
    operator: Operator,
    sigma: ArrayLike | None,
    channel_axis: ChannelAxis,
    white: float | None,
    restorer: Restorer,
    progress: Progress | None,
) -> FloatArray:
    """Data that are no image: one image (H, W), float32 or float64."""
    if axis_or_none(channel_axis) is not None:
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


def _from_image(
    entered: Entered, operator: Operator, sigma: ArrayLike | None, restorer: Restorer, progress: Progress | None
) -> NDArray[Any]:
    """Every image by itself, plane by plane: mixing colours and measuring commute."""
    measurement = operator.on(entered.channels.shape[-2:])
    noises = _estimate(entered, measurement) if sigma is None else entered.noises(sigma)
    count, done, result = len(list(entered.groups())) * len(entered.mix), 0, Result(entered, keep_gaps=False)
    for group in entered.groups():
        planes = entered.planes(group)
        for number, noise in enumerate(entered.noises_of_planes(group, noises)):
            part, levels = part_of(progress, done, count), noise.rows(slice(None))
            planes[number] = restorer.restore(planes[number].astype(np.float64), measurement, levels, part)
            done += 1
        result.leave(group, planes)
    return result.image()


def _estimate(entered: Entered, measurement: Measurement) -> Noises:
    """One level for each channel, from what was seen of it."""
    pixels, axis = entered.pixels, entered.channel_axis
    if measurement.blind is not None:
        values = entered.channels.astype(np.float32)
        values[..., measurement.blind] = np.nan
        pixels = values[..., 0, :, :] if axis is None else np.moveaxis(values, -3, axis)
    found = np.asarray(estimate_sigma(pixels, channel_axis=axis, white=entered.full).sigma) / entered.full
    levels = np.maximum(found, LEAST_SIGMA).reshape(entered.channels.shape[:-2])
    return {place: Noise.constant(float(levels[place])) for place in np.ndindex(levels.shape)}


def fill_in(
    image: ArrayLike,
    spoilt: NDArray[np.bool_] | None,
    sigma: ArrayLike | None = None,
    *,
    channel_axis: ChannelAxis = None,
    white: float | None = None,
    **options: Any,
) -> NDArray[Any]:
    """The image with new pixels where `spoilt` (H, W) is true, and where it is NaN; `options` are those of `restore`.

    All others stay exactly as they are, unless the noise level `sigma` is given: then their noise is removed too.
    """
    entered = enter(image, channel_axis=channel_axis, white=white)
    values, shape = entered.pixels, entered.channels.shape[-2:]
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
    if spoilt is not None:
        if spoilt.shape != shape:
            raise InvalidInputError(f"the mask has shape {spoilt.shape} but the image {shape}; expected the same")
        if spoilt.all():
            raise InvalidInputError("the mask leaves no valid pixel; it must be black where the image is to be kept")
        as_channels(missing, channel_axis)[...] |= spoilt
    if not missing.any():
        raise InvalidInputError("no pixel is missing; give a mask that is white where something is to be filled in")
    seen = np.ones(shape, bool) if spoilt is None else ~spoilt
    level = LITTLE * entered.full if sigma is None else sigma
    filled = restore(values, Mask(seen), level, channel_axis=channel_axis, white=entered.full, **options)
    return np.where(missing, filled, values).astype(values.dtype) if sigma is None else filled
