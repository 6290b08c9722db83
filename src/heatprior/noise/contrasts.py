"""Patches of unknown contrast: the density that noise is estimated with, at many noise levels at once.

A patch c·X of contrast c under noise has the density f(y / c, sigma / c) / c^J, f being the prior: exact and normalised
like the prior itself, since the diffusion of a scaled density is the scaled diffusion. An image is a mixture of
contrasts, Σ_c π_c f_c, whose weights are fitted to it. Without them, a smooth image seems to have less noise than it
has, and a textured one more.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.interpolate import CubicSpline

from heatprior.arrays import FloatArray, IntArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.noise_levels import LevelTables
from heatprior.kernels.threads import for_each
from heatprior.priors.experts import Experts
from heatprior.priors.patch import PatchPrior

CONTRASTS = (1.0, 1 / 16, 1 / 4, 4.0)  # the first is that of the prior itself
OCTAVES = 0.0004 * 2.0 ** np.arange(14)  # noise levels looked at first: from a tenth of a grey level of 8 bits on
CELLS = 1024
SPLINE_STEP = 4  # only every fourth value is computed
BEYOND = 6.0  # widths beyond the outermost mean that the tables reach; further out a line is good enough


def check_in_range(log_sigma: float) -> None:
    """Refuse a peak at the top of the range: there the likelihood still rises."""
    if log_sigma > np.log(OCTAVES[-1]) - 1e-6:
        raise InvalidInputError("the noise is beyond full scale; give `white`, the value of full scale, or sigma")


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
    reach = experts.reach + BEYOND * (experts.base_sigma + tau)  # of u / c
    q = np.linspace(-1.0, 1.0, CELLS + 1)
    values = experts.log_density(q[::SPLINE_STEP, None] * reach, tau) - np.log(contrast)
    values = CubicSpline(q[::SPLINE_STEP], values)(q).T  # (J, cells + 1)
    slopes = np.diff(values)
    starts = values[:, :-1] - slopes * (np.arange(CELLS) - CELLS / 2)
    return np.stack([starts, slopes], axis=-1, dtype=np.float32), contrast * reach
