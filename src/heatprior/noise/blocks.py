"""Blocks of neighbouring patches that share a contrast, and their log-densities at many noise levels.

One patch carries little information about its contrast; a block of 7×7 overlapping patches does, and texture is seldom
smaller. The log-density of a block is the sum over its patches, for each noise level and contrast. A mixture of
Gaussians knows patches well enough for each to be a block.
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray, IntArray
from heatprior.errors import InvalidInputError
from heatprior.priors.protocol import NoiseLikelihood

BLOCK = 7  # patches along the side of a block
FEWEST_USABLE = 1 / 3  # of the patches of a block; if no block has so many, one patch has to do

Clipped = tuple[float, float]  # the values at which pixels are cut off; infinite if there are none
NOT_CLIPPED = (-np.inf, np.inf)
CLEAR = (2.5, 2.0, 1.5, 1.0, 0.5)  # standard deviations of noise that keep the mean of a patch clear of clipping
GUESS = 0.01  # of the noise, before anything is known: clipped areas of no noise at all must not count
FEWEST_CLEAR = 0.05  # of the patches; if there are fewer, less has to do


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
    size, block = likelihood.size, likelihood.block_side(block)
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
