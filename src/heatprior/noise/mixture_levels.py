"""Patches under a mixture of Gaussians whose contrasts are unknown: their log-densities at many noise levels at once.

f_g(y, sigma) = Σ_k π_k|g G(Q y; 0, c_g Q Σ_k Qᵀ + sigma² Id): what the mixture says of patches of its contrast c_g, in
some orthonormal directions Q. The prior itself is Σ_g π_g f_g; an image has weights of its own, which are fitted to it.
The axes of Q Σ_k Qᵀ serve all contrasts and noise levels, so a patch is turned once for each shape.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import logsumexp

from heatprior.arrays import FloatArray
from heatprior.kernels.threads import for_each, products_in_one_thread
from heatprior.priors.gaussian_mixture import LOG_2PI, GaussianMixturePrior

ROOM = 1 << 20  # numbers that each thread has in memory at once


def contrast_weights(prior: GaussianMixturePrior) -> FloatArray:
    """π_g, how often each contrast is: (G,)."""
    return np.asarray(np.exp(logsumexp(prior.log_weights, axis=0)))


def mixture_densities(
    prior: GaussianMixturePrior, image: FloatArray, sigmas: FloatArray, directions: FloatArray, stride: int
) -> FloatArray:
    """Of the patches at every stride-th pixel, (S, G, rows, columns); in float32, on all cores; directions: (m, a)."""
    windows = sliding_window_view(np.asarray(image, np.float32), (prior.size, prior.size))[::stride, ::stride]
    shape = windows.shape[:2]
    u = windows.reshape(-1, prior.size**2) @ directions.T.astype(np.float32)
    turn = directions @ prior.basis.T  # (m, d)
    with products_in_one_thread():  # they are small
        variances, axes = np.linalg.eigh(turn @ prior.covariances @ turn.T)  # (K, m), (K, m, m)
    noisy = prior.contrasts[:, None] * variances[:, None, None] + np.square(sigmas)[:, None, None]  # (K, S, G, m)
    shapes, levels, contrasts, dimension = noisy.shape
    precisions = np.ascontiguousarray((-0.5 / noisy).reshape(shapes, -1, dimension).swapaxes(1, 2), np.float32)
    within = prior.log_weights - np.log(contrast_weights(prior))  # (K, G)
    constants = within[:, None] - 0.5 * (np.log(noisy) + LOG_2PI).sum(axis=-1)
    constants = constants.reshape(shapes, 1, -1).astype(np.float32)
    axes = axes.astype(np.float32)
    sums = np.empty((levels, contrasts, len(u)), np.float32)
    chunk = max(16, ROOM // noisy[..., 0].size)

    def fill(start: int) -> None:
        responses = np.square(u[start : start + chunk] @ axes)  # (K, n, m)
        logs = responses @ precisions
        logs += constants
        highest = logs.max(axis=0)
        logs -= highest
        np.exp(logs, out=logs)
        found = np.log(logs.sum(axis=0)) + highest  # (n, S G)
        sums[..., start : start + chunk] = found.T.reshape(levels, contrasts, -1)

    for_each(fill, range(0, len(u), chunk))
    return sums.reshape(*sums.shape[:2], *shape)
