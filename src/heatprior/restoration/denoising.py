"""Denoising of images with a prior on patches: empirical Bayes and half-quadratic splitting, section 4.3.

Both are patch-wise posterior means, averaged where patches overlap (EB-PA): once at the noise level of the image, or in
several steps at falling levels with the noisy image mixed in (EPLL's scheme, with one step of empirical Bayes as the
inner solution).
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import FloatArray, IntArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.row_bands import Progress
from heatprior.noise.estimation import check_kind, estimate_noise
from heatprior.pixels.channels import ALONE, COLOUR, mixed, mixed_noise
from heatprior.pixels.gaps import Mirrored, fill_missing, with_all_or_no_channel_missing
from heatprior.pixels.inputs import as_channels, as_pixels, as_prior, as_sigma, as_white
from heatprior.priors.adapter import average_changes_of, patch_size
from heatprior.priors.patch_step import NoiseMap, noise_of
from heatprior.priors.protocol import DiffusedPrior
from heatprior.priors.schedules import Schedule, Schedules, constant, schedules_of
from heatprior.restoration.adaptation import adapted, as_mixture
from heatprior.restoration.scales import merged, noise_of_reduced, reduced

SCALES_ENTRY = "scales"  # of a card
FINE_PART = 0.8  # of the time that two scales take
ROWS = 64  # that are converted to the type of the result at a time


def denoise(
    image: ArrayLike,
    sigma: ArrayLike | None = None,
    *,
    noise: str = "auto",
    prior: str | PathLike[str] | DiffusedPrior = "mixture",
    method: str = "hqs",
    adapt: bool = False,
    scales: int | None = None,
    channel_axis: int | None = None,
    white: float | None = None,
    progress: Progress | None = None,
) -> NDArray[Any]:
    """The image without its Gaussian noise of standard deviation `sigma`; same type, shape and units as it came.

    `image` is (..., H, W) of uint8, uint16, float32 or float64, or has one more axis, `channel_axis`; axes in front are
    independent images. NaN pixels are missing: they have no influence, and are NaN again in the result. Results of
    integer type are rounded and clipped to it; floats are not clipped. Inside, all is float32.

    `sigma` is in the units of the image: one number, one per channel, or a map, (H, W) or of the shape of the image.
    Without it the noise is estimated: `noise` says what kind it is, as in `estimate_noise`, which tells what was found.
    It is always estimated with patch7, whatever `prior` is.
    `prior` is the name of a shipped prior, the path of one, or any `DiffusedPrior` on square patches
    or on whole images (`ImagePrior`).
    `method` is "hqs", half-quadratic splitting, or "eb", one step of empirical Bayes: faster, less good.
    `adapt` fits the prior to the image first, without any clean pixel, if it is a mixture: better, and slower.
    `scales` is 2 to denoise the image at half its size as well and take low frequencies from there, 1 not to; as the
    prior's card says by default.
    `channel_axis`: three channels are colours, decorrelated by an orthogonal mix. (Where their noise levels differ, the
    noise of the mixed channels is correlated; each gets its right variance, and the correlation is ignored.) Any other
    number of channels: each by itself.
    `white` is the value that stands for full scale, which the prior needs to know: 255, 65535 or 1.0 by type.
    `progress` is told the fraction done, 0 to 1, now and then.
    """
    pixels = as_pixels(image)
    channels = as_channels(pixels, channel_axis)
    full = as_white(white, pixels)
    if method not in METHODS:
        raise InvalidInputError(f"method is {method!r}; expected {' or '.join(map(repr, METHODS))}")
    if scales not in (None, 1, 2):
        raise InvalidInputError(f"scales is {scales!r}; expected 1 or 2")
    check_kind(noise)
    if sigma is not None and noise != "auto":
        raise InvalidInputError("noise is for images whose noise is estimated; leave out sigma, or noise")
    if sigma is None:
        sigma = estimate_noise(pixels, noise, channel_axis=channel_axis, white=full).sigma
    sigmas = np.broadcast_to(as_sigma(sigma, pixels, channel_axis, full), channels.shape)
    model = as_mixture(prior) if adapt else as_prior(prior)
    recipe = Recipe(METHODS[method], adapt, scales or scales_of(model, method))
    result = np.empty_like(pixels)
    clean = as_channels(result, channel_axis)
    is_colour = channel_axis is not None and channels.shape[-3] == 3
    mix = COLOUR if is_colour else ALONE
    back = np.linalg.inv(mix) * full
    jobs = [
        (*index, slice(first, first + len(mix)))
        for index in np.ndindex(channels.shape[:-3])
        for first in range(0, channels.shape[-3], len(mix))
    ]
    for number, job in enumerate(jobs):
        noisy = with_all_or_no_channel_missing(channels[job])
        noises = [_scaled_noise(values, full) for values in sigmas[job]]
        parts = [
            recipe.follow(
                mixed(noisy, weights / full),
                mixed_noise(noises, weights),
                model,
                _part(progress, number * len(mix) + d, len(jobs) * len(mix)),
            )
            for d, weights in enumerate(mix)
        ]
        is_result = len(jobs) == 1 and not is_colour and full == 1 and result.dtype == parts[0].dtype
        if is_result and parts[0].flags.c_contiguous and result.flags.c_contiguous:
            result = parts[0].reshape(result.shape)  # it is not copied
            clean = as_channels(result, channel_axis)
        for channel, original, weights in zip(clean[job], channels[job], back, strict=True):
            _store(parts, weights, original, channel)
    return result


class Recipe(NamedTuple):
    """A method, whether the prior is adapted first, and at how many scales that is done."""

    method: Callable[..., FloatArray]
    adapt: bool = False
    scales: int = 1

    def follow(
        self,
        image: FloatArray,
        sigma: float | FloatArray | NoiseMap,
        prior: DiffusedPrior,
        progress: Progress | None = None,
    ) -> FloatArray:
        """The image (H, W), grey levels being 0 to 1, denoised: in float32."""
        noise = noise_of(sigma)
        small = (-(-image.shape[0] // 2), -(-image.shape[1] // 2))
        if self.scales == 1 or min(small) < patch_size(prior):
            return self._at_one_scale(image, noise, prior, progress)
        fine = self._at_one_scale(image, noise, prior, _span(progress, 0.0, FINE_PART))
        whole = np.array(image, np.float32)
        fill_missing(whole)
        less = noise_of_reduced(noise, (whole.shape[0], whole.shape[1]))
        coarse = self._at_one_scale(reduced(whole), less, prior, _span(progress, FINE_PART, 1.0))
        return merged(fine, coarse)

    def _at_one_scale(
        self, image: FloatArray, noise: float | NoiseMap, prior: DiffusedPrior, progress: Progress | None
    ) -> FloatArray:
        if self.adapt:
            prior = adapted(as_mixture(prior), [(image, noise)])
        return self.method(image, noise, prior=prior, progress=progress)


def scales_of(prior: object, method: str) -> int:
    """At how many scales the prior's card says to denoise; one step of empirical Bayes is that and nothing else."""
    return 2 if method == "hqs" and getattr(prior, "card", {}).get(SCALES_ENTRY) == 2 else 1


