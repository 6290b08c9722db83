"""What noise of a given covariance was in noisy patches: the expectations by which EM finds that covariance.

Patches y = x + n of level l have noise n of covariance v_l C. A component (k, g) of the mixture explains y with the
probability P(k, g | y), and if it does, the noise has a Gaussian posterior. So the sums over the patches of a level,

    M_l = Σ_y E[n nᵀ | y],    n_kg = Σ_y P(k, g | y),

are exact. In coordinates in which C is the identity, the axes of C^(−½) Σ_k C^(−½) serve every level and contrast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from heatprior.arrays import FloatArray
from heatprior.kernels.noisy_gaussians import LOG_2PI
from heatprior.kernels.threads import for_each, products_in_one_thread
from heatprior.priors.gaussian_mixture import GaussianMixturePrior

CHUNK = 500  # patches that one thread does at a time
LEAST_PART = 1e-3  # of a patch that a component has to explain for it to count


class NoiseStatistics(NamedTuple):
    """Sums over patches; covariances are in the coordinates of the cosine basis without its constant."""

    moments: FloatArray  # M_l (L, d, d)
    weights: FloatArray  # n_kg (K, G)
    log_likelihood: float


class _Level(NamedTuple):
    """What the components are in noise of variance v C."""

    constants: FloatArray  # (K, 1, G)
    precisions: FloatArray  # −1 / 2 variance, (K, d, G)
    parts: FloatArray  # of a response that are noise, (K, G, d)
    spread: FloatArray  # posterior variance of the noise, (K, G, d), in float64


def expected_noise(
    prior: GaussianMixturePrior,
    log_weights: FloatArray,
    covariance: FloatArray,
    levels: Sequence[FloatArray],
    variances: FloatArray,
    *,
    least_part: float = LEAST_PART,
) -> NoiseStatistics:
    """Of patches (n_l, d) of each level, as coordinates; computed in their type.

    `log_weights` (K, G) stand in place of those of the prior, `covariance` C is (d, d), `variances` v_l are (L,).
    """
    with products_in_one_thread():  # these matrices are too small to share
        values, vectors = np.linalg.eigh(covariance)
        whiten, colour = (vectors * values**-0.5) @ vectors.T, (vectors * values**0.5) @ vectors.T
        signal, axes = np.linalg.eigh(whiten @ prior.covariances @ whiten)
    signal = np.maximum(signal, 0.0)
    tables = [_level(prior, log_weights, signal, float(v), levels[0].dtype) for v in variances]
    turns = axes.astype(levels[0].dtype)
    pieces = [(level, rows[i : i + CHUNK]) for level, rows in enumerate(levels) for i in range(0, len(rows), CHUNK)]

    def work(piece: tuple[int, FloatArray]) -> tuple[FloatArray, FloatArray, float]:
        level, rows = piece
        return _sums(tables[level], turns, rows @ whiten.astype(rows.dtype), least_part)

    moments = np.zeros((len(levels), *covariance.shape))
    counts = np.zeros((len(levels), *log_weights.shape))
    explained = -0.5 * float(np.log(values).sum()) * sum(len(rows) for rows in levels)
    for (level, _), (moment, count, logarithm) in zip(pieces, for_each(work, pieces), strict=True):
        moments[level] += moment
        counts[level] += count
        explained += logarithm
    for level, table in enumerate(tables):
        own = np.einsum("kg,kgd->kd", counts[level], table.spread)
        moments[level] += ((axes * own[:, None, :]) @ axes.swapaxes(1, 2)).sum(axis=0)
    return NoiseStatistics(colour @ moments @ colour, counts.sum(axis=0), explained)


def _level(
    prior: GaussianMixturePrior,
    log_weights: FloatArray,
    signal: FloatArray,
    variance: float,
    dtype: DTypeLike,
) -> _Level:
    total = prior.contrasts[:, None] * signal[:, None, :] + variance  # (K, G, d)
    constants = log_weights - 0.5 * (np.log(total) + LOG_2PI).sum(axis=-1)
    noise = variance / total
    return _Level(
        constants[:, None].astype(dtype),
        np.ascontiguousarray((-0.5 / total).swapaxes(1, 2), dtype),
        noise.astype(dtype),
        variance * (1.0 - noise),
    )


def _sums(
    table: _Level, turns: FloatArray, rows: FloatArray, least_part: float
) -> tuple[FloatArray, FloatArray, float]:
    """M without the posterior variances, which depend on no patch; n_kg; and the log-likelihood."""
    responses = rows @ turns  # (K, n, d)
    logs = np.square(responses) @ table.precisions + table.constants  # (K, n, G)
    peaks = logs.max(axis=(0, 2))
    parts = np.exp(logs - peaks[:, None])
    totals = parts.sum(axis=(0, 2))
    parts /= totals[:, None]
    parts[parts < least_part] = 0.0
    parts /= parts.sum(axis=(0, 2))[:, None]
    moments = np.zeros((rows.shape[1], rows.shape[1]))
    for k, g in zip(*np.nonzero(parts.any(axis=1)), strict=True):
        some = np.nonzero(parts[k, :, g])[0]
        noise = responses[k, some] * table.parts[k, g] * np.sqrt(parts[k, some, g, None])
        moments += turns[k] @ (noise.T @ noise) @ turns[k].T
    explained = float((peaks.astype(np.float64) + np.log(totals)).sum())
    return moments, parts.sum(axis=1, dtype=np.float64), explained
