"""Maximum likelihood of a noise level: contrasts of blocks fitted by EM, the peak, and an honest standard error.

The log-likelihood of blocks i of an image is Σ_i log Σ_c π_c f_c(block_i, sigma), maximised over the weights π at each
noise level (a profile), and then over the noise level. Patches overlap and are taken for independent: the peak of this
composite likelihood is right, its curvature is not the precision. So the standard error is the sandwich: the spread of
sums of scores over parts of the image, over the curvature.

One patch tells little of its contrast; a block of 7×7 overlapping patches does. A mixture knows patches well enough for
each to be a block. Patches are looked at in the directions in which clean ones are weak beside the noise.
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray, IntArray
from heatprior.errors import InvalidInputError
from heatprior.priors.protocol import NoiseDirections, NoiseLikelihood
from heatprior.scipy_subset import refine

OCTAVES = 0.0004 * 2.0 ** np.arange(14)  # noise levels looked at first: from a tenth of a grey level of 8 bits on
STEPS = 60  # of EM
PSEUDO_COUNT = 0.02  # of the number of blocks: pseudo-counts for the usual contrasts
LEAST_CURVATURE = 1e-6  # of a flat likelihood
SPLINE_POINTS = 16  # for each step between noise levels
BLOCK = 7  # patches along the side of a block
FEWEST_USABLE = 1 / 3  # of the patches of a block; if no block has so many, one patch has to do

Clipped = tuple[float, float]  # the values at which pixels are cut off; infinite if there are none
NOT_CLIPPED = (-np.inf, np.inf)
CLEAR = (2.5, 2.0, 1.5, 1.0, 0.5)  # standard deviations of noise that keep the mean of a patch clear of clipping
GUESS = 0.01  # of the noise, before anything is known: clipped areas of no noise at all must not count
FEWEST_CLEAR = 0.05  # of the patches; if there are fewer, less has to do


def weak_directions(directions: NoiseDirections, sigma: float) -> IntArray:
    """Numbers of the directions in which clean patches are weak beside noise of level `sigma`, or the weakest ones."""
    _, spread, weak, fewest = directions
    order = np.argsort(spread, kind="stable")
    return np.sort(order[: max(int((spread < weak * sigma).sum()), fewest)])


def repetition(directions: NoiseDirections, chosen: IntArray, stride: int) -> float:
    """How often a likelihood that adds up patches `stride` pixels apart counts the same noise.

    The variance of its score over its curvature where there is nothing but noise: Σ corr² over all pairs of responses
    that overlap, for each response.
    """
    unit = directions.unit[chosen]
    size = round(unit.shape[1] ** 0.5)
    unit = unit.reshape(-1, size, size)
    shifts = range(-((size - 1) // stride) * stride, size, stride)
    total = 0.0
    for i in shifts:
        for j in shifts:
            here = unit[:, max(0, i) : size + min(0, i), max(0, j) : size + min(0, j)].reshape(len(unit), -1)
            there = unit[:, max(0, -i) : size + min(0, -i), max(0, -j) : size + min(0, -j)].reshape(len(unit), -1)
            total += float(np.square(here @ there.T).sum())
    return total / len(unit)


class Blocks(NamedTuple):
    """A grid of K = rows · columns blocks of side×side patches."""

    log_densities: FloatArray  # (S, C, K)
    usable: NDArray[np.bool_]  # (K,): which hold enough
    shape: tuple[int, int]
    means: FloatArray  # (K,): brightness
    centres: tuple[FloatArray, FloatArray]  # rows and columns of the image where their middles are
    side: int
    usual: FloatArray | None = None  # weights of the contrasts (C,), if the prior has any


def stride_for(likelihood: NoiseLikelihood, shape: tuple[int, ...]) -> int:
    """How far apart the patches of an image are."""
    return max(likelihood.stride, ceil(sqrt(shape[0] * shape[1] / likelihood.most_patches)))


def usable_patches(
    image: FloatArray, size: int, stride: int, clipped: Clipped, sigma: float | FloatArray
) -> NDArray[np.bool_]:
    """Which patches, stride pixels apart, hold no NaN and are not clipped, judged by their mean under the noise.

    Chosen by the mean, not by the pixels: patches without clipped pixels are those of weak noise.
    """
    low, high = clipped
    missing = np.isnan(image)
    holes = missing.any()
    if not holes and clipped == NOT_CLIPPED:
        return np.ones(tuple(-(-(length - size + 1) // stride) for length in image.shape), bool)
    means = _over_patches(np.where(missing, 0.0, image) if holes else image, size, stride)
    whole = np.ones(means.shape, bool)
    if holes:
        whole = _over_patches(missing.astype(np.float32), size, stride) < 0.5 / size**2
    for clear in CLEAR:
        room = clear * np.asarray(sigma)
        usable = np.asarray((means > low + room) & (means < high - room) & whole)
        if usable.mean() > FEWEST_CLEAR:
            return usable
    return whole


def block_densities(
    likelihood: NoiseLikelihood,
    image: FloatArray,
    log_sigmas: FloatArray,
    chosen: IntArray,
    usable: NDArray[np.bool_],
    stride: int,
    block: int = BLOCK,
) -> Blocks:
    """The blocks of an image (H, W) without NaN; `usable` says which of the patches count."""
    if not usable.any():
        raise InvalidInputError("too many pixels are missing to estimate the noise; give sigma")
    values = likelihood.log_densities(image, np.exp(log_sigmas), chosen, stride)
    if not usable.all():
        values *= usable
    size, block = likelihood.size, likelihood.block or block
    edges = [np.arange(count + 1) * n // count for n in usable.shape for count in [max(1, n // block)]]
    starts = [edge[:-1] for edge in edges]
    values = sum_over_blocks(values, starts)
    held, room = sum_over_blocks(usable.astype(np.float64), starts), sum_over_blocks(np.ones(usable.shape), starts)
    means = sum_over_blocks(_over_patches(image, size, stride), starts) / room
    enough = held >= FEWEST_USABLE * room
    enough = enough if enough.any() else held > 0
    rows, columns = ((edge[:-1] + edge[1:] - 1) / 2.0 * stride + (size - 1) / 2.0 for edge in edges)
    return Blocks(
        values.reshape(*values.shape[:2], -1),
        enough.reshape(-1),
        (enough.shape[0], enough.shape[1]),
        means.reshape(-1),
        (rows, columns),
        block,
        likelihood.contrast_weights,
    )


def sum_over_blocks(values: FloatArray, starts: list[IntArray]) -> FloatArray:
    """Sums of values (…, rows, columns) over blocks that begin at these rows and columns."""
    by_row = np.add.reduceat(values, starts[0], axis=-2, dtype=np.float64)
    return np.asarray(np.add.reduceat(by_row, starts[1], axis=-1))


def _over_patches(values: FloatArray, size: int, stride: int) -> FloatArray:
    """Means over the patches of size×size pixels, stride pixels apart."""
    from scipy.ndimage import uniform_filter  # noqa: PLC0415 (slow to import)

    before = size // 2
    height, width = (length - size + 1 for length in values.shape)
    means = uniform_filter(values, size, origin=0)[before : before + height, before : before + width]
    return np.asarray(means[::stride, ::stride])


def check_in_range(log_sigma: float) -> None:
    """Refuse a peak at the top of the range: there the likelihood still rises."""
    if log_sigma > np.log(OCTAVES[-1]) - 1e-6:
        raise InvalidInputError("the noise is beyond full scale; give the value of full scale (white), or sigma")


class Profile(NamedTuple):
    """Log-likelihoods (S,) over S noise levels, and the weights (S, C) that maximise them."""

    log_sigmas: FloatArray
    values: FloatArray
    weights: FloatArray


class Peak(NamedTuple):
    """Of each curve: log sigma, the curvature there (positive), and whether it lies at the lower or upper end."""

    log_sigma: FloatArray
    curvature: FloatArray
    at_bottom: NDArray[np.bool_]
    at_top: NDArray[np.bool_]


def relative_densities(log_densities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(S, C, n) → e = exp(l − max_c l), and the maxima (S, n): sums of e can neither overflow nor vanish."""
    peaks = log_densities.max(axis=1)
    relative = log_densities - peaks[:, None]
    return np.exp(relative, out=relative), peaks


