"""Denoising score matching, Eq. (4): the loss over all noise levels at once, and its exact gradient.

For clean patches x, noise n and y = x + sigma n the residual is r = x − y − sigma² ∇ log f(y, t), that is
r = −sigma n − sigma² Kᵀ phi(K y), and the loss the mean of ‖r‖² / sigma². The paper writes a plain norm and no weight;
a square is meant, and the weight makes every noise level count alike (docs/math.md).

Patches are columns here, (a, n), and the filters rows, (J, a), so that every product is one matrix product. Within
a piece of a batch all is done in the type of the batch; the loss, sums over pieces and the point are in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.score_matching import error_to_gradient, score_derivatives, weight_gradient
from heatprior.kernels.threads import for_each
from heatprior.learning.optimisers import Point
from heatprior.scipy_subset import log_softmax


@dataclass(frozen=True)
class NoisyBatch:
    """Clean patches and unit noise, (a, n) each, and the noise level of each patch, (n,), above zero.

    All are of one type. Training runs in float32, in which the loss is right to six digits or more and its gradients to
    four; float64 is exact and slow, by the numpy twins of the kernels.
    """

    clean: FloatArray
    noise: FloatArray
    sigma: FloatArray


FILTERS, LOGITS = 0, 1  # the two blocks of variables


class ScoreMatching:
    """The loss on one batch: mean of ‖x − E[X | y]‖² / sigma², Eq. (4), as a function of the point [filters, logits].

    The batch comes in pieces, which run side by side and are added in order: the number of threads changes no bit. The
    filters need not be orthogonal: the extrapolated points of iPALM are not. Responses are kept for the next point,
    which may have the same filters: arrays of a point must not be changed once they were given, and one object is not
    for several threads.
    """

    def __init__(self, batch: Sequence[NoisyBatch], reach: float) -> None:
        self._pieces = [_Piece(piece) for piece in batch]
        self._count = sum(piece.sigma.size for piece in batch)
        self._reach = reach

    def value(self, point: Point) -> float:
        """The loss at a point."""
        return self._evaluate(point, ())[0]

    def gradient(self, point: Point, block: int | None) -> tuple[float, Point]:
        """The loss, and its gradient in one block or, for `block=None`, in both."""
        return self._evaluate(point, (FILTERS, LOGITS) if block is None else (block,))

    def _evaluate(self, point: Point, blocks: Sequence[int]) -> tuple[float, Point]:
        filters, logits = point
        log_weights = np.asarray(log_softmax(logits, axis=1))
        means = np.linspace(-self._reach, self._reach, logits.shape[1])
        pieces = for_each(lambda piece: piece.sums(filters, log_weights, means, blocks), self._pieces)
        losses, gradients = zip(*pieces, strict=True)
        return sum(losses) / self._count, [_sum(parts) / self._count for parts in zip(*gradients, strict=True)]


def _sum(parts: Sequence[FloatArray]) -> FloatArray:
    """Add up the parts, in place, into the first of them."""
    for part in parts[1:]:
        np.add(parts[0], part, out=parts[0])
    return parts[0]


class _Piece:
    """A part of a batch, with its responses to the filters that it met last."""

    def __init__(self, batch: NoisyBatch) -> None:
        self._batch = batch
        self._variance_of_noise = batch.sigma**2
        self._noisy: FloatArray | None = None
        self._given: FloatArray | None = None
        self._filters = self._responses = self._noise_variances = np.empty((0, 0), batch.clean.dtype)

    def sums(
        self, filters: FloatArray, log_weights: FloatArray, means: FloatArray, blocks: Sequence[int]
    ) -> tuple[float, Point]:
        """The sum of the losses, and its gradients in the blocks."""
        batch = self._batch
        if self._noisy is None:
            self._noisy = batch.clean + batch.sigma * batch.noise
        if filters is not self._given:
            self._given, self._filters = filters, np.asarray(filters, batch.clean.dtype)
            self._responses = self._filters @ self._noisy  # (J, n)
            self._noise_variances = (self._filters**2).sum(axis=1)[:, None] * self._variance_of_noise
        own, responses = self._filters, self._responses
        variances = self._noise_variances + np.square(means[1] - means[0], dtype=batch.clean.dtype)
        derivatives = score_derivatives(responses, variances, log_weights, means, want_derivatives=FILTERS in blocks)
        back = own.T @ derivatives.score  # Kᵀ phi, (a, n)
        loss = error_to_gradient(back, batch.noise, batch.sigma)  # now ∂loss/∂(Kᵀ phi)
        if not blocks:
            return loss, []

        back_scores = own @ back  # ∂loss/∂phi, (J, n)
        gradients: Point = []
        if FILTERS in blocks:
            products = derivatives.score @ back.T
            products += np.multiply(back_scores, derivatives.in_response, out=derivatives.in_response) @ self._noisy.T
            by_variance = np.multiply(back_scores, derivatives.in_variance, out=derivatives.in_variance)
            gradient = 2.0 * filters * (by_variance @ self._variance_of_noise)[:, None]
            gradient += products
            gradients.append(gradient)
        if LOGITS in blocks:
            gradients.append(weight_gradient(responses, variances, back_scores, derivatives, log_weights, means))
        return loss, gradients
