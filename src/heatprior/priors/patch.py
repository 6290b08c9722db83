"""The patch prior: a product of Gaussian-mixture experts on orthogonal filter responses, Eq. (5), section 3.1.

f(p, t) = ∏_j ‖k_j‖ psi_j(⟨k_j, p⟩, t) with sigma_j²(t) = sigma_0² + ‖k_j‖² sigma², sigma = sqrt(2t): because the
filters are orthogonal, noise on the patch is independent noise on the responses (Theorem 2). It is a density on the
span of the filters. What the filters do not see (with zero-mean filters: the brightness of the patch) is not modelled:
it has no influence on the density, the posterior leaves it as observed, and samples have none of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray, IntArray
from heatprior.display import as_html, describe_prior
from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.kernels.expert_moments import LOG_2PI
from heatprior.kernels.noise_estimation import LevelTables, patch_log_densities
from heatprior.kernels.patch_averaging import RUN, ResponseTables, average_changes, length_of_runs
from heatprior.kernels.patches import EVERY, Cells, Grid, Progress, edges_of_bands
from heatprior.kernels.threads import for_each
from heatprior.locks import cached_property
from heatprior.noise_value import SAME_LEVEL, Noise
from heatprior.priors.arguments import as_patches, as_sigma, as_sigmas_of, evaluate
from heatprior.priors.experts import Experts, experts_from
from heatprior.priors.filters import FilterBank
from heatprior.priors.protocol import NoiseDirections, NoiseLikelihood, Posterior, with_card
from heatprior.priors.schedules import Schedules, schedules_on
from heatprior.scipy_subset import log_sum_exp, refine
from heatprior.store import PriorFile, write_prior_file

CHUNK = 256  # patches whose responses each thread has in memory at once
CONTRASTS = (1.0, 1 / 16, 1 / 4, 4.0)  # the first is that of the prior itself
CELLS, MAP_CELLS = 1024, 512  # of a table; fewer for maps, which have many tables
SPLINE_STEP = 4  # only every fourth value, or level, is computed
LOG_SIGMA_STEP = 0.03  # between the tables for maps
NEARLY_NONE = 0.005  # noise on a response, over the width of its experts, that is too weak to change it visibly
APART = 96  # most patches in a run where they lie apart: runs are cells, and wide cells cost pieces of an image more
LEVEL_DIGITS = 12  # of a noise level: channels whose levels differ by rounding alone share their tables
TAIL_WIDTHS = 6.0  # beyond the outermost mean that the tables reach; further out everything is nearly straight
WEAK_SPREAD = 0.2  # of the noise: clean responses on average
FEWEST_FILTERS = 12  # at least every twelfth filter is used


@dataclass(frozen=True, eq=False)
class PatchPrior:
    """A product of Gaussian-mixture experts on the responses of orthogonal filters.

    Patches `y` are (..., b·b), float32 or float64, with grey levels scaled to [0, 1]; results have the same type.
    `sigma` is the standard deviation of their noise, one number or one per patch.

    Parameters
    ----------
    filters : FilterBank
        The J filters, on patches of b×b pixels.
    experts : Experts
        The J mixtures on the responses of the filters.
    card : mapping, optional
        Provenance of the prior; stored in its file.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> prior = hp.load("patch7")
    >>> noisy = prior.sample(5, 0.1, rng=np.random.default_rng(0))
    >>> prior.log_prob(noisy, 0.1).shape, prior.score(noisy, 0.1).shape
    ((5,), (5, 49))
    """

    kind: ClassVar[str] = "patch"
    filters: FilterBank
    experts: Experts
    card: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "card", dict(self.card))
        if self.filters.count != self.experts.logits.shape[0]:
            raise InvalidInputError(
                f"{self.filters.count} filters but {self.experts.logits.shape[0]} experts; each filter needs one"
            )

    def __repr__(self) -> str:
        return describe_prior(self, f"{self.filters.count} filters of {self.size}×{self.size} pixels")

    def _repr_html_(self) -> str:
        return as_html(repr(self), self.filters.draw_small(), 3)

    @property
    def patch_shape(self) -> tuple[int, int]:
        """(b, b)."""
        return (self.filters.size, self.filters.size)

    @property
    def size(self) -> int:
        """b, the side of a patch."""
        return self.filters.size

    @property
    def schedules(self) -> Schedules:
        """The schedules of half-quadratic splitting on the card."""
        return schedules_on(self.card)

    @cached_property
    def noise_likelihood(self) -> NoiseLikelihood:
        """The likelihood of a noise level: log-densities of patches of unknown contrast, by tables.

        They are right to about 1e-4. A patch c·X of contrast c under noise has the density f(y / c, sigma / c) / c^J, f
        being the prior: exact and normalised like the prior itself, since the diffusion of a scaled density is the
        scaled diffusion. An image is a mixture of contrasts, Σ_c π_c f_c, whose weights are fitted to it: without them,
        a smooth image seems to have less noise than it has, and a textured one more. Some filters by themselves have an
        exact density too: the other experts integrate to one.
        """
        experts, norms = self.experts, self.filters.norms
        spread = np.sqrt(experts.weights @ experts.means**2 + experts.base_sigma**2) / norms
        unit, fewest = self.filters.matrix / norms[:, None], -(-len(norms) // FEWEST_FILTERS)
        return NoiseLikelihood(
            self.size,
            NoiseDirections(unit, spread, WEAK_SPREAD, fewest),
            contrast_weights=None,
            stride=3,
            most_patches=250_000,
            photograph_error=(4.2 / 255, 0.01),  # fitted to the validation images of BSDS500 at 255 sigma from 5 to 100
            log_densities=self._log_densities,
        )

    def _log_densities(self, image: FloatArray, sigmas: FloatArray, chosen: IntArray, stride: int) -> FloatArray:
        return patch_log_densities(image, self.filters.matrix[chosen], level_tables(self, sigmas, chosen), stride)

    @property
    def parameters(self) -> int:
        """The number of learnt parameters: J b² of the filters and J L of the experts."""
        return self.filters.matrix.size + self.experts.logits.size

    def log_prob(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """log f(y, t) = Σ_j log psi_j(⟨k_j, y⟩, t) + Σ_j log ‖k_j‖ on the span of the filters, Eq. (5): (...).

        The normaliser differs from the paper's, see docs/math.md.
        """
        log_volume = np.log(self.filters.norms).sum()

        def logs(_: int, y: FloatArray, sigma: FloatArray) -> tuple[FloatArray]:
            return (self.experts.log_density(*self._respond(y, sigma)).sum(axis=-1) + log_volume,)

        return evaluate(logs, y, sigma, self.size, CHUNK)[0]

    def score(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """∇ log f(y, t) = Σ_j k_j (log psi_j)'(⟨k_j, y⟩, t): (..., a)."""

        def scores(_: int, y: FloatArray, sigma: FloatArray) -> tuple[FloatArray]:
            return (self.filters.synthesise(self.experts.first_derivative(*self._respond(y, sigma))),)

        return evaluate(scores, y, sigma, self.size, CHUNK)[0]

    def posterior(self, y: FloatArray, sigma: ArrayLike) -> Posterior:
        """Mean (Tweedie, Eq. (3)) and variance, pixel by pixel, of the clean patch given the noisy y: (..., a) each.

        What the filters do not see is known only through y: there the mean is y itself and the variance sigma².
        """
        directions = (self.filters.matrix / self.filters.norms[:, None]) ** 2  # (J, a)
        unseen = np.clip(1.0 - directions.sum(axis=0), 0.0, None)  # (a,)

        def moments(_: int, y: FloatArray, sigma: FloatArray) -> tuple[FloatArray, FloatArray]:
            u, tau = self._respond(y, sigma)
            clean, spread = self.experts.posterior(u, tau)
            variance = (spread / self.filters.norms**2) @ directions + sigma[:, None] ** 2 * unseen
            return y + self.filters.reconstruct(clean - u), variance

        return Posterior(*evaluate(moments, y, sigma, self.size, CHUNK))

    def posterior_sample(self, y: FloatArray, sigma: ArrayLike, *, rng: np.random.Generator) -> FloatArray:
        """An exact draw of the clean patch given each noisy one: (..., a); what no filter sees has its noise."""
        y = as_patches(y, self.filters.size)
        sigmas = as_sigma(sigma, y.shape[:-1])[..., None]
        u = self.filters.analyse(y)
        change = self.experts.posterior_sample(u, sigmas * self.filters.norms, rng=rng) - u
        noise = sigmas * rng.standard_normal(y.shape)
        return np.asarray(y + noise + self.filters.reconstruct(change - self.filters.analyse(noise)))

    def sample(self, count: int, sigma: ArrayLike = 0.0, *, rng: np.random.Generator) -> FloatArray:
        """Exact draws of noisy patches, (count, a): Y = Σ_j k_j Z_j / ‖k_j‖², Z_j from psi_j (Corollary 2.1).

        They lie in the span of the filters: with zero-mean filters they have mean zero; add the brightness you want.
        """
        sigmas = as_sigmas_of(count, sigma)[:, None]
        patches = np.empty((count, self.filters.pixels))
        for start in range(0, count, CHUNK):
            tau = sigmas[start : start + CHUNK] * self.filters.norms
            responses = self.experts.sample(len(tau), tau, rng=rng)
            patches[start : start + CHUNK] = self.filters.reconstruct(responses)
        return patches

    def denoise_step(
        self, image: FloatArray, noise: Noise, progress: Progress | None = None, *, grid: Grid = EVERY
    ) -> FloatArray:
        """Denoise an image (H, W) of float32 by one step of empirical Bayes.

        Where the noise varies, a patch has one level, the root mean square over its pixels. Right to about 1e-5 of full
        scale.
        """
        filters, size = self.filters.matrix, self.filters.size
        if noise.is_constant:
            tables, levels = response_tables(self, float(f"{noise.lowest:.{LEVEL_DIGITS}g}")), None
        else:
            tables = tables_between(self, noise.lowest, noise.highest)

            def levels(start: int, end: int) -> FloatArray:
                return noise.patches(slice(start, end + size - 1), size)

        run = _longest_run(grid)
        return average_changes(image, filters, tables, sigmas=levels, progress=progress, most=run, grid=grid)

    def cells(self, shape: tuple[int, int], grid: Grid = EVERY) -> Cells:
        """Bands of rows, runs of columns."""
        size = self.filters.size
        run = length_of_runs(shape[1], self.filters.matrix.shape, grid, _longest_run(grid))
        columns = np.append(grid.starts(shape[1], size)[::run], shape[1] - size + 1)
        return Cells(edges_of_bands(shape[0], size), columns)

    def facts(self) -> dict[str, object]:
        """A summary of the prior, for printing."""
        norms = self.filters.norms
        facts = {
            "patch size": f"{self.size}×{self.size} pixels",
            "filters": f"{self.filters.count}, of norm {norms.min():.2g} to {norms.max():.2g}",
            "components": f"{self.experts.logits.shape[1]} per filter, over responses of ±{self.experts.reach:g}",
        }
        return with_card(self, **facts)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the prior as one safetensors file, parameters in float32; the file appears only when it is complete."""
        size = self.filters.size
        tensors: dict[str, FloatArray] = {
            "filters": self.filters.matrix.reshape(-1, size, size).astype(np.float32),
            "log_weights": self.experts.log_weights.astype(np.float32),
            "reach": np.array([self.experts.reach], dtype=np.float64),
        }
        write_prior_file(Path(path), PriorFile(self.kind, tensors, self.card))

    @classmethod
    def from_file(cls, contents: PriorFile) -> PatchPrior:
        """The inverse of `save`; refuses filters that are not orthogonal and weights off the simplex."""
        filters, log_weights, reach = contents.arrays("filters", "log_weights", "reach")
        square = filters.ndim == 3 and filters.shape[1] == filters.shape[2]
        if not square or log_weights.ndim != 2 or reach.shape != (1,) or 0 in (filters.size, log_weights.size):
            raise PriorFileError(
                f"filters {filters.shape}, log_weights {log_weights.shape} and reach {reach.shape} "
                "are not (J, b, b), (J, L) and (1,)"
            )
        return cls(FilterBank(filters.reshape(len(filters), -1)), experts_from(log_weights, reach), contents.card)

    def _respond(self, y: FloatArray, sigma: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The responses of patches (n, a), and the noise on them: (n, J) each."""
        return self.filters.analyse(y), sigma[:, None] * self.filters.norms