def profile(log_sigmas: FloatArray, log_densities: FloatArray, usual: FloatArray | None = None) -> Profile:
    """The likelihood of blocks (S, C, n).

    The weights start from the `usual` ones (C,), those of the prior, and lean to them. A prior without any starts from
    even ones, and where its first contrast, that of the prior itself, explains the blocks as well as the mixture does
    (by BIC), it is taken alone: weights that nothing calls for would only blur the estimate.
    """
    relative, peaks = relative_densities(log_densities)
    _, contrasts, size = relative.shape
    lean = np.full(contrasts, 1.0 / contrasts) if usual is None else usual
    extra = PSEUDO_COUNT * size * lean
    weights = np.tile(lean, (len(relative), 1))
    for _ in range(STEPS):
        density = weights[:, None] @ relative  # (S, 1, n)
        totals = weights * (relative @ np.reciprocal(density).swapaxes(1, 2))[..., 0]
        weights = (totals + extra) / (size * (1.0 + PSEUDO_COUNT))
    mixed = np.log(weights[:, None] @ relative).sum(axis=(1, 2)) + peaks.sum(axis=1)
    leaning = mixed + np.log(weights) @ extra
    if usual is not None:
        return Profile(log_sigmas, leaning, weights)
    plain = log_densities[:, 0].sum(axis=1)
    if 2.0 * (mixed.max() - plain.max()) < (contrasts - 1) * np.log(size):
        return Profile(log_sigmas, plain, np.tile(np.eye(contrasts)[0], (len(relative), 1)))
    return Profile(log_sigmas, leaning, weights)


