"""Denoising score matching, Eq. (4): the loss over all noise levels at once, and its exact gradient.

For clean patches x, noise n and y = x + sigma n the residual is r = x − y − sigma² ∇ log f(y, t), that is
r = −sigma n − sigma² Kᵀ phi(K y), and the loss the mean of ‖r‖² / sigma². The paper writes a plain norm and no weight;
a square is meant, and the weight makes every noise level count alike (docs/math.md).

Patches are columns here, (a, n), and the filters rows, (J, a), so that every product is one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax

from heatprior.arrays import FloatArray
from heatprior.kernels.score_matching import score_derivatives, weight_gradient
from heatprior.kernels.threads import for_each


@dataclass(frozen=True)
class NoisyBatch:
    """Clean patches and unit noise, (a, n) each, and the noise level of each patch, (n,), above zero."""

    clean: FloatArray
    noise: FloatArray
    sigma: FloatArray


class LossGradient(NamedTuple):
    """Loss, and its gradient in the filters (J, a) and in the logits (J, L)."""

    loss: float
    filters: FloatArray
    logits: FloatArray


def score_matching_loss(
    filters: FloatArray, logits: FloatArray, reach: float, batch: Sequence[NoisyBatch]
) -> LossGradient:
    """Mean over the batch of ‖x − E[X | y]‖² / sigma², Eq. (4), and its gradient.

    The batch comes in pieces, which run side by side and are added in order: the number of threads changes no bit. The
    filters need not be orthogonal: the extrapolated points of iPALM are not.
    """
    log_weights = np.asarray(log_softmax(logits, axis=1))
    means = np.linspace(-reach, reach, logits.shape[1])
    pieces = for_each(lambda piece: _sums_over(piece, filters, log_weights, means), batch)
    count = sum(piece.sigma.size for piece in batch)
    return LossGradient(
        sum(piece.loss for piece in pieces) / count,
        np.sum([piece.filters for piece in pieces], axis=0) / count,
        np.sum([piece.logits for piece in pieces], axis=0) / count,
    )


def _sums_over(batch: NoisyBatch, filters: FloatArray, log_weights: FloatArray, means: FloatArray) -> LossGradient:
    base_variance = (means[1] - means[0]) ** 2
    variance_of_noise = batch.sigma**2
    noisy = batch.clean + batch.sigma * batch.noise
    responses = filters @ noisy  # (J, n)
    squared_norms = (filters**2).sum(axis=1)
    variances = base_variance + squared_norms[:, None] * variance_of_noise
    derivatives = score_derivatives(responses, variances, log_weights, means)

    residual = -batch.noise - batch.sigma * (filters.T @ derivatives.score)  # r / sigma, (a, n)
    back = -2.0 * batch.sigma * residual  # ∂loss/∂(Kᵀ phi)
    back_scores = filters @ back  # ∂loss/∂phi, (J, n)

    gradient = derivatives.score @ back.T
    gradient += (back_scores * derivatives.in_response) @ noisy.T
    gradient += 2.0 * filters * ((back_scores * derivatives.in_variance) @ variance_of_noise)[:, None]
    logit_gradient = weight_gradient(responses, variances, back_scores, derivatives, log_weights, means)
    return LossGradient(float(np.vdot(residual, residual)), gradient, logit_gradient)