def level_tables(prior: PatchPrior, sigmas: FloatArray, filters: IntArray) -> LevelTables:
    """log psi_j(u / c, sigma / c) − log c for each sigma, each contrast c and each of the filters."""
    pairs = [(float(sigma), contrast) for sigma in sigmas for contrast in CONTRASTS]
    shape = (len(sigmas), len(CONTRASTS), len(filters))
    key = tuple(int(j) for j in filters)
    lines, half = zip(*for_each(lambda pair: _lines(prior, *pair, key), pairs), strict=True)
    return LevelTables(np.stack(lines).reshape(*shape, CELLS, 2), np.stack(half).reshape(shape))


@lru_cache(maxsize=1024)  # 64 KB each for 8 filters; images of similar noise share most
def _lines(prior: PatchPrior, sigma: float, contrast: float, filters: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """The lines (J, cells, 2) of one noise level and contrast, and how far the table reaches, (J,).

    By numpy: so few values cost less than it would take to compile the kernel for them.
    """
    experts, tau = prior.experts, prior.filters.norms[list(filters)] * sigma / contrast
    reach = experts.reach + TAIL_WIDTHS * (experts.base_sigma + tau)  # of u / c
    q = np.linspace(-1.0, 1.0, CELLS // SPLINE_STEP + 1)
    values = np.empty((len(q), len(filters)))
    widths = np.hypot(experts.base_sigma, tau)
    for values_of, j, far, width in zip(values.T, filters, reach, widths, strict=True):
        distances = np.subtract.outer(q * (far / width), experts.means / width)
        values_of[:] = log_sum_exp(experts.log_weights[j] - 0.5 * np.square(distances), axis=1)
    values -= np.log(contrast * widths) + 0.5 * LOG_2PI
    return lines_through(refine(values, SPLINE_STEP).T), contrast * reach


# Empirical Bayes with patch averaging (EB-PA, section 4.3): the posterior mean, Eq. (3), acts on each response by
# itself, so for one noise level it is tabulated once for each expert.


def _longest_run(grid: Grid) -> int:
    return RUN if grid.stride == 1 else APART


@lru_cache(maxsize=1)  # for the steps of one image, which share a range
def tables_between(prior: PatchPrior, lowest: float, highest: float) -> ResponseTables:
    """Tables for all noise levels from lowest to highest."""
    indistinct = NEARLY_NONE * prior.experts.base_sigma / float(prior.filters.norms.max())
    lowest, highest = max(lowest, indistinct), max(highest, indistinct * SAME_LEVEL)
    count = 4 + int(np.log(highest / lowest) / (SPLINE_STEP * LOG_SIGMA_STEP))
    exact = np.linspace(np.log(lowest), np.log(highest), count)
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
    reach, growth = _reach(prior)
    responses = np.linspace(-1.0, 1.0, cells + 1)[:, None] * (reach + growth * sigma)  # (nodes, J)
    towards = experts.moments(responses, tau, want_log_density=False, want_variance=False).mean
    return (sigma**2 / (experts.base_sigma**2 + tau**2) * (towards - responses)).T


def _tables(prior: PatchPrior, by_expert: Iterable[FloatArray], lowest: float, ratio: float) -> ResponseTables:
    """Straight lines through the changes (S, cells + 1) of each expert, where cells meet; one expert at a time."""
    lines = [lines_through(_between_chord_and_curve(changes, -1)) for changes in by_expert]
    return ResponseTables(np.stack(lines), *_reach(prior), lowest, ratio)


def lines_through(nodes: FloatArray) -> FloatArray:
    """Value in the middle of the table and slope of each cell, (S, cells, 2) in float32."""
    cells = nodes.shape[-1] - 1
    slopes = np.diff(nodes)
    return np.stack([nodes[..., :-1] - slopes * (np.arange(cells) - cells / 2), slopes], axis=-1, dtype=np.float32)


def _between_chord_and_curve(values: FloatArray, axis: int) -> FloatArray:
    """Nodes moved so that straight lines between them err as much to one side as to the other: half as much."""
    bend = np.diff(values, n=2, axis=axis)
    return values - np.concatenate([bend.take([0], axis), bend, bend.take([-1], axis)], axis) / 16.0


def _reach(prior: PatchPrior) -> tuple[float, FloatArray]:
    """The reach of a table without noise, and how much more it is per unit of noise, (J,)."""
    return prior.experts.reach + TAIL_WIDTHS * prior.experts.base_sigma, TAIL_WIDTHS * prior.filters.norms
