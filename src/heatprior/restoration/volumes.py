"""Volumes: slices, and a mixture of patches in three dimensions, blended by Stein's unbiased estimate of the risk.

A prior of images knows nothing of what is above and below a slice. A mixture of three-dimensional patches does, fitted
to the volume itself (volume_mixture.py) with the denoised slices as a guide, and once more on voxels of twice the size,
whose result corrects low frequencies. The same volume is a stack of slices along any of its axes, too. Which of them to
believe is estimated from the volume (evidence.py). So voxels that are deeper than wide, motion and misaligned slices
need no setting, and the result is never worse than slices alone, up to the error of that estimate.

Lamps flicker: gains that differ from slice to slice look like edges to patches in three dimensions. Where the ratios of
neighbouring slices show them, slices and their noise are divided by their gains first, and the result is multiplied by
them again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.border.gaps import check_not_empty
from heatprior.kernels.patches import Progress
from heatprior.kernels.threads import for_each
from heatprior.noise_value import Noise, as_noise
from heatprior.restoration.error_bars import PROBE, SEED, draw_signs
from heatprior.restoration.evidence import weigh
from heatprior.restoration.volume_mixture import Pair, Shape, apply, choose_shape, fit

KEPT = 0.15  # of the noisy volume, in what is denoised once more
AGAIN = 0.3  # of the noise, which is taken to be left in that
EVERY = 4  # slices of which one is probed
TWICE = 4  # voxels of a patch along an axis that is halved
TILE = 4  # pixels along a side of what is compared between slices
BRIGHT = 5.0  # times its noise: only such tiles tell gains, since most volumes hold black
FEWEST_TILES = 16
SPREAD = 1.25 * 1.25  # error of a median, over the mean absolute deviation divided by the root of the count
LEAST_GAIN, SURE = 0.005, 3.0  # less does not matter to patches; as many times the error is no chance
SLOW = 4.0  # slices: the standard deviation of the Gaussian that tells slow changes

PlaneDenoiser = Callable[[FloatArray, Noise], FloatArray]  # (H, W), its noise → the same denoised


def denoise_volume(
    noisy: FloatArray,
    sigma: FloatArray,
    denoise_plane: PlaneDenoiser,
    progress: Progress | None = None,
    *,
    axes: int = 3,
    rounds: int = 1,
) -> FloatArray:
    """A volume (D, H, W) without its noise, grey levels being 0 to 1; `sigma` is one level, or one for every voxel.

    Slices are denoised along so many `axes`, in a second round once more, of what is nearly clean.
    """
    check_not_empty(noisy)
    gains = find_gains(noisy, sigma)
    noisy, sigma = noisy / gains, sigma / gains
    sigma = sigma if sigma.size == 1 else np.broadcast_to(sigma, noisy.shape)
    drawn = np.where(draw_signs(noisy.shape, np.random.default_rng(SEED)), sigma, -sigma).astype(np.float32)
    pair = (noisy, noisy + np.float32(PROBE) * drawn)
    jobs = axes * rounds + 2
    done, every = iter(range(1, jobs + 1)), EVERY if rounds == 1 else 1

    def report(result: Pair) -> Pair:
        if progress is not None:
            progress(next(done) / jobs)
        return result

    def along(axis: int, volumes: Pair, level: FloatArray) -> Pair:
        return report(denoise_slices(volumes, level, axis, denoise_plane, every))

    found = [along(axis, pair, sigma) for axis in range(axes)]
    shape, guide = choose_shape(noisy, sigma), blend(found, noisy, drawn)
    whole = np.where(np.isnan(pair[0]), guide[0], pair[0]), np.where(np.isnan(pair[1]), guide[0], pair[1])
    patches = report(improve(whole, guide, sigma, shape))
    first = blend([*found, patches, report(correct(whole, patches, sigma, shape))], noisy, drawn)
    if rounds == 1:
        return first[0] * gains
    calm, probed = (KEPT * y + (1.0 - KEPT) * f for y, f in zip(pair, first, strict=True))
    again = [along(axis, (calm, probed), AGAIN * sigma) for axis in range(axes)]
    return blend([first, *again], noisy, drawn)[0] * gains


def find_gains(noisy: FloatArray, sigma: FloatArray) -> FloatArray:
    """How much brighter each slice is than those around it, (D, 1, 1); ones where no gains are found.

    The logarithm of a gain is the sum, over all slices before, of median log-ratios between tiles of neighbours, less
    its smooth part: what changes slowly belongs to the object.
    """
    depth, rows, columns = (length // side for length, side in zip(noisy.shape, (1, TILE, TILE), strict=True))
    cut = noisy[:, : rows * TILE, : columns * TILE].reshape(depth, rows, TILE, columns, TILE)
    tiles = cut.mean(axis=(2, 4), dtype=np.float64).reshape(depth, -1)
    bright = tiles > BRIGHT * float(sigma.max()) / TILE
    steps = np.diff(np.log(np.where(bright, tiles, np.nan)), axis=0)
    known = np.count_nonzero(~np.isnan(steps), axis=1)
    none = np.ones((1, 1, 1), np.float32)
    if depth < 3 or known.min() < FEWEST_TILES:
        return none
    middle = np.nanmedian(steps, axis=1)
    errors = SPREAD * np.nanmean(np.abs(steps - middle[:, None]), axis=1) / np.sqrt(known)
    jumps = float(np.sqrt(np.mean(np.square(np.diff(middle))) / 6.0))  # of independent gains: their deviation
    if jumps < max(LEAST_GAIN, SURE * float(np.sqrt(np.mean(np.square(errors))))):
        return none
    total = np.append(0.0, np.cumsum(middle))
    distance = np.abs(np.arange(depth)[:, None] - np.arange(depth))
    near = np.exp(-0.5 * np.square(distance / SLOW))
    slow = near @ total / near.sum(axis=1)
    return np.asarray(np.exp(total - slow), np.float32)[:, None, None]


def improve(noisy: Pair, guide: Pair, sigma: FloatArray, shape: Shape) -> Pair:
    """What a mixture makes of a volume, and of the probed one, that was fitted to the first by its guide."""
    model = fit(noisy[0], guide[0], sigma, shape)
    return guide if model is None else apply(noisy, guide[0], sigma, model)


def correct(noisy: Pair, clean: Pair, sigma: FloatArray, shape: Shape) -> Pair:
    """Results with the low frequencies of what `improve` makes of voxels of twice the size: (D, H, W) each."""
    axes = [axis for axis, side in enumerate(shape) if side >= TWICE]
    level = (sigma if sigma.size == 1 else np.sqrt(halve(np.square(sigma), axes))) * 2.0 ** (-0.5 * len(axes))
    before, coarse = ((halve(first, axes), halve(probed, axes)) for first, probed in (clean, noisy))
    after = improve(coarse, before, level, shape)
    first, probed = (
        volume + np.nan_to_num(double(new - old, axes, volume.shape))
        for volume, new, old in zip(clean, after, before, strict=True)
    )
    return first, probed


def halve(volume: FloatArray, axes: Sequence[int]) -> FloatArray:
    """Means of neighbouring voxels along some axes; the last of an odd number stands for two."""
    for axis in axes:
        length = volume.shape[axis]
        pairs = [np.take(volume, np.minimum(np.arange(k, length + k, 2), length - 1), axis) for k in (0, 1)]
        volume = 0.5 * (pairs[0] + pairs[1])
    return volume


def double(volume: FloatArray, axes: Sequence[int], shape: tuple[int, ...]) -> FloatArray:
    """Linear interpolation at the voxels that `halve` took means of."""
    for axis in axes:
        places, last = np.arange(shape[axis]), volume.shape[axis] - 1
        near, far = places // 2, np.clip(places // 2 + np.where(places % 2, 1, -1), 0, last)
        volume = 0.75 * np.take(volume, near, axis) + 0.25 * np.take(volume, far, axis)
    return volume


def levels_of_slices(noises: Sequence[Noise]) -> FloatArray:
    """The levels of the noise of slices: (D, H, W), or () if all are the same."""
    if all(noise.is_constant for noise in noises) and len({noise.lowest for noise in noises}) == 1:
        return noises[0].rows(slice(None))
    levels = [noise.rows(slice(None)) for noise in noises]
    largest = max(levels, key=np.size)  # a map, unless all are constant
    return np.stack([np.broadcast_to(level, largest.shape or (1, 1)) for level in levels])


def denoise_slices(volumes: Pair, sigma: FloatArray, axis: int, denoise_plane: PlaneDenoiser, every: int = 1) -> Pair:
    """Every slice along an axis by itself, slices on all cores; those without a single voxel stay NaN.

    Of the probed volume some slices are enough to know a trace, one in `every`; the others are NaN.
    """
    first, probed = (np.moveaxis(volume, axis, 0) for volume in volumes)
    levels = np.moveaxis(np.broadcast_to(sigma, volumes[0].shape), axis, 0)
    lowest, highest = float(sigma.min()), float(sigma.max())

    def work(job: tuple[FloatArray, int]) -> FloatArray:
        plane = np.ascontiguousarray(job[0][job[1]], np.float32)
        noise = as_noise(Noise(levels[job[1]].__getitem__, lowest, highest))
        return plane if np.isnan(plane).all() else denoise_plane(plane, noise)

    whole, some = range(len(first)), range(every // 2, len(first), every)
    found = for_each(work, [*((first, number) for number in whole), *((probed, number) for number in some)])
    rest = np.full(first.shape, np.nan, np.float32)
    rest[some.start :: every] = found[len(whole) :]
    return np.moveaxis(np.stack(found[: len(whole)]), 0, axis), np.moveaxis(rest, 0, axis)


def blend(found: Sequence[Pair], noisy: FloatArray, drawn: FloatArray) -> Pair:
    """The blend of least estimated risk, of results and of those with the probe `drawn` added, where all have these."""
    weights = weigh(found, noisy, drawn)
    clean, probed = (sum(w * pair[k] for w, pair in zip(weights, found, strict=True) if w > 0.0) for k in (0, 1))
    return np.asarray(clean, np.float32), np.asarray(probed, np.float32)
