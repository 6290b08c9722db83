"""Where the noise is: a noise level for every window of an image, section 4.4.

The log-likelihood of a window is the weighted sum over its blocks, Σ_k w_k log Σ_c π_c f_c(block_k, sigma), and its
peak is the noise level there. The weights w_k fall like a Gaussian with the distance, and with the difference of the
noise levels that a first map finds: so the noise may change abruptly, as where images were put together. The weights π
of the contrasts are those of the whole image: they and the map are found in turns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.border.gaps import fill_missing
from heatprior.display import describe_fields
from heatprior.kernels.noise_estimation import WindowSums, window_sums
from heatprior.noise.likelihood import (
    GUESS,
    OCTAVES,
    Blocks,
    Clipped,
    Peak,
    block_densities,
    check_in_range,
    find_peak,
    repetition,
    stride_for,
    usable_patches,
    weak_directions,
)
from heatprior.priors.protocol import NoiseLikelihood

WINDOW = 16.0  # pixels: the width of the weights
BLOCK = 3  # patches along the side of a block: fewer than for one level, so that the map is sharp
STEP = np.log(2.0) / 4.0  # of log sigma
MARGIN = 3  # steps beyond the range of the first look
TURNS, FIRST_TURNS = 4, 2  # of which the first have half the window, and weights by distance alone
ALIKE = 0.15  # difference of log sigma between windows that support each other
PSEUDO_COUNT = 0.02  # of the number of blocks: pseudo-counts for the usual contrasts
CUT = 3.0  # widths at which the weights end
LEAST_WEIGHT = (
    0.1  # of all blocks in a window together; with less it carries no information, and is filled from its neighbours
)
UNKNOWN = 1.0  # relative error of such a window, and of one below the lowest level


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


def local_levels(
    likelihood: NoiseLikelihood, image: FloatArray, whole: FloatArray, clipped: Clipped, window: float = WINDOW
) -> LocalLevels:
    """Of a grey image (H, W) scaled to [0, 1], `whole` being the same without NaN."""
    size, stride = likelihood.size, stride_for(likelihood, image.shape)
    width = max(window / (stride * likelihood.block_side(BLOCK)), 0.5)
    first_look = np.log(OCTAVES)
    usable = usable_patches(image, size, stride, clipped, GUESS)
    chosen = weak_directions(likelihood.directions, 0.0)
    blocks = block_densities(likelihood, whole, first_look, chosen, usable, stride, BLOCK)
    found = _in_turns(first_look, blocks, width, FIRST_TURNS)[0].log_sigma
    lowest, highest = (int(np.rint((end - first_look[0]) / STEP)) for end in (found.min(), found.max()))
    log_sigmas = first_look[0] + STEP * np.arange(lowest - MARGIN, highest + MARGIN + 1)
    check_in_range(float(np.median(found)))
    typical = float(np.exp(np.median(found)))
    usable = usable_patches(image, size, stride, clipped, typical)
    chosen = weak_directions(likelihood.directions, typical)
    blocks = block_densities(likelihood, whole, log_sigmas, chosen, usable, stride, BLOCK)
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
    highest = blocks.log_densities.max(axis=1)
    relative = np.exp(blocks.log_densities - highest[:, None])  # (S, C, K)
    held = blocks.usable.reshape(blocks.shape).astype(np.float64)
    pilot: FloatArray = np.zeros(blocks.shape)
    for turn in range(turns):
        values = (np.log(np.einsum("c,sck->sk", weights, relative)) + highest) * blocks.usable
        grid = values.reshape(-1, *blocks.shape)
        wide = width if turn >= FIRST_TURNS else width / 2.0
        sums = window_sums(grid, held, pilot, wide, ALIKE, CUT * wide)
        peak = find_peak(log_sigmas, sums.values)
        peak = peak._replace(log_sigma=_filled(peak.log_sigma, sums.weights < LEAST_WEIGHT))
        if turn + 1 >= FIRST_TURNS:
            pilot = peak.log_sigma
        nearest = np.rint((peak.log_sigma - log_sigmas[0]) / (log_sigmas[1] - log_sigmas[0])).astype(np.int64)
        joint = weights[:, None] * np.take_along_axis(relative, nearest.reshape(1, 1, -1), axis=0)[0]  # (C, K)
        totals = (joint / joint.sum(axis=0)) @ blocks.usable + PSEUDO_COUNT * blocks.usable.sum() * usual
        weights = totals / totals.sum() if totals.sum() > 0 else weights
    return peak, sums, values


def _filled(log_sigma: FloatArray, unknown: NDArray[np.bool_]) -> FloatArray:
    """The map (rows, columns) with a smooth continuation where it is unknown."""
    if not unknown.any() or unknown.all():
        return log_sigma
    filled = np.where(unknown, np.nan, log_sigma).astype(np.float32)
    fill_missing(filled)
    return np.where(unknown, filled, log_sigma)
