"""Restoring an image with a prior: one step of empirical Bayes, or half-quadratic splitting, section 4.3.

Both replace patches by their posterior means, averaged where patches overlap (EB-PA): once at the noise level of the
image, or in several steps at falling levels, between which the data term draws the estimate to what was observed
(EPLL's scheme, with one step of empirical Bayes as the inner solution).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.grids import Grid
from heatprior.kernels.row_bands import Progress, part_of
from heatprior.noise_model import Noise, as_noise
from heatprior.pixels.gaps import Mirrored, check_not_empty, fill_nearby
from heatprior.priors.adapter import complete
from heatprior.priors.one_step import denoised_once
from heatprior.priors.protocol import DiffusedPrior, Prior
from heatprior.priors.schedules import Schedule, Schedules, constant
from heatprior.restoration.data_terms import DataTerm, Observed, PartlyObserved

ROWS_AT_ONCE = 64  # that are copied at a time

Between = Callable[[FloatArray], FloatArray]  # an estimate (H, W) before the next step → a better one


def empirical_bayes(
    image: FloatArray,
    sigma: float | FloatArray | Noise,
    *,
    prior: DiffusedPrior,
    progress: Progress | None = None,
    between: Between | None = None,  # noqa: ARG001
) -> FloatArray:
    """E[X | Y] of every patch, averaged over the patches that hold a pixel: EB-PA, Eq. (3). (H, W), in float32.

    `image` (H, W) has grey levels scaled to [0, 1], `sigma` is a number or a map; NaN pixels are filled first. There is
    nothing `between` the steps, since it is one.
    """
    model = complete(prior)
    check_holds_a_patch(image, model)
    image = np.ascontiguousarray(image, np.float32)
    if np.isnan(image.min()):
        check_not_empty(image)
        image = image.copy()
        fill_nearby(image)
    return denoised_once(model, image, sigma, progress)


def half_quadratic_splitting(
    image: FloatArray,
    sigma: float | FloatArray | Noise,
    *,
    prior: DiffusedPrior,
    schedule: Schedule | None = None,
    progress: Progress | None = None,
    between: Between | None = None,
) -> FloatArray:
    """x ← w_k y + (1 − w_k) EB-PA(x, level_k sigma) for each step k, from x = y: (H, W), in float32.

    `image` y (H, W) has grey levels scaled to [0, 1] and is mirrored beyond its edges; `sigma` is a number or a map. At
    NaN pixels y has no weight: the prior fills them. The schedule is the one on the prior's card, unless given.
    `between` has its say after every step but the last; the image is then mirrored anew.
    """
    model = complete(prior)
    check_holds_a_patch(image, model)
    mirrored = Mirrored((image.shape[0], image.shape[1]), max(model.patch_shape, default=1) - 1)

    x, data_term = begin(image, mirrored)
    noise = as_noise(sigma).rearranged(mirrored.rows)

    schedules = model.schedules if schedule is None else constant(schedule)
    improve = None if between is None else lambda x: copy_rows(between(x[mirrored.inside]), mirrored, x)
    split(x, noise, model, data_term, schedules, progress, improve)
    return x[mirrored.inside]


def begin(image: FloatArray, mirrored: Mirrored) -> tuple[FloatArray, DataTerm]:
    """The image (H, W), mirrored and without gaps, in float32; and what was observed of it."""
    missing = bool(np.isnan(image.min()))
    whole = image
    if missing:
        check_not_empty(image)
        whole = np.array(image, np.float32)
        fill_nearby(whole)
    x = np.empty(mirrored.shape, np.float32)
    copy_rows(whole, mirrored, x)
    return x, observed(image, mirrored, missing=missing)


def copy_rows(image: FloatArray, mirrored: Mirrored, target: FloatArray) -> None:
    """The image, mirrored, to its target."""
    for start in range(0, len(target), ROWS_AT_ONCE):
        target[start : start + ROWS_AT_ONCE] = mirrored.rows(image.__getitem__, slice(start, start + ROWS_AT_ONCE))


def observed(image: FloatArray, mirrored: Mirrored, *, missing: bool) -> DataTerm:
    """What was observed at the pixels of the mirrored image."""

    def read(rows: Any) -> FloatArray:
        return mirrored.rows(image.__getitem__, rows)

    return PartlyObserved(read) if missing else Observed(read)


def split(
    x: FloatArray,
    noise: Noise,
    prior: Prior,
    data_term: DataTerm,
    schedules: Schedules,
    progress: Progress | None = None,
    improve: Callable[[FloatArray], None] | None = None,
) -> None:
    """Alternate the prior's half and the data's half of every step, in place on x (H, W) in float32.

    After every step but the last one may `improve` x, in place.
    """
    for step in range(schedules.steps):
        if step and improve is not None:
            improve(x)
        part = part_of(progress, step, schedules.steps)
        split_once(x, noise, prior, data_term, schedules, step, schedules.grid(step), part)


def split_once(
    x: FloatArray,
    noise: Noise,
    prior: Prior,
    data_term: DataTerm,
    schedules: Schedules,
    step: int,
    grid: Grid,
    progress: Progress | None = None,
) -> None:
    """One step of `split`."""

    def store(rows: slice, change: FloatArray) -> None:
        change += x[rows]  # the prior's estimate
        weight = schedules.weight(step, noise.rows(rows)).astype(np.float32)
        x[rows] = data_term.draw_to_data(change, rows, weight)

    prior.denoise_step(x, _noise_of_step(schedules, step, noise), store, progress, grid=grid)


def _noise_of_step(schedules: Schedules, step: int, noise: Noise) -> Noise:
    """level_k sigma; the range of a map is that of all steps, so that they can share tables."""
    levels = np.array(schedules.levels)
    lowest, highest = float(levels.min()) * noise.lowest, float(levels.max()) * noise.highest
    return noise.changed(lambda sigma: np.asarray(schedules.level(step, sigma) * sigma), lowest, highest)


METHODS: dict[str, Callable[..., FloatArray]] = {"hqs": half_quadratic_splitting, "eb": empirical_bayes}


def check_holds_a_patch(image: NDArray[Any], prior: Prior) -> None:
    """Refuse images that are smaller than a patch."""
    size = max(prior.patch_shape, default=1)
    if image.ndim != 2 or min(image.shape) < size:
        raise InvalidInputError(
            f"the image has shape {image.shape} but the prior acts on patches of {size}×{size} pixels; "
            "give a larger image, or a prior on smaller patches"
        )
