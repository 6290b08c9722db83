"""The likelihood of a noise level under a mixture of Gaussians: log-densities of patches of unknown contrast.

f_g(y, sigma) = Σ_k π_k|g G(Q y; 0, c_g Q Σ_k Qᵀ + sigma² Id): what the mixture says of patches of its contrast c_g, in
some orthonormal directions Q. The prior itself is Σ_g π_g f_g; an image has weights of its own, which are fitted to it.
The axes of Q Σ_k Qᵀ serve all contrasts and noise levels, so a patch is turned once for each shape.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.noisy_gaussians import LOG_2PI
from heatprior.kernels.threads import for_each, products_in_one_thread
from heatprior.log_sums import log_sum_exp
from heatprior.priors.protocol import NoiseDirections

if TYPE_CHECKING:
    from heatprior.priors.gaussian_mixture import GaussianMixturePrior

CHUNK_NUMBERS = 1 << 20  # that each thread has in memory at once
WEAK_SPREAD = 0.1  # of the noise: clean patches on average; a mixture knows better what they look like than filters do
FEWEST_AXES = 6  # at least every sixth axis is used


class MixtureLikelihood:
    """A `NoiseLikelihood`, in the axes of the mean covariance. It knows patches well enough for each to be a block."""

    stride = 4
    most_patches = 50_000  # each costs more than with filters
    photograph_error = (3.0 / 255, 0.02)  # fitted to sixteen validation images of BSDS500 at 255 sigma from 5 to 100

    def __init__(self, prior: GaussianMixturePrior) -> None:
        self._prior = prior
        self.size = prior.patch_shape[0]

    @cached_property
    def directions(self) -> NoiseDirections:
        """The axes of the mean covariance: Gaussians in the other axes integrate to one."""
        shares = np.exp(self._prior.log_weights) @ self._prior.contrasts  # (K,)
        variances, axes = np.linalg.eigh(np.tensordot(shares, self._prior.covariances, 1))
        fewest = -(-len(variances) // FEWEST_AXES)
        return NoiseDirections(axes.T @ self._prior.basis, np.sqrt(variances), WEAK_SPREAD, fewest)

    @property
    def contrast_weights(self) -> FloatArray:
        """π_g, how frequent each contrast is: (G,)."""
        return contrast_weights(self._prior)

    def block_side(self, wanted: int) -> int:  # noqa: ARG002
        """One patch."""
        return 1

    def log_densities(self, image: FloatArray, sigmas: FloatArray, chosen: IntArray, stride: int) -> FloatArray:
        """In float32: (S, G, rows, columns)."""
        return mixture_densities(self._prior, image, sigmas, self.directions.unit[chosen], stride)


def contrast_weights(prior: GaussianMixturePrior) -> FloatArray:
    """π_g, how often each contrast is: (G,)."""
    return np.asarray(np.exp(log_sum_exp(prior.log_weights, axis=0)))


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
    chunk = max(16, CHUNK_NUMBERS // noisy[..., 0].size)

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
