"""Empirical Bayes with patch averaging for mixtures of Gaussians: one fast step of a whole image.

As `PatchPrior.denoise_step`. The posterior mean of a patch is over the one or few shapes that explain it best,
found with the short cuts of kernels/shapes.py, and patches count in the average as `StepSettings` says. Where noise is
correlated, patches are whitened on the way in: the axes for analysis then differ from those for synthesis, and nothing
else does.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.errors import PriorFileError
from heatprior.kernels.candidates import CANDIDATES, UNROLLED, PrincipalAxes
from heatprior.kernels.patches import EVERY, Cells, Grid, Progress, average_by_bands, edges_of_bands
from heatprior.kernels.shapes import LANES, ShapeTables, add_changes
from heatprior.noise_value import Noise, NoiseSpectrum

if TYPE_CHECKING:
    from heatprior.priors.gaussian_mixture import GaussianMixturePrior

NEGLIGIBLE = 0.03  # variance of an axis, over that of the noise, below which it is taken for noise alone
RARE = 1e-3  # part of the patches of a shape whose contrast may be larger than the one by which axes are chosen
SUBSPACE = 24  # dimensions in which all shapes are compared
COARSE_AXES = 16  # of a shape, there
COMPARED = 32  # axes of a shape along which candidates are compared
LOG_SIGMA_STEP = 0.03  # between the tables for maps
TILE = 512  # columns of patches that are looked at together
LEAST_SIGMA = 1e-5  # of a table; less noise than this changes nothing visibly
CARD_ENTRY = "step"
MOST_CANDIDATES = 1000
LEAST_RATIO = 1e-4  # of two factors: single precision must hold their products, and sums of them


def step_of_mixture(
    prior: GaussianMixturePrior,
    image: FloatArray,
    noise: Noise,
    progress: Progress | None = None,
    *,
    candidates: int | None = None,
    negligible: float = NEGLIGIBLE,
    compared: int = COMPARED,
    grid: Grid = EVERY,
    guide: FloatArray | None = None,
) -> FloatArray:
    """Denoise an image (H, W) of float32 by one step of empirical Bayes, beside its brightness if it is a colour.

    There are as many `candidates` as the card says, unless given. With all shapes as `candidates`, nothing `negligible`
    and all axes `compared`, the only short cut left is that to the likeliest shapes.
    """
    size = prior.size
    lowest, highest = max(noise.lowest, LEAST_SIGMA), max(noise.highest, LEAST_SIGMA)
    steps = int(np.ceil(np.log(highest / lowest) / LOG_SIGMA_STEP))
    # in single precision, as the tables are: the differences of a colour have the same level but for rounding
    sigmas = tuple(np.geomspace(lowest, highest, steps + 1).astype(np.float32).tolist())
    tables = shape_tables(prior, sigmas, negligible, noise.spectrum, compared)
    constant = np.zeros((1, 1), np.int32)
    handed_on = min(candidates or prior.step_settings.candidates, len(prior.covariances))

    all_rows, all_columns = grid.places(image.shape, size)
    edges = _edges_of_tiles(image.shape[1], size)
    tiles = [all_columns[(all_columns >= left) & (all_columns < right)] for left, right in pairwise(edges)]

    def sum_of_changes(band: range) -> FloatArray:
        start, end = band.start, band.stop
        in_band = all_rows[(all_rows >= start) & (all_rows < end)] - start
        levels = constant
        if not noise.is_constant:
            sigma = noise.patches(slice(start, end + size - 1), size)[in_band]
            places = np.log(np.maximum(sigma, lowest) / lowest) * (steps / max(np.log(highest / lowest), 1e-9))
            levels = np.clip(np.rint(places), 0, steps).astype(np.int32)
        rows = np.array(image[start : end + size - 1], np.float32, order="C")  # writable: the loops are compiled once
        total, beside = np.zeros((2, *rows.shape), np.float32), None if guide is None else guide[start : end + size - 1]
        for in_tile in tiles if len(in_band) else []:
            own = levels if levels is constant else np.ascontiguousarray(levels[:, in_tile])
            add_changes(rows, size, (in_band, in_tile), own, tables, handed_on, total, beside)
        return total

    # as many rows of patches in a band, however far apart: products of few patches are slow
    return average_by_bands(image, size, sum_of_changes, progress, grid=grid, stretch=grid.stride)


def cells_of_mixture(prior: GaussianMixturePrior, shape: tuple[int, int], grid: Grid = EVERY) -> Cells:
    """Bands of rows, higher if patches lie apart, and tiles of columns."""
    return Cells(edges_of_bands(shape[0], prior.size, grid.stride), _edges_of_tiles(shape[1], prior.size))


def _edges_of_tiles(width: int, size: int) -> IntArray:
    """Columns of patches at which the tiles of an image begin, and the end of the last, up to a quarter wider."""
    end = width - size + 1
    return np.append(np.arange(0, max(end - TILE // 4, 1), TILE), end)


@lru_cache(maxsize=8)  # the steps at all scales of a plane: 4 MB each, and more for maps, with a level for every 3 %
def shape_tables(
    prior: GaussianMixturePrior,
    sigmas: tuple[float, ...],
    negligible: float = NEGLIGIBLE,
    spectrum: NoiseSpectrum | None = None,
    compared: int = COMPARED,
) -> ShapeTables:
    """For these noise levels, of noise of this spectrum. Kept for the next image, if it has the same noise."""
    frames = _frames(prior, spectrum, compared)
    noise = np.square(sigmas)[:, None]  # (S, 1)
    lengths = (frames.contrast[:, None] * frames.variances > negligible * noise.min()).sum(axis=1).clip(1)
    padded = -(-lengths // LANES) * LANES
    contrasts, log_weights = prior.contrasts[:, None], prior.log_weights
    every = contrasts * _with_zeros(frames.variances, LANES)[:, None]  # (K, G, m)
    signal = np.concatenate([own[:, :count].ravel() for own, count in zip(every, padded, strict=True)])
    noises = noise[..., None, None]
    settings = prior.step_settings
    return ShapeTables(
        np.concatenate([[0], np.cumsum(padded)]),
        _join(frames.analysis, [(slice(None), slice(count)) for count in padded]),
        _join(frames.synthesis, [(slice(count),) for count in padded]),
        _single(0.5 / noise - 0.5 / (signal + noise)),
        _single(signal / (signal + noise)),
        _single(log_weights - 0.5 * np.log1p(every[..., : padded.max()] / noises).sum(axis=-1)),
        _principal(prior, noise, frames.leading_axes, frames.variances, compared),
        frames.leading_columns,
        frames.shared,
        _principal(prior, noise, frames.coarse_axes, frames.coarse_variances, COARSE_AXES),
        frames.whitening,
        _single(settings.window),
        _single(settings.confidences),
        _single(1.0 / noise[:, 0]),
        settings.rival,
    )


def _principal(
    prior: GaussianMixturePrior, noise: FloatArray, axes: FloatArray, variances: FloatArray, most: int
) -> PrincipalAxes:
    """The shapes along the first axes of each (K, m', a), of falling variances (K, d), in noise (S, 1)."""
    dimension = variances.shape[1]
    kept = min(most, dimension)
    contrasts, noises = prior.contrasts[:, None], noise[..., None, None]  # (G, 1), (S, 1, 1, 1)
    signal = contrasts * variances[:, None, :kept]  # (K, G, kept)
    left_out = contrasts[:, 0] * variances[:, kept:].sum(axis=1, keepdims=True) / max(dimension - kept, 1)  # (K, G)
    rest = 0.5 / noise[..., None] - 0.5 / (left_out + noise[..., None])  # (S, K, G)
    gains = np.zeros((*rest.shape, axes.shape[1]), np.float32)
    gains[..., :kept] = 0.5 / noises - 0.5 / (signal + noises) - rest[..., None]
    volumes = np.log1p(signal / noises).sum(axis=-1) + (dimension - kept) * np.log1p(left_out / noise[..., None])
    return PrincipalAxes(axes, gains, _single(rest), _single(prior.log_weights - 0.5 * volumes))


class _Frames(NamedTuple):
    """The part of the tables that all noise levels share; d' is d, padded to a multiple of LANES."""

    contrast: FloatArray  # hardly a patch of a shape has a larger one, (K,)
    variances: FloatArray  # falling, (K, d)
    analysis: FloatArray  # axes as columns, (K, a, d'), in float32 like all that follows but variances
    synthesis: FloatArray  # axes as rows, (K, d', a)
    leading_axes: FloatArray  # of analysis, as rows, (K, m', a), padded to a multiple of UNROLLED
    leading_columns: FloatArray  # the same as columns, (K, a, m')
    shared: FloatArray  # the subspace, (q, a)
    coarse_variances: FloatArray  # falling, (K, q)
    coarse_axes: FloatArray  # as rows, (K, m', q), padded likewise
    whitening: FloatArray  # (d, a), or (0, a) in white noise


@lru_cache(maxsize=8)
def _frames(prior: GaussianMixturePrior, spectrum: NoiseSpectrum | None, compared: int) -> _Frames:
    prior, analysis, synthesis = whitening(prior, spectrum)
    weights = np.exp(prior.log_weights)
    order = np.argsort(-prior.contrasts)
    rarer = np.cumsum(weights[:, order], axis=1) / weights.sum(axis=1, keepdims=True)  # this contrast, or a larger one
    total = np.tensordot(weights @ prior.contrasts, prior.covariances, axes=1)
    common = np.linalg.eigh(total)[1][:, ::-1][:, :SUBSPACE]  # (d, q)
    coarse, turns = (found[..., ::-1] for found in np.linalg.eigh(common.T @ prior.covariances @ common))
    axes = prior.turns @ analysis  # (K, d, a)
    leading = _single(_with_zeros(axes[:, :compared], UNROLLED))
    return _Frames(
        np.where(rarer > RARE, prior.contrasts[order], 0.0).max(axis=1),
        prior.variances,
        _single(_with_zeros(axes, LANES).swapaxes(1, 2)),
        _single(_with_zeros(prior.turns @ synthesis, LANES)),
        leading,
        _single(leading.swapaxes(1, 2)),
        _single(common.T @ analysis),
        coarse,
        _single(_with_zeros(turns.swapaxes(1, 2)[:, :COARSE_AXES], UNROLLED)),
        _single(analysis if spectrum is not None else analysis[:0]),
    )


def _join(axes: FloatArray, parts: list[tuple[slice, ...]]) -> FloatArray:
    """A part of the axes of each shape (K, …), one shape after the other; no copy where the parts are the whole."""
    if all(own[part].size == own.size for own, part in zip(axes, parts, strict=True)):
        return axes.reshape(-1)
    return np.concatenate([own[part].reshape(-1) for own, part in zip(axes, parts, strict=True)])


def _with_zeros(values: FloatArray, unit: int) -> FloatArray:
    """Padded along the second axis to a multiple of a unit."""
    return np.pad(values, [(0, 0), (0, -values.shape[1] % unit)] + [(0, 0)] * (values.ndim - 2))


def _single(values: FloatArray) -> FloatArray:
    return np.ascontiguousarray(values, np.float32)


class Whitening(NamedTuple):
    """A mixture in coordinates in which correlated noise is white, and the way there and back.

    f(p, t) = Σ_k Σ_g π_kg G(p; 0, c_g Σ_k + sigma² C) is exact for any C, and in coordinates p' = C^(−½) p a mixture
    again, of shapes C^(−½) Σ_k C^(−½) in white noise. C is the noise of patches without their brightness.
    """

    mixture: GaussianMixturePrior
    analysis: FloatArray  # (d, a): C^(−½) of the coordinates of a patch in the cosine basis
    synthesis: FloatArray  # (d, a): C^(½), its pseudo-inverse transposed


@lru_cache(maxsize=16)  # for the scales and channels of one image
def whitening(prior: GaussianMixturePrior, spectrum: NoiseSpectrum | None) -> Whitening:
    """The mixture in noise of this spectrum, whitened; None is white noise, for which nothing changes."""
    if spectrum is None:
        return Whitening(prior, prior.basis, prior.basis)
    values, vectors = np.linalg.eigh(prior.basis @ spectrum.covariance(prior.size) @ prior.basis.T)
    inverse, forth = (vectors * values**-0.5) @ vectors.T, (vectors * values**0.5) @ vectors.T
    covariances = inverse @ prior.covariances @ inverse
    mixture = type(prior)(covariances, prior.log_weights, prior.contrasts)
    return Whitening(mixture, inverse @ prior.basis, forth @ prior.basis)


class StepSettings(NamedTuple):
    """How a mixture's step takes patches and averages them: learnt, where a mixture was tuned for the denoised image.

    Its card then has, as `"step"`,

    - `"window"`, (b, b): how much each pixel of a patch counts where patches overlap;
    - `"confidences"`, (K, G): how much a patch counts that this component explains; of several the mean by probability;
    - `"rival"`: how likely another shape must be, the best being 1, to take part in the posterior mean of a patch;
    - `"candidates"`: how many shapes a patch on the grid hands on to its neighbours (kernels/candidates.py).

    Without the entry all count alike, and the best shape stands alone. None of this affects the density. Of window and
    of confidences only ratios matter, so the largest of each is one.
    """

    window: FloatArray  # (a,)
    confidences: FloatArray  # (K, G)
    rival: float = 1.0
    candidates: int = CANDIDATES

    @property
    def parameters(self) -> int:
        """The number of learnt parameters, if any."""
        return int(sum(x.size for x in (self.window, self.confidences) if (x != x.flat[0]).any()))


def step_settings_on(card: Mapping[str, Any], size: int, components: tuple[int, ...]) -> StepSettings:
    """The settings on a prior's card, for patches of size×size pixels and components (K, G)."""
    entry = card.get(CARD_ENTRY)
    if entry is None:
        return StepSettings(np.ones(size**2), np.ones(components))
    where = f'"{CARD_ENTRY}" of the prior\'s card'
    try:
        window, confidences = (np.array(entry[key], np.float64) for key in ("window", "confidences"))
        rival, candidates = float(entry["rival"]), entry["candidates"]
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise PriorFileError(f"{where} needs {', '.join(StepSettings._fields)}: {error}") from error
    if window.shape != (size, size) or confidences.shape != components:
        raise PriorFileError(
            f"{where} has a window {window.shape} and confidences {confidences.shape}; "
            f"expected {(size, size)} and {components}"
        )
    for factors in (window, confidences):
        if not (np.isfinite(factors).all() and factors.min() > LEAST_RATIO * factors.max()):
            raise PriorFileError(f"{where}: factors must be above 0, and none beyond {LEAST_RATIO:g} of another")
    if not 0.0 < rival <= 1.0 or type(candidates) is not int or not 1 <= candidates <= MOST_CANDIDATES:
        raise PriorFileError(
            f"{where}: rival must be above 0 and at most 1, candidates a whole number of 1 to {MOST_CANDIDATES}"
        )
    return StepSettings((window / window.max()).reshape(-1), confidences / confidences.max(), rival, candidates)