def find_peak(log_sigmas: FloatArray, values: FloatArray) -> Peak:
    """The maximum of values (S, …) given at equal steps of log sigma, between them by a cubic spline."""
    fine = np.linspace(log_sigmas[0], log_sigmas[-1], SPLINE_POINTS * (len(log_sigmas) - 1) + 1)
    curves = refine(values, SPLINE_POINTS)
    best = curves.argmax(axis=0)
    step = fine[1] - fine[0]
    middle = np.clip(best, 1, len(fine) - 2)
    low, here, high = (np.take_along_axis(curves, middle[None] + i, axis=0)[0] for i in (-1, 0, 1))
    curvature = np.maximum((2.0 * here - low - high) / step**2, LEAST_CURVATURE)
    offset = np.clip((high - low) / (2.0 * step * curvature), -step, step)
    at_bottom, at_top = best == 0, best == len(fine) - 1
    return Peak(fine[best] + np.where(at_bottom | at_top, 0.0, offset), curvature, at_bottom, at_top)


def standard_error(log_densities: FloatArray, fitted: Profile, peak: Peak, parts: IntArray) -> float:
    """Of log sigma, by blocks (S, C, n): the spread of the scores over `parts` of the image, over the curvature.

    The scores are those of log sigma given the weights, less what they have in common with the scores of the weights:
    not to know the weights costs precision.
    """
    if len(parts) < 2:
        return np.inf
    step = fitted.log_sigmas[1] - fitted.log_sigmas[0]
    place = (peak.log_sigma - fitted.log_sigmas[0]) / step
    middle = int(np.clip(np.rint(place), 1, len(fitted.log_sigmas) - 2))
    weights = fitted.weights[middle]
    three = log_densities[middle - 1 : middle + 2].astype(np.float64)
    highest = three.max(axis=1, keepdims=True)
    shrinkage = PSEUDO_COUNT * len(parts) * (np.diag(weights) - np.outer(weights, weights))
    joint = weights[:, None] * np.exp(three - highest)  # (3, C, n)
    low, here, high = np.log(joint.sum(axis=1)) + highest[:, 0]
    scores = (high - low) / 2.0 + (high - 2.0 * here + low) * (place - middle)
    of_weights = joint[1] / joint[1].sum(axis=0) - weights[:, None]
    scores -= scores.mean()
    common, *_ = np.linalg.lstsq(of_weights @ of_weights.T + shrinkage, of_weights @ scores, rcond=None)
    scores = (scores - common @ of_weights) / step
    sums = np.bincount(parts, scores)[np.unique(parts)]
    spread = np.sqrt(np.square(sums).sum() * len(sums) / max(len(sums) - 1, 1))
    return float(spread / peak.curvature)


def values_at(log_sigmas: FloatArray, values: FloatArray, wanted: FloatArray) -> FloatArray:
    """Of curves values (S, K), each at its own log sigma, wanted (K,): cubic interpolation."""
    last = len(log_sigmas) - 1
    places = np.clip((wanted - log_sigmas[0]) / (log_sigmas[1] - log_sigmas[0]), 0, last)
    first = np.clip(np.floor(places).astype(np.int64) - 1, 0, last - 3)
    x = places - first
    a, b, c, d = (np.take_along_axis(values, first[None] + i, axis=0)[0] for i in range(4))
    outer = (d * x - a * (x - 3)) * (x - 1) * (x - 2) / 6
    return np.asarray(outer + (b * (x - 2) - c * (x - 1)) * x * (x - 3) / 2)
