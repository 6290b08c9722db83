"""The likelihood of a noise level under a patch prior: log-densities of patches of unknown contrast, level by level.

A patch c·X of contrast c under noise has the density f(y / c, sigma / c) / c^J, f being the prior: exact and normalised
like the prior itself, since the diffusion of a scaled density is the scaled diffusion. An image is a mixture of
contrasts, Σ_c π_c f_c, whose weights are fitted to it. Without them, a smooth image seems to have less noise than it
has, and a textured one more. Some filters by themselves have an exact density too: the other experts integrate to one.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.noise_likelihood import LevelTables, patch_log_densities
from heatprior.kernels.threads import for_each
from heatprior.priors.experts import Experts
from heatprior.priors.protocol import NoiseDirections
from heatprior.splines import refined

if TYPE_CHECKING:
    from heatprior.priors.patch import PatchPrior

CONTRASTS = (1.0, 1 / 16, 1 / 4, 4.0)  # the first is that of the prior itself
CELLS = 1024
SPLINE_STEP = 4  # only every fourth value is computed
TAIL_WIDTHS = 6.0  # beyond the outermost mean that the tables reach; further out a line is good enough
WEAK_SPREAD = 0.2  # of the noise: clean responses on average
FEWEST_FILTERS = 12  # at least every twelfth filter is used


class PatchLikelihood:
    """A `NoiseLikelihood`. The prior does not know how frequent contrasts are; blocks of patches share theirs."""

    contrast_weights = None
    stride = 3
    most_patches = 250_000
    photograph_error = (4.2 / 255, 0.01)  # fitted to the validation images of BSDS500 at 255 sigma from 5 to 100

    def __init__(self, prior: PatchPrior) -> None:
        self._prior = prior
        self.size = prior.patch_shape[0]

    @cached_property
    def directions(self) -> NoiseDirections:
        """Those of the filters."""
        experts, norms = self._prior.experts, self._prior.filters.norms
        spread = np.sqrt(experts.weights @ experts.means**2 + experts.base_sigma**2) / norms
        unit = self._prior.filters.matrix / norms[:, None]
        return NoiseDirections(unit, spread, WEAK_SPREAD, -(-len(norms) // FEWEST_FILTERS))

    def block_side(self, wanted: int) -> int:
        """As wanted: one patch carries little information about its contrast."""
        return wanted

    def log_densities(self, image: FloatArray, sigmas: FloatArray, chosen: IntArray, stride: int) -> FloatArray:
        """By tables, right to about 1e-4: (S, C, rows, columns)."""
        tables = level_tables(self._prior, sigmas, chosen)
        return patch_log_densities(image, self._prior.filters.matrix[chosen], tables, stride)


def level_tables(prior: PatchPrior, sigmas: FloatArray, filters: IntArray) -> LevelTables:
    """log psi_j(u / c, sigma / c) − log c for each sigma, each contrast c and each of the filters."""
    pairs = [(float(sigma), contrast) for sigma in sigmas for contrast in CONTRASTS]
    shape = (len(sigmas), len(CONTRASTS), len(filters))
    key = tuple(int(j) for j in filters)
    lines, half = zip(*for_each(lambda pair: _lines(prior, *pair, key), pairs), strict=True)
    return LevelTables(np.stack(lines).reshape(*shape, CELLS, 2), np.stack(half).reshape(shape))


@lru_cache(maxsize=1024)  # 64 KB each for 8 filters; images of similar noise share most
def _lines(prior: PatchPrior, sigma: float, contrast: float, filters: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """The lines (J, cells, 2) of one noise level and contrast, and how far the table reaches, (J,)."""
    chosen = list(filters)
    experts = Experts(prior.experts.logits[chosen], prior.experts.reach)
    tau = prior.filters.norms[chosen] * sigma / contrast
    reach = experts.reach + TAIL_WIDTHS * (experts.base_sigma + tau)  # of u / c
    q = np.linspace(-1.0, 1.0, CELLS // SPLINE_STEP + 1)
    values = experts.log_density(q[:, None] * reach, tau) - np.log(contrast)
    values = refined(values, SPLINE_STEP).T  # (J, cells + 1)
    slopes = np.diff(values)
    starts = values[:, :-1] - slopes * (np.arange(CELLS) - CELLS / 2)
    return np.stack([starts, slopes], axis=-1, dtype=np.float32), contrast * reach
