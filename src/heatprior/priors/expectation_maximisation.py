"""EM (expectation–maximisation) for mixtures of Gaussians with contrasts, from clean patches or noisy ones.

Every component (k, g) explains a patch y, of noise sigma, with probability P(k, g | y), and if it does, the clean patch
x has a Gaussian posterior. The sums n_kg = Σ_y P(k, g | y) and M_k = Σ_y Σ_g P(k, g | y) E[x xᵀ | y, k, g] / c_g are
all that is needed: π_kg ∝ n_kg and Σ_k = M_k / Σ_g n_kg. The noise is part of the model: covariances are of clean
patches.
"""

from __future__ import annotations

from operator import add
from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.noisy_gaussians import LOG_2PI
from heatprior.kernels.threads import for_each
from heatprior.priors.arguments import as_patches
from heatprior.priors.gaussian_mixture import GaussianMixturePrior

CHUNK = 2000  # patches that one thread does at a time
LEAST_PART = 1e-3  # of a patch that a component has to explain for it to count; costs nothing measurable
LEAST_KEEP = 0.01  # of a response; axes that keep less say nothing about their variance, which stays as it is
FLOOR = 1e-7  # added to every variance, over grey levels squared: a tenth of a grey level of 255


class Statistics(NamedTuple):
    """Sums over patches: see above; covariances are in the coordinates of the cosine basis."""

    weights: FloatArray  # n_kg (K, G)
    moments: FloatArray  # M_k (K, d, d)
    log_likelihood: float
    patches: int

    def plus(self, other: Statistics) -> Statistics:
        """The sums over both."""
        return Statistics(*map(add, self, other))


class _Tables(NamedTuple):
    """The components at one noise level, in float32."""

    basis: FloatArray  # (a, d)
    turns: FloatArray  # (K, d, d): columns are axes
    precisions: FloatArray  # −1 / 2 variance (K, d, G)
    constants: FloatArray  # (K, G)
    keep: FloatArray  # part of a response that is kept, zero where it is too little, (K, G, d), in float64
    spread: FloatArray  # what posterior variances add to M_k for each n_kg, (K, G, d), in float64


def expected_statistics(
    prior: GaussianMixturePrior,
    y: FloatArray,
    sigma: float,
    *,
    sharpness: float = 1.0,
    least_keep: float = LEAST_KEEP,
    least_part: float = LEAST_PART,
) -> Statistics:
    """The sums over patches y (n, a) that all have noise of standard deviation `sigma`; computed in float32.

    A component that explains less than `least_part` of a patch has no part in it; the others take its share.
    With a `sharpness` above one the shapes compete harder: the probability of each is taken to that power. Axes of
    which a component keeps less than `least_keep` are left as they are.
    """
    y = as_patches(y, prior.size)
    tables = _tables(prior, sigma, least_keep)
    chunks = [y[start : start + CHUNK] for start in range(0, len(y), CHUNK)]

    def sums(chunk: FloatArray) -> Statistics:
        u = chunk.astype(np.float32, copy=False) @ tables.basis
        parts, explained = _responsibilities(tables, u, least_part)
        if sharpness != 1.0:
            parts = _sharpen(parts, sharpness)
        return Statistics(parts.sum(axis=0, dtype=np.float64), _moments(prior, tables, u, parts), explained, len(u))

    total = Statistics(np.zeros(prior.log_weights.shape), np.zeros(prior.covariances.shape), 0.0, 0)
    for first in range(0, len(chunks), 16):  # few at a time: each holds K covariances
        for part in for_each(sums, chunks[first : first + 16]):
            total = total.plus(part)
    spread = np.einsum("kg,kgd->kd", total.weights, tables.spread)
    axes = prior.turns.swapaxes(1, 2)
    return total._replace(moments=total.moments + (axes * spread[:, None, :]) @ prior.turns)


def log_likelihood(prior: GaussianMixturePrior, y: FloatArray, sigma: float) -> float:
    """Mean log-density of patches, computed in float32."""
    tables = _tables(prior, sigma, LEAST_KEEP)

    def total(start: int) -> float:
        u = y[start : start + CHUNK].astype(np.float32, copy=False) @ tables.basis
        return _responsibilities(tables, u, 0.0)[1]

    return sum(for_each(total, range(0, len(y), CHUNK))) / len(y)


def _tables(prior: GaussianMixturePrior, sigma: float, least_keep: float) -> _Tables:
    variances = prior.variances_at(sigma)  # (K, G, d)
    keep = 1.0 - sigma**2 / variances
    informative = keep > least_keep
    return _Tables(
        prior.basis.T.astype(np.float32),
        np.ascontiguousarray(prior.turns.swapaxes(1, 2), np.float32),
        np.ascontiguousarray(-0.5 / variances.swapaxes(1, 2), np.float32),
        (prior.log_weights - 0.5 * (np.log(variances) + LOG_2PI).sum(axis=-1)).astype(np.float32),
        np.where(informative, keep, 0.0),
        np.where(informative, sigma**2 * keep / prior.contrasts[:, None], prior.variances[:, None, :]),
    )


def _responsibilities(tables: _Tables, u: FloatArray, least_part: float) -> tuple[FloatArray, float]:
    """P(k, g | u), (n, K, G), without the small ones, and the sum of the log-densities."""
    logs = np.empty((len(u), *tables.constants.shape), np.float32)
    for k, turn in enumerate(tables.turns):
        squares = u @ turn
        squares *= squares
        np.add(squares @ tables.precisions[k], tables.constants[k], out=logs[:, k])
    flat = logs.reshape(len(u), -1)
    peak = flat.max(axis=1, keepdims=True)
    flat -= peak
    np.exp(flat, out=flat)
    total = flat.sum(axis=1, keepdims=True)
    flat[(flat < least_part * total) & (flat < 1.0)] = 0.0  # the largest, which is one here, stays
    flat /= flat.sum(axis=1, keepdims=True)
    return logs, float((peak + np.log(total)).sum(dtype=np.float64))


def _sharpen(parts: FloatArray, sharpness: float) -> FloatArray:
    """P(k | u)^sharpness, normalised, times P(g | u, k)."""
    shapes = parts.sum(axis=2, keepdims=True)
    powers = shapes**sharpness
    powers /= powers.sum(axis=1, keepdims=True)
    powers[powers < LEAST_PART] = 0.0
    powers /= powers.sum(axis=1, keepdims=True)
    return np.asarray(parts * (powers / np.maximum(shapes, LEAST_PART)))


def _moments(prior: GaussianMixturePrior, tables: _Tables, u: FloatArray, parts: FloatArray) -> FloatArray:
    """M_k without the posterior variances, which depend on no patch: (K, d, d)."""
    moments = np.zeros_like(prior.covariances)
    clean = bool(np.all(tables.keep == 1.0))
    for k, turn in enumerate(tables.turns):
        some = np.nonzero(parts[:, k].any(axis=1))[0]
        own = parts[some, k] / prior.contrasts.astype(np.float32)
        if clean:
            x = u[some] * np.sqrt(own.sum(axis=1, keepdims=True))
            moments[k] = x.T @ x
            continue
        along, turned = np.zeros(moments.shape[1:]), u[some] @ turn
        for g, keep in enumerate(tables.keep[k].astype(np.float32)):
            rows, informative = np.nonzero(own[:, g])[0], np.count_nonzero(keep)  # axes descend by variance
            x = turned[rows, :informative] * np.sqrt(own[rows, g, None])
            x *= keep[:informative]
            along[:informative, :informative] += x.T @ x
        moments[k] = prior.turns[k].T @ along @ prior.turns[k]
    return moments
