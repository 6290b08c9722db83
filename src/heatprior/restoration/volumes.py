"""Volumes: slices along all three axes are denoised, and blended by Stein's unbiased estimate of the risk.

A prior of images knows nothing of what is above and below a slice, but the same volume is a stack of slices along any
of its axes. Which of them to believe is told by the volume itself: of f = Σ w_i f_i the mean squared error is
‖f − y‖² − tr C + 2 tr J C, a quadratic form in the weights whose trace one probe n = ± sigma tells, as n J n. Its
minimum on the simplex finds voxels that are deeper than wide, motion and slices that do not lie well above each other,
and is never worse than slices alone, beyond the error of that estimate. Then once more, on what is nearly clean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, combinations

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.border.gaps import check_not_empty
from heatprior.kernels.patches import Progress
from heatprior.kernels.threads import for_each
from heatprior.noise_value import Noise, as_noise
from heatprior.restoration.error_bars import PROBE, SEED, draw_signs

KEPT = 0.15  # of the noisy volume, in what is denoised once more
AGAIN = 0.3  # of the noise, which is taken to be left in that
TINY = 1e-30  # of nothing removed
RUNS = 12  # three axes, two rounds, with the probe and without

Pair = tuple[FloatArray, FloatArray]  # what becomes of a volume, and of the same with a tenth of the probe added
PlaneDenoiser = Callable[[FloatArray, Noise], FloatArray]  # (H, W), its noise → the same denoised


def denoise_volume(
    noisy: FloatArray, sigma: FloatArray, denoise_plane: PlaneDenoiser, progress: Progress | None = None
) -> FloatArray:
    """A volume (D, H, W) without its noise, grey levels being 0 to 1; `sigma` is one level, or one for every voxel."""
    check_not_empty(noisy)
    drawn = np.where(draw_signs(noisy.shape, np.random.default_rng(SEED)), sigma, -sigma).astype(np.float32)
    noisy_pair = (noisy, noisy + np.float32(PROBE) * drawn)
    done = iter(range(1, RUNS + 1))

    def along(axis: int, volume: FloatArray, level: FloatArray) -> FloatArray:
        clean = denoise_slices(volume, level, axis, denoise_plane)
        if progress is not None:
            progress(next(done) / RUNS)
        return clean

    first = blend([_both(along, axis, noisy_pair, sigma) for axis in range(3)], noisy, drawn)
    calm, probed = (KEPT * y + (1.0 - KEPT) * f for y, f in zip(noisy_pair, first, strict=True))
    again = [_both(along, axis, (calm, probed), AGAIN * sigma) for axis in range(3)]
    return blend([first, *again], noisy, drawn)[0]


def _both(along: Callable[..., FloatArray], axis: int, volumes: Pair, sigma: FloatArray) -> Pair:
    return along(axis, volumes[0], sigma), along(axis, volumes[1], sigma)


def levels_of_slices(noises: Sequence[Noise]) -> FloatArray:
    """The levels of the noise of slices: (D, H, W), or () if all are the same."""
    if all(noise.is_constant for noise in noises) and len({noise.lowest for noise in noises}) == 1:
        return noises[0].rows(slice(None))
    levels = [noise.rows(slice(None)) for noise in noises]
    largest = max(levels, key=np.size)  # a map, unless all are constant
    return np.stack([np.broadcast_to(level, largest.shape or (1, 1)) for level in levels])


def denoise_slices(volume: FloatArray, sigma: FloatArray, axis: int, denoise_plane: PlaneDenoiser) -> FloatArray:
    """Every slice along an axis by itself, slices on all cores; those without a single voxel stay NaN."""
    slices, levels = (np.moveaxis(np.broadcast_to(values, volume.shape), axis, 0) for values in (volume, sigma))
    lowest, highest = float(sigma.min()), float(sigma.max())

    def work(number: int) -> FloatArray:
        plane = np.ascontiguousarray(slices[number], np.float32)
        noise = as_noise(Noise(levels[number].__getitem__, lowest, highest))
        return plane if np.isnan(plane).all() else denoise_plane(plane, noise)

    return np.moveaxis(np.stack(for_each(work, range(len(slices)))), 0, axis)


def blend(found: Sequence[Pair], noisy: FloatArray, drawn: FloatArray) -> Pair:
    """The blend of least estimated risk; of a probe n = `drawn` that was added, too."""
    removed = [clean - noisy for clean, _ in found]
    squares = np.array([[_mean(one * other) for other in removed] for one in removed])
    traces = np.array([_mean(drawn * (probed - clean)) / PROBE for clean, probed in found])
    weights = minimise_on_simplex(squares, 2.0 * traces)
    clean, probed = (sum(w * pair[k] for w, pair in zip(weights, found, strict=True) if w > 0.0) for k in (0, 1))
    return np.asarray(clean, np.float32), np.asarray(probed, np.float32)


def _mean(values: FloatArray) -> float:
    """Over the voxels that are there, but for a factor that is the same for all."""
    return float(np.nansum(values, dtype=np.float64)) / values.size


def minimise_on_simplex(squares: FloatArray, linear: FloatArray) -> FloatArray:
    """The weights w ≥ 0, Σ w = 1, of least w A w + b w: the best of the stationary points on all faces."""
    count, best, least, unit = len(linear), np.zeros(len(linear)), np.inf, max(float(np.trace(squares)), TINY)
    for face in chain.from_iterable(combinations(range(count), size) for size in range(1, count + 1)):
        system = np.ones((len(face) + 1, len(face) + 1))
        system[:-1, :-1], system[-1, -1] = 2.0 * squares[np.ix_(face, face)] / unit, 0.0
        weights = np.zeros(count)
        weights[list(face)] = np.linalg.lstsq(system, np.append(-linear[list(face)] / unit, 1.0), rcond=None)[0][:-1]
        risk = float(weights @ squares @ weights + linear @ weights)
        if weights.min() >= 0.0 and risk < least:
            best, least = weights, risk
    return best
