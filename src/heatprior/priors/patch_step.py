"""Empirical Bayes with patch averaging (EB-PA, section 4.3): one step that denoises a whole image with a patch prior.

Every patch is replaced by its posterior mean, Eq. (3), and every pixel becomes the mean over the patches that hold it.
The posterior mean acts on each response by itself, so for one noise level it is tabulated once for each expert.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.patch_averaging import RUN, ResponseTables, average_changes, length_of_runs
from heatprior.kernels.patches import EVERY, Cells, Grid, Progress, edges_of_bands
from heatprior.kernels.threads import for_each
from heatprior.noise_value import SAME_LEVEL, Noise
from heatprior.scipy_subset import refine

if TYPE_CHECKING:
    from heatprior.priors.patch import PatchPrior

CELLS, MAP_CELLS = 1024, 512  # of a table; fewer for maps, which have many tables
SPLINE_STEP = 4  # only every fourth level is computed: in log sigma the changes are smooth
LOG_SIGMA_STEP = 0.03  # between the tables for maps
NEARLY_NONE = 0.005  # noise on a response, over the width of its experts, that is too weak to change it visibly
APART = 96  # most patches in a run where they lie apart: runs are cells, and wide cells cost pieces of an image more
LEVEL_DIGITS = 12  # of a noise level: channels whose levels differ by rounding alone share their tables
TAIL_WIDTHS = 6.0  # beyond the outermost mean that the tables reach; further out the posterior mean is straight


def step_of_patch_prior(
    prior: PatchPrior, image: FloatArray, noise: Noise, progress: Progress | None = None, *, grid: Grid = EVERY
) -> FloatArray:
    """Denoise an image (H, W) of float32 by one step of empirical Bayes.

    Where the noise varies, a patch has one level, the root mean square over its pixels. Right to about 1e-5 of full
    scale.
    """
    filters, size = prior.filters.matrix, prior.filters.size
    if noise.is_constant:
        tables = response_tables(prior, float(f"{noise.lowest:.{LEVEL_DIGITS}g}"))
        return average_changes(image, filters, tables, progress=progress, most=_longest_run(grid), grid=grid)

    def sigmas(start: int, end: int) -> FloatArray:
        return noise.patches(slice(start, end + size - 1), size)

    tables = tables_between(prior, noise.lowest, noise.highest)
    return average_changes(image, filters, tables, sigmas=sigmas, progress=progress, most=_longest_run(grid), grid=grid)


def cells_of_patch_prior(prior: PatchPrior, shape: tuple[int, int], grid: Grid = EVERY) -> Cells:
    """Bands of rows, runs of columns."""
    size = prior.filters.size
    run = length_of_runs(shape[1], prior.filters.matrix.shape, grid, _longest_run(grid))
    columns = np.append(grid.starts(shape[1], size)[::run], shape[1] - size + 1)
    return Cells(edges_of_bands(shape[0], size), columns)


def _longest_run(grid: Grid) -> int:
    return RUN if grid.stride == 1 else APART


@lru_cache(maxsize=1)  # for the steps of one image, which share a range
def tables_between(prior: PatchPrior, lowest: float, highest: float) -> ResponseTables:
    """Tables for all noise levels from lowest to highest."""
    indistinct = NEARLY_NONE * prior.experts.base_sigma / float(prior.filters.norms.max())
    lowest, highest = max(lowest, indistinct), max(highest, indistinct * SAME_LEVEL)
    exact = np.linspace(
        np.log(lowest), np.log(highest), 4 + int(np.log(highest / lowest) / (SPLINE_STEP * LOG_SIGMA_STEP))
    )
    at_exact = np.stack(for_each(lambda sigma: _changes(prior, sigma, MAP_CELLS), list(np.exp(exact))), axis=1)
    by_expert = (_between_chord_and_curve(refine(changes, SPLINE_STEP), 0) for changes in at_exact)
    return _tables(prior, by_expert, lowest, float(np.exp((exact[1] - exact[0]) / SPLINE_STEP)))


@lru_cache(maxsize=16)  # for images and channels that share a noise level, and the levels of their splitting
def response_tables(prior: PatchPrior, sigma: float) -> ResponseTables:
    """Tables for one noise level."""
    return _tables(prior, _changes(prior, sigma, CELLS)[:, None], sigma, 2.0)


def _changes(prior: PatchPrior, sigma: float, cells: int) -> FloatArray:
    """For each expert the change of a response by its posterior mean, over ‖k_j‖², where cells meet: (J, cells + 1)."""
    experts, tau = prior.experts, prior.filters.norms * sigma
    responses = np.linspace(-1.0, 1.0, cells + 1)[:, None] * (_reach(prior) + _growth(prior) * sigma)  # (nodes, J)
    towards = experts.moments(responses, tau, want_log_density=False, want_variance=False).mean
    return (sigma**2 / (experts.base_sigma**2 + tau**2) * (towards - responses)).T


def _tables(prior: PatchPrior, by_expert: Iterable[FloatArray], lowest: float, ratio: float) -> ResponseTables:
    """Straight lines through the changes (S, cells + 1) of each expert, where cells meet; one expert at a time."""
    lines = [lines_through(_between_chord_and_curve(changes, -1)) for changes in by_expert]
    return ResponseTables(np.stack(lines), _reach(prior), _growth(prior), lowest, ratio)


def lines_through(nodes: FloatArray) -> FloatArray:
    """Value in the middle of the table and slope of each cell, (S, cells, 2) in float32."""
    cells = nodes.shape[-1] - 1
    slopes = np.diff(nodes)
    return np.stack([nodes[..., :-1] - slopes * (np.arange(cells) - cells / 2), slopes], axis=-1, dtype=np.float32)


def _between_chord_and_curve(values: FloatArray, axis: int) -> FloatArray:
    """Nodes moved so that straight lines between them err as much to one side as to the other: half as much."""
    bend = np.diff(values, n=2, axis=axis)
    return values - np.concatenate([bend.take([0], axis), bend, bend.take([-1], axis)], axis) / 16.0


def _reach(prior: PatchPrior) -> float:
    """The reach of a table without noise."""
    return prior.experts.reach + TAIL_WIDTHS * prior.experts.base_sigma


def _growth(prior: PatchPrior) -> FloatArray:
    """The additional reach of a table per unit of noise, (J,)."""
    return TAIL_WIDTHS * prior.filters.norms
