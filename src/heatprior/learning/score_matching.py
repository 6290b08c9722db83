"""Denoising score matching, Eq. (4): the loss over all noise levels at once, and its exact gradient.

For clean patches x, noise n and y = x + sigma n the residual is r = x − y − sigma² ∇ log f(y, t), that is
r = −sigma n − sigma² Kᵀ phi(K y), and the loss the mean of ‖r‖² / sigma². The paper writes a plain norm and no weight;
a square is meant, and the weight makes every noise level count alike (docs/math.md).

Patches are columns here, (a, n), and the filters rows, (J, a), so that every product is one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from heatprior.arrays import FloatArray
from heatprior.kernels.score_matching import score_derivatives, weight_gradient
from heatprior.kernels.threads import for_each
from heatprior.learning.objective import Point


@dataclass(frozen=True)
class NoisyBatch:
    """Clean patches and unit noise, (a, n) each, and the noise level of each patch, (n,), above zero."""

    clean: FloatArray
    noise: FloatArray
    sigma: FloatArray


FILTERS, LOGITS = 0, 1  # the two blocks of variables


@dataclass(frozen=True)
class ScoreMatching:
    """The loss on one batch: mean of ‖x − E[X | y]‖² / sigma², Eq. (4), as a function of the point [filters, logits].

    The batch comes in pieces, which run side by side and are added in order: the number of threads changes no bit. The
    filters need not be orthogonal: the extrapolated points of iPALM are not.
    """

    batch: Sequence[NoisyBatch]
    reach: float

    def value(self, point: Point) -> float:
        """The loss at a point."""
        return self._evaluate(point, ())[0]

    def gradient(self, point: Point, block: int | None) -> tuple[float, Point]:
        """The loss, and its gradient in one block or, for `block=None`, in both."""
        return self._evaluate(point, (FILTERS, LOGITS) if block is None else (block,))

    def _evaluate(self, point: Point, blocks: Sequence[int]) -> tuple[float, Point]:
        filters, logits = point
        log_weights = np.asarray(log_softmax(logits, axis=1))
        means = np.linspace(-self.reach, self.reach, logits.shape[1])
        pieces = for_each(lambda piece: _sums_over(piece, filters, log_weights, means, blocks), self.batch)
        count = sum(piece.sigma.size for piece in self.batch)
        losses, gradients = zip(*pieces, strict=True)
        return sum(losses) / count, [np.sum(parts, axis=0) / count for parts in zip(*gradients, strict=True)]


def _sums_over(
    batch: NoisyBatch, filters: FloatArray, log_weights: FloatArray, means: FloatArray, blocks: Sequence[int]
) -> tuple[float, Point]:
    base_variance = (means[1] - means[0]) ** 2
    variance_of_noise = batch.sigma**2
    noisy = batch.clean + batch.sigma * batch.noise
    responses = filters @ noisy  # (J, n)
    squared_norms = (filters**2).sum(axis=1)
    variances = base_variance + squared_norms[:, None] * variance_of_noise
    derivatives = score_derivatives(responses, variances, log_weights, means, want_derivatives=FILTERS in blocks)
    residual = -batch.noise - batch.sigma * (filters.T @ derivatives.score)  # r / sigma, (a, n)
    loss = float(np.vdot(residual, residual))
    if not blocks:
        return loss, []

    back = -2.0 * batch.sigma * residual  # ∂loss/∂(Kᵀ phi)
    back_scores = filters @ back  # ∂loss/∂phi, (J, n)
    gradients: Point = []
    if FILTERS in blocks:
        gradient = derivatives.score @ back.T
        gradient += (back_scores * derivatives.in_response) @ noisy.T
        gradient += 2.0 * filters * ((back_scores * derivatives.in_variance) @ variance_of_noise)[:, None]
        gradients.append(gradient)
    if LOGITS in blocks:
        gradients.append(weight_gradient(responses, variances, back_scores, derivatives, log_weights, means))
    return loss, gradients
