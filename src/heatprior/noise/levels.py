"""How much noise is in an image: the noise level at which the prior finds it most likely, section 4.4.

sigma = argmax Σ_blocks log Σ_c π_c f_c(block, sigma): the density of noisy patches is exact and normalised at every
noise level, so the level is a maximum-likelihood estimate. The priors know the f_c, likelihood.py finds the peak.

Where the noise is, a level for every window: the log-likelihood of a window is the weighted sum over its blocks,
Σ_k w_k log Σ_c π_c f_c(block_k, sigma). The weights w_k fall like a Gaussian with the distance, and with the difference
of the levels that a first map finds: so the noise may change abruptly, as where images were put together. The weights π
of the contrasts are those of the whole image: they and the map are found in turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import ChannelAxis, FloatArray, IntArray
from heatprior.border.entry import enter
from heatprior.border.gaps import fill_missing
from heatprior.border.pixels import in_unit_range
from heatprior.display import describe_fields
from heatprior.errors import InvalidInputError
from heatprior.kernels.noise_estimation import WindowSums, window_sums
from heatprior.noise.defects import mend
from heatprior.noise.likelihood import (
    BLOCK,
    GUESS,
    OCTAVES,
    Blocks,
    Clipped,
    Peak,
    block_densities,
    check_in_range,
    find_peak,
    profile,
    relative_densities,
    repetition,
    standard_error,
    stride_for,
    usable_patches,
    values_at,
    weak_directions,
)
from heatprior.priors.protocol import DiffusedPrior, NoiseLikelihood, Prior
from heatprior.zoo import as_prior, load

LOG_SIGMA_STEP = np.log(2.0) / 8.0  # in the second look
STEPS_TO_EITHER_SIDE = 5
MOST_LOOKS = 6
PART = 42  # pixels along the side of a part of the image whose score counts as independent; at least two blocks
FEWEST_PARTS = 16
CLIPPED, FEWEST_CLIPPED = 0.001, 3  # of the pixels, at the lowest or highest value: if more, values are cut off there
WINDOW = 16.0  # pixels: the width of the weights
MAP_BLOCK = 3  # patches along the side of a block: fewer than for one level, so that the map is sharp
MAP_STEP = np.log(2.0) / 4.0  # of log sigma
MAP_MARGIN = 3  # steps beyond the range of the first look
TURNS, FIRST_TURNS = 4, 2  # of which the first have half the window, and weights by distance alone
ALIKE = 0.15  # difference of log sigma between windows that support each other
MAP_PSEUDO_COUNT = 0.02  # of the number of blocks: pseudo-counts for the usual contrasts
USUAL, FINER = "patch7", "mixture"  # the priors that are asked unless another is named
FAINT, WEAK = 0.006, 0.05  # of full scale: in between, filters take fine texture for noise, and a mixture does not
FINER_PATCHES = 10_000  # that the finer prior looks at, so that it takes no longer in large images
CUT = 3.0  # widths at which the weights end
LEAST_WEIGHT = (
    0.1  # of all blocks in a window together; with less it carries no information, and is filled from its neighbours
)
UNKNOWN = 1.0  # relative error of such a window, and of one below the lowest level


class NoiseLevel(NamedTuple):
    """The standard deviation of the noise, in the units of the image, and how well it is known.

    Numbers, or arrays (…) over images and channels.

    Attributes
    ----------
    sigma : float or ndarray
        The standard deviation.
    stderr : float or ndarray
        Its statistical error if images are as the prior says.
    model_error : float or ndarray
        The typical error because photographs are not (fine texture looks like noise), as measured on validation images.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> noisy = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((96, 96))
    >>> level = hp.estimate_sigma(noisy)
    >>> abs(float(level) - 0.1) < 5 * level.stderr
    True
    """

    sigma: float | FloatArray
    stderr: float | FloatArray
    model_error: float | FloatArray

    def __repr__(self) -> str:
        return describe_fields(self)

    def __float__(self) -> float:
        return float(self.sigma)


class Estimate(NamedTuple):
    """The noise level of one grey image, scaled to [0, 1]."""

    sigma: float
    stderr: float


def find_priors(prior: str | PathLike[str] | DiffusedPrior | None) -> list[Prior]:
    """Load the prior that was named, or the usual one and, for weak noise, a finer and slower one."""
    return [load(USUAL), load(FINER)] if prior is None else [as_prior(prior)]


class Level(NamedTuple):
    """The level of a grey image (H, W) scaled to [0, 1]."""

    first: Estimate  # by the first prior
    best: Estimate  # by the last, if noise is weak
    model_error: float  # of the best: see `NoiseLevel`


def find_level(image: FloatArray, priors: Sequence[Prior]) -> Level:
    """Find the level by the first prior, and where noise is weak by the last one, which knows texture better."""
    likelihood = likelihood_of(priors[0])
    first = best = noise_level(image, likelihood)
    if len(priors) > 1 and FAINT < first.sigma < WEAK and min(image.shape) >= likelihood_of(priors[-1]).size:
        finer = replace(likelihood_of(priors[-1]), most_patches=FINER_PATCHES)
        with suppress(InvalidInputError):  # gaps may leave no whole patch, since its patches are larger
            best, likelihood = noise_level(image, finer, start=first.sigma), finer
    return Level(first, best, float(model_error(np.array(best.sigma), likelihood.photograph_error)))


def estimate_sigma(
    image: ArrayLike,
    *,
    prior: str | PathLike[str] | DiffusedPrior | None = None,
    channel_axis: ChannelAxis = None,
    white: float | None = None,
) -> NoiseLevel:
    """The standard deviation of white Gaussian noise in an image, in the units of the image, with its error.

    Parameters
    ----------
    image : array_like, (..., H, W)
        As in `denoise`. Missing (NaN), clipped, hot and dead pixels do not count.
    prior : str, path or DiffusedPrior, optional
        Prior used for the likelihood. Default: "patch7", and "mixture" where noise is so weak that filters cannot tell
        it from fine texture.
    channel_axis : int, optional
        As in `denoise`.
    white : float, optional
        As in `denoise`.

    Returns
    -------
    NoiseLevel
        Numbers for one image; with a channel axis, or more axes in front, arrays: one value for each channel of each
        image. A sigma of 0 means that it is below `stderr`.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> noisy = 120 + 12 * np.random.default_rng(0).standard_normal((96, 96))
    >>> level = hp.estimate_sigma(noisy, white=255)
    >>> 11 < level.sigma < 13
    True
    """
    entered, _ = mend(enter(image, channel_axis=channel_axis, white=white))
    full, channels = entered.full, entered.channels
    priors = find_priors(prior)
    check_holds_patches(channels, likelihood_of(priors[0]))
    planes = (in_unit_range(channels[index], full) for index in np.ndindex(channels.shape[:-2]))
    found = [(*level.best, level.model_error) for level in (find_level(plane, priors) for plane in planes)]
    sigma, stderr, error = (np.array(values) for values in zip(*found, strict=True))
    shape = channels.shape[:-2] if entered.channel_axis is not None else channels.shape[:-3]
    if shape == ():
        return NoiseLevel(*(float(values[0] * full) for values in (sigma, stderr, error)))
    return NoiseLevel(*((values * full).reshape(shape) for values in (sigma, stderr, error)))


def model_error(sigma: FloatArray, photograph_error: tuple[float, float]) -> FloatArray:
    """The typical error of sigma in photographs: a fixed variance, and a part of that of the noise, over 2 sigma.

    Without noise there is none. See `NoiseLikelihood.photograph_error`.
    """
    texture, misfit = photograph_error
    limited = np.maximum(sigma, texture / 2)
    return np.where(sigma > 0, (texture**2 + misfit * limited**2) / (2.0 * limited), 0.0)


def noise_level(image: FloatArray, likelihood: NoiseLikelihood, start: float | None = None) -> Estimate:
    """The noise level of a grey image (H, W) scaled to [0, 1], with NaN where pixels are missing.

    The peak of the likelihood is looked for among octaves, or near `start`, then closely, with the filters that suit
    it. The scores of parts of the image count as independent.
    """
    size, stride = likelihood.size, stride_for(likelihood, image.shape)
    whole, clipped, octaves = without_gaps(image), clipping(image), np.log(OCTAVES)
    steps = np.arange(-STEPS_TO_EITHER_SIDE, STEPS_TO_EITHER_SIDE + 1)
    log_sigmas, middle, chosen = octaves, GUESS, weak_directions(likelihood.directions, 0.0)
    if start is not None:
        log_sigmas, middle = np.log(start) + LOG_SIGMA_STEP * steps, start
        chosen = weak_directions(likelihood.directions, start)
    for look in range(1 + MOST_LOOKS):
        usable = usable_patches(image, size, stride, clipped, middle)
        blocks = block_densities(likelihood, whole, log_sigmas, chosen, usable, stride)
        log_densities = blocks.log_densities[:, :, blocks.usable]
        fitted = profile(log_sigmas, log_densities, blocks.usual)
        peak = find_peak(log_sigmas, fitted.values)
        log_sigma = float(np.clip(peak.log_sigma, octaves[0], octaves[-1]))
        place = np.rint((log_sigma - octaves[0]) / LOG_SIGMA_STEP)
        centre = octaves[0] + LOG_SIGMA_STEP * place  # on a grid: images share tables
        suited = weak_directions(likelihood.directions, float(np.exp(log_sigma)))
        settled = centre == log_sigmas[STEPS_TO_EITHER_SIDE] and np.array_equal(suited, chosen)
        if settled or look == MOST_LOOKS:
            break
        log_sigmas, chosen = centre + LOG_SIGMA_STEP * steps, suited
        middle = float(np.exp(log_sigmas.mean()))
    log_sigma = float(peak.log_sigma)
    check_in_range(log_sigma)
    if log_sigma <= octaves[0]:
        return Estimate(0.0, float(OCTAVES[0]))
    parts = parts_of(blocks, max(2, PART // (stride * (likelihood.block or BLOCK))))[blocks.usable]
    error = float(np.sqrt(repetition(likelihood.directions, chosen, stride) / peak.curvature))
    if len(np.unique(parts)) >= FEWEST_PARTS:  # too few to estimate the spread
        error = max(error, standard_error(log_densities, fitted, peak, parts))
    return Estimate(float(np.exp(log_sigma)), float(np.exp(log_sigma) * error))


def parts_of(blocks: Blocks, side: int) -> IntArray:
    """The number of the part, side×side blocks, that each block belongs to."""
    rows, columns = (np.arange(count) // side for count in blocks.shape)
    return np.asarray((rows[:, None] * (columns[-1] + 1) + columns).reshape(-1))


def clipping(image: FloatArray) -> Clipped:
    """The lowest and highest value, each if so many pixels have it that values beyond must have been cut off."""
    low, high = float(np.nanmin(image)), float(np.nanmax(image))
    many = max(CLIPPED * image.size, FEWEST_CLIPPED)
    return (
        low if np.count_nonzero(image == low) > many else -np.inf,
        high if np.count_nonzero(image == high) > many else np.inf,
    )


def likelihood_of(prior: Prior) -> NoiseLikelihood:
    """The likelihood by which the prior estimates noise from patches; refuses a prior without one."""
    if prior.noise_likelihood is None:
        kind = prior.facts().get("kind", type(prior).__name__)
        raise InvalidInputError(
            f"noise is estimated with a mixture or a patch prior such as patch7, not with this one ({kind}); give sigma"
        )
    return prior.noise_likelihood


def check_holds_patches(channels: NDArray[Any], likelihood: NoiseLikelihood) -> None:
    """Refuse images that hold no patch."""
    size = likelihood.size
    if min(channels.shape[-2:]) < size:
        raise InvalidInputError(
            f"the image is {channels.shape[-2]}×{channels.shape[-1]} pixels but the prior acts on patches of "
            f"{size}×{size}; give a larger image, or a prior on smaller patches"
        )


def without_gaps(image: FloatArray) -> FloatArray:
    """The image with NaN filled."""
    if not np.isnan(image).any():
        return image
    whole = image.copy()
    fill_missing(whole)
    return whole


class LocalLevels(NamedTuple):
    """Of K blocks in a grid: their likelihoods and what follows from them, in the units of log sigma."""

    log_sigmas: FloatArray  # (S,), equal steps
    values: FloatArray  # (S, K): log-likelihood of each block
    blocks: Blocks
    log_sigma: FloatArray  # (K,): the map
    error: FloatArray  # (K,): its standard error
    repeated: float  # how often the likelihood counts the same information, since patches overlap
    parameters: float  # of the map: how many independent windows there are

    def __repr__(self) -> str:
        return describe_fields(self)

    def likelihood(self, log_sigma: FloatArray) -> float:
        """The sum of the log-likelihoods of usable blocks, each at its own log sigma."""
        return float(values_at(self.log_sigmas, self.values[:, self.blocks.usable], log_sigma).sum())


def local_levels(
    likelihood: NoiseLikelihood, image: FloatArray, whole: FloatArray, clipped: Clipped, window: float = WINDOW
) -> LocalLevels:
    """Levels around every block of a grey image (H, W) scaled to [0, 1], `whole` being the same without NaN."""
    size, stride = likelihood.size, stride_for(likelihood, image.shape)
    width = max(window / (stride * (likelihood.block or MAP_BLOCK)), 0.5)
    first_look = np.log(OCTAVES)
    usable = usable_patches(image, size, stride, clipped, GUESS)
    chosen = weak_directions(likelihood.directions, 0.0)
    blocks = block_densities(likelihood, whole, first_look, chosen, usable, stride, MAP_BLOCK)
    found = _in_turns(first_look, blocks, width, FIRST_TURNS)[0].log_sigma
    lowest, highest = (int(np.rint((end - first_look[0]) / MAP_STEP)) for end in (found.min(), found.max()))
    log_sigmas = first_look[0] + MAP_STEP * np.arange(lowest - MAP_MARGIN, highest + MAP_MARGIN + 1)
    check_in_range(float(np.median(found)))
    typical = float(np.exp(np.median(found)))
    usable = usable_patches(image, size, stride, clipped, typical)
    chosen = weak_directions(likelihood.directions, typical)
    blocks = block_densities(likelihood, whole, log_sigmas, chosen, usable, stride, MAP_BLOCK)
    peak, sums, values = _in_turns(log_sigmas, blocks, width, TURNS)
    repeated = repetition(likelihood.directions, chosen, stride)
    weight = np.maximum(sums.weights, LEAST_WEIGHT)
    variance = repeated * sums.squares / (weight * peak.curvature)
    unknown = (sums.weights < LEAST_WEIGHT) | (peak.log_sigma <= first_look[0])
    error = np.where(unknown, UNKNOWN, np.minimum(np.sqrt(variance), UNKNOWN))
    return LocalLevels(
        log_sigmas,
        values,
        blocks,
        np.maximum(peak.log_sigma, first_look[0]).reshape(-1),
        error.reshape(-1),
        repeated,
        float((blocks.usable / weight.reshape(-1)).sum()),
    )


def to_pixels(levels: LocalLevels, values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Values of the blocks (K,), between their centres linearly, beyond the outermost constantly: (H, W)."""
    from scipy.ndimage import map_coordinates  # noqa: PLC0415 (slow to import)

    places = [
        np.interp(np.arange(n), at, np.arange(len(at))) for at, n in zip(levels.blocks.centres, shape, strict=True)
    ]
    grid = values.reshape(levels.blocks.shape)
    return np.asarray(map_coordinates(grid, np.meshgrid(*places, indexing="ij"), order=1, mode="nearest"))