def empirical_bayes(
    image: FloatArray, sigma: float | FloatArray | NoiseMap, *, prior: DiffusedPrior, progress: Progress | None = None
) -> FloatArray:
    """E[X | Y] of every patch, averaged over the patches that hold a pixel: EB-PA, Eq. (3). (H, W), in float32.

    `image` (H, W) has grey levels scaled to [0, 1], `sigma` is a number or a map; NaN pixels are filled first.
    """
    _check_size(image, patch_size(prior))
    image = np.ascontiguousarray(image, np.float32)
    if np.isnan(image.min()):
        image = image.copy()
        fill_missing(image)
    result = np.empty_like(image)

    def store(rows: slice, change: FloatArray) -> None:
        np.add(image[rows], change, out=result[rows])

    average_changes_of(prior, image, noise_of(sigma), store, progress)
    return result


def half_quadratic_splitting(
    image: FloatArray,
    sigma: float | FloatArray | NoiseMap,
    *,
    prior: DiffusedPrior,
    schedule: Schedule | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """x ← w_k y + (1 − w_k) EB-PA(x, level_k sigma) for each step k, from x = y: (H, W), in float32.

    `image` y (H, W) has grey levels scaled to [0, 1] and is mirrored beyond its edges; `sigma` is a number or a map. At
    NaN pixels y has no weight: the prior fills them. The schedule is the one on the prior's card, unless given.
    """
    size = patch_size(prior)
    _check_size(image, size)
    noise = noise_of(sigma)
    schedules = schedules_of(prior) if schedule is None else constant(schedule)
    mirrored = Mirrored((image.shape[0], image.shape[1]), size - 1)
    x = np.empty(mirrored.shape, np.float32)
    for start in range(0, len(x), ROWS):
        rows = slice(start, start + ROWS)
        x[rows] = mirrored.rows(image.__getitem__, rows)
    fill_missing(x)
    for step in range(schedules.steps):

        def store(rows: slice, change: FloatArray, step: int = step) -> None:
            change += x[rows]
            sigmas = noise if isinstance(noise, float) else mirrored.rows(noise.rows, rows)
            weight = schedules.weight(step, sigmas).astype(np.float32)
            observed = mirrored.rows(image.__getitem__, rows).astype(np.float32, copy=False)
            mean = weight * (observed - change) + change
            x[rows] = np.where(np.isnan(observed), change, mean)

        average_changes_of(
            prior,
            x,
            _noise_of_step(schedules, step, noise, mirrored),
            store,
            _part(progress, step, schedules.steps),
            grid=schedules.grid(step),
        )
    return x[mirrored.inside]


def _noise_of_step(schedules: Schedules, step: int, noise: float | NoiseMap, mirrored: Mirrored) -> float | NoiseMap:
    """level_k sigma, as a map of the mirrored image if sigma is one."""
    if isinstance(noise, float):
        return float(schedules.level(step, noise)) * noise

    def rows(rows: slice | IntArray) -> FloatArray:
        sigma = mirrored.rows(noise.rows, rows)
        return np.asarray(schedules.level(step, sigma) * sigma)

    levels = np.array(schedules.levels)  # of all steps, so that they can share tables
    return NoiseMap(rows, float(levels.min()) * noise.lowest, float(levels.max()) * noise.highest)


METHODS: dict[str, Callable[..., FloatArray]] = {"hqs": half_quadratic_splitting, "eb": empirical_bayes}


def _check_size(image: NDArray[Any], size: int) -> None:
    if image.ndim != 2 or min(image.shape) < size:
        raise InvalidInputError(
            f"the image has shape {image.shape} but the prior acts on patches of {size}×{size} pixels; "
            "give a larger image, or a prior on smaller patches"
        )


def _scaled_noise(values: FloatArray, full: float) -> float | NoiseMap:
    """The noise of a channel (H, W), grey levels being 0 to 1; constant if it was broadcast from one number."""
    if values.strides == (0, 0) or values.size == 1:
        return float(values[0, 0]) / full
    lowest, highest = float(values.min()), float(values.max())
    return NoiseMap(lambda rows: np.asarray(values[rows] / full), lowest / full, highest / full)


def _part(progress: Progress | None, number: int, count: int) -> Progress | None:
    """The progress of one of `count` equal parts of a job."""
    return _span(progress, number / count, (number + 1) / count)


def _span(progress: Progress | None, start: float, end: float) -> Progress | None:
    """The progress of a part of a job, from start to end."""
    return None if progress is None else lambda fraction: progress(start + (end - start) * fraction)


def _store(parts: list[FloatArray], weights: FloatArray, noisy: NDArray[Any], clean: NDArray[Any]) -> None:
    """Σ_d weights_d part_d as pixels of the type of `clean` (H, W), NaN where the noisy ones are."""
    for start in range(0, len(clean), ROWS):
        rows = slice(start, start + ROWS)
        values = mixed([part[rows] for part in parts], weights)
        if clean.dtype.kind == "f":
            clean[rows] = values
            np.copyto(clean[rows], np.nan, where=np.isnan(noisy[rows]))
        else:
            clean[rows] = np.clip(np.rint(values), 0, np.iinfo(clean.dtype).max)
