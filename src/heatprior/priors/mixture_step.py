"""Empirical Bayes with patch averaging for mixtures of Gaussians: one fast step of a whole image.

As patch_step.py for the patch prior. The posterior mean of a patch is that of the one shape that explains it best,
found with the short cuts of kernels/shapes.py. Where noise is correlated, patches are whitened on the way in: the axes
for analysis then differ from those for synthesis, and nothing else does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.candidates import CANDIDATES, UNROLLED
from heatprior.kernels.grids import EVERY, Cells, Grid
from heatprior.kernels.row_bands import Progress, Store, average_by_bands, edges_of_bands
from heatprior.kernels.shapes import LANES, ShapeTables, add_changes
from heatprior.noise_model import Noise, NoiseSpectrum
from heatprior.priors.correlated_mixture import whitening

if TYPE_CHECKING:
    from heatprior.priors.gaussian_mixture import GaussianMixturePrior

NEGLIGIBLE = 0.03  # variance of an axis, over that of the noise, below which it is taken for noise alone
RARE = 1e-3  # part of the patches of a shape whose contrast may be larger than the one by which axes are chosen
SUBSPACE = 24  # dimensions in which all shapes are compared
LOG_SIGMA_STEP = 0.03  # between the tables for maps
TILE = 512  # columns of patches that are looked at together
LEAST_SIGMA = 1e-5  # of a table; less noise than this changes nothing visibly


def step_of_mixture(
    prior: GaussianMixturePrior,
    image: FloatArray,
    noise: Noise,
    store: Store,
    progress: Progress | None = None,
    *,
    candidates: int = CANDIDATES,
    negligible: float = NEGLIGIBLE,
    grid: Grid = EVERY,
) -> None:
    """Hand to `store`, band by band, by how much one step changes the rows of an image (H, W) in float32.

    With all shapes as `candidates` and nothing `negligible`, the only short cut left is that to the best shape.
    """
    size, width = prior.size, image.shape[1]
    columns = width - size + 1
    lowest, highest = max(noise.lowest, LEAST_SIGMA), max(noise.highest, LEAST_SIGMA)
    steps = int(np.ceil(np.log(highest / lowest) / LOG_SIGMA_STEP))
    sigmas = tuple(np.geomspace(lowest, highest, steps + 1).tolist())
    tables = shape_tables(prior, sigmas, negligible, noise.spectrum)
    constant = np.zeros((1, 1), np.int32)

    all_rows, all_columns = grid.places(image.shape, size)
    tiles = [all_columns[(all_columns >= left) & (all_columns < left + TILE)] for left in range(0, columns, TILE)]

    def sum_of_changes(start: int, end: int) -> FloatArray:
        in_band = all_rows[(all_rows >= start) & (all_rows < end)] - start
        levels = constant
        if not noise.is_constant:
            sigma = noise.patches(slice(start, end + size - 1), size)[in_band]
            places = np.log(np.maximum(sigma, lowest) / lowest) * (steps / max(np.log(highest / lowest), 1e-9))
            levels = np.clip(np.rint(places), 0, steps).astype(np.int32)
        rows = np.ascontiguousarray(image[start : end + size - 1], np.float32)
        total = np.zeros(rows.shape, np.float32)
        for in_tile in tiles if len(in_band) else []:
            left, right = int(in_tile[0]), int(in_tile[-1]) + size
            own = levels if levels is constant else np.ascontiguousarray(levels[:, in_tile])
            pixels = np.ascontiguousarray(rows[:, left:right])  # always, so that the loops are compiled once
            changes = np.zeros_like(pixels)
            add_changes(pixels, size, (in_band, in_tile - left), own, tables, candidates, changes)
            total[:, left:right] += changes
        return total

    average_by_bands((image.shape[0], width), size, sum_of_changes, store, progress, grid=grid)


def cells_of_mixture(prior: GaussianMixturePrior, shape: tuple[int, int], grid: Grid = EVERY) -> Cells:  # noqa: ARG001
    """Bands of rows, tiles of columns, wherever the patches on the grid are."""
    end = shape[1] - prior.size + 1
    return Cells(edges_of_bands(shape[0], prior.size), np.append(np.arange(0, end, TILE), end))


@lru_cache(maxsize=8)
def shape_tables(
    prior: GaussianMixturePrior,
    sigmas: tuple[float, ...],
    negligible: float = NEGLIGIBLE,
    spectrum: NoiseSpectrum | None = None,
) -> ShapeTables:
    """For these noise levels, of noise of this spectrum."""
    frames = _frames(prior, spectrum)
    noise = np.square(sigmas)[:, None]  # (S, 1)
    lengths = (frames.contrast[:, None] * frames.variances > negligible * noise.min()).sum(axis=1).clip(1)
    padded = -(-lengths // LANES) * LANES
    contrasts, log_weights = prior.contrasts[:, None], prior.log_weights
    signal = contrasts * frames.variances[:, None, : padded.max()]  # (K, G, m)
    coarse_signal = contrasts * frames.coarse_variances[:, None, :]  # (K, G, q)

    def logarithms(ratios: FloatArray) -> FloatArray:
        return -0.5 * np.log1p(ratios)

    noises = noise[..., None, None]
    return ShapeTables(
        np.concatenate([[0], np.cumsum(padded)]),
        np.concatenate([axes[:, :count].reshape(-1) for axes, count in zip(frames.analysis, padded, strict=True)]),
        np.concatenate([axes[:count].reshape(-1) for axes, count in zip(frames.synthesis, padded, strict=True)]),
        _single(0.5 / noises - 0.5 / (signal + noises)),
        _single(signal / (signal + noises)),
        _single(log_weights + logarithms(signal / noises).sum(axis=-1)),
        frames.shared,
        frames.coarse_axes,
        _single(0.5 / noises - 0.5 / (coarse_signal + noises)),
        _single(log_weights + logarithms(coarse_signal / noises).sum(axis=-1)),
    )


class _Frames(NamedTuple):
    """What the tables of every noise level have in common; the d axes of a shape are padded to a multiple of LANES."""

    contrast: FloatArray  # hardly a patch of a shape has a larger one, (K,)
    variances: FloatArray  # (K, d')
    analysis: FloatArray  # axes as columns, (K, a, d'), in float32 like all that follows but the variances
    synthesis: FloatArray  # axes as rows, (K, d', a)
    shared: FloatArray  # the subspace, (q, a)
    coarse_variances: FloatArray  # (K, q'), q padded to a multiple of UNROLLED
    coarse_axes: FloatArray  # (K, q', q)


@lru_cache(maxsize=8)
def _frames(prior: GaussianMixturePrior, spectrum: NoiseSpectrum | None) -> _Frames:
    prior, analysis, synthesis, _ = whitening(prior, spectrum)
    weights = np.exp(prior.log_weights)
    order = np.argsort(-prior.contrasts)
    rarer = np.cumsum(weights[:, order], axis=1) / weights.sum(
        axis=1, keepdims=True
    )  # such a contrast, or a larger one
    total = np.tensordot(weights @ prior.contrasts, prior.covariances, axes=1)
    common = np.linalg.eigh(total)[1][:, ::-1][:, :SUBSPACE]  # (d, q)
    coarse, turns = np.linalg.eigh(common.T @ prior.covariances @ common)
    padding = ((0, 0), (0, -prior.variances.shape[1] % LANES))
    coarse_padding = ((0, 0), (0, -coarse.shape[1] % UNROLLED))
    return _Frames(
        np.where(rarer > RARE, prior.contrasts[order], 0.0).max(axis=1),
        np.pad(prior.variances, padding),
        _single(np.pad(prior.turns @ analysis, (*padding, (0, 0))).swapaxes(1, 2)),
        _single(np.pad(prior.turns @ synthesis, (*padding, (0, 0)))),
        _single(common.T @ analysis),
        np.pad(coarse, coarse_padding),
        _single(np.pad(turns.swapaxes(1, 2), (*coarse_padding, (0, 0)))),
    )


def _single(values: FloatArray) -> FloatArray:
    return np.ascontiguousarray(values, np.float32)