def _in_turns(log_sigmas: FloatArray, blocks: Blocks, width: float, turns: int) -> tuple[Peak, WindowSums, FloatArray]:
    """The map given the weights of the contrasts, and the weights given the map, some times over.

    Gives the map as peaks (rows, columns), the sums over the windows, and the likelihoods (S, K) of the blocks.
    """
    count = blocks.log_densities.shape[1]
    usual = np.full(count, 1.0 / count) if blocks.usual is None else blocks.usual
    weights = usual
    relative, highest = relative_densities(blocks.log_densities)  # (S, C, K), (S, K)
    held = blocks.usable.reshape(blocks.shape).astype(np.float64)
    pilot: FloatArray = np.zeros(blocks.shape)
    for turn in range(turns):
        values = (np.log(np.einsum("c,sck->sk", weights, relative)) + highest) * blocks.usable
        grid = values.reshape(-1, *blocks.shape)
        wide = width if turn >= FIRST_TURNS else width / 2.0
        sums = window_sums(grid, held, pilot, wide, ALIKE, CUT * wide)
        peak = find_peak(log_sigmas, sums.values)
        peak = peak._replace(log_sigma=_continue_smoothly(peak.log_sigma, sums.weights < LEAST_WEIGHT))
        if turn + 1 >= FIRST_TURNS:
            pilot = peak.log_sigma
        nearest = np.rint((peak.log_sigma - log_sigmas[0]) / (log_sigmas[1] - log_sigmas[0])).astype(np.int64)
        joint = weights[:, None] * np.take_along_axis(relative, nearest.reshape(1, 1, -1), axis=0)[0]  # (C, K)
        totals = (joint / joint.sum(axis=0)) @ blocks.usable + MAP_PSEUDO_COUNT * blocks.usable.sum() * usual
        weights = totals / totals.sum() if totals.sum() > 0 else weights
    return peak, sums, values


def _continue_smoothly(log_sigma: FloatArray, unknown: NDArray[np.bool_]) -> FloatArray:
    """The map (rows, columns) with a smooth continuation where it is unknown."""
    if not unknown.any() or unknown.all():
        return log_sigma
    filled = np.where(unknown, np.nan, log_sigma).astype(np.float32)
    fill_missing(filled)
    return np.where(unknown, filled, log_sigma)
