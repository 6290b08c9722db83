"""The loss of fine-tuning: the error of the denoised image, and its exact gradient.

Score matching asks for the best estimate of each patch by itself. Denoising averages overlapping patches, and then
other estimates are better (paper/evaluations/thresholding.py). Here the error is taken after the averaging. For noisy
crops y = x + sigma n of images the loss is

    ( |A(y, sigma) − x|²  +  |z_S − x|² ) / sigma^e,   |·|² being means over pixels,

where A is one step of empirical Bayes with patch averaging, and z_S the result of half-quadratic splitting, z_0 = y,
z_(k+1) = w_k y + (1 − w_k) A(z_k, l_k sigma), on crops mirrored beyond their edges. The gradient is backpropagated
through all steps, to the filters (J, a), the logits (J, L), the levels l_k and the weights w_k. Without steps, S = 0,
the loss is that of A alone. Squared errors grow with about the power 0.9 of sigma: with e = 0.9 all noise levels count
alike in decibels, and a smaller e favours strong noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.threads import for_each
from heatprior.learning.patch_training import Point
from paper.learning.averaging_gradient import TABLE_CELLS, AveragingStep

SIGMA_EXPONENT = 0.9  # e
UNCOUNTED_EDGE = (
    4  # pixels that the loss leaves out at the edge of a mirrored crop, which has more of them than an image
)


@dataclass(frozen=True)
class NoisyCrops:
    """Clean crops and unit noise, (C, side, side) each, and their noise level."""

    clean: FloatArray
    noise: FloatArray
    sigma: float


@dataclass(frozen=True)
class Denoising:
    """The loss on some crops at some noise levels, as a function of a prior [filters, logits] and schedules.

    A schedule is levels and weights, (2, S); each element of the batch has one. The elements run side by
    side and are added in order: the number of threads changes no bit.
    """

    batch: Sequence[NoisyCrops]
    reach: float
    dtype: Any = np.float32
    cells: int = TABLE_CELLS
    exponent: float = SIGMA_EXPONENT

    def gradient(self, prior: Point, schedules: Sequence[FloatArray]) -> tuple[float, Point, list[FloatArray]]:
        """The loss, its gradient in the prior, [filters, logits], and in each of the schedules."""
        pieces = for_each(lambda pair: self._one(prior, *pair), list(zip(self.batch, schedules, strict=True)))
        losses, in_priors, in_schedules = zip(*pieces, strict=True)
        count = len(pieces)
        in_prior = [np.sum(parts, axis=0) / count for parts in zip(*in_priors, strict=True)]
        return sum(losses) / count, in_prior, [in_schedule / count for in_schedule in in_schedules]

    def _one(self, prior: Point, crops: NoisyCrops, schedule: FloatArray) -> tuple[float, Point, FloatArray]:
        noisy = (crops.clean + crops.sigma * crops.noise).astype(self.dtype)
        loss, in_prior = self._one_step(prior, crops, noisy)
        if schedule.size == 0:
            return loss, in_prior, np.zeros_like(schedule)
        further, more, in_schedule = self._splitting(prior, crops, noisy, schedule)
        return loss + further, [a + b for a, b in zip(in_prior, more, strict=True)], in_schedule

    def _step(self, prior: Point, sigma: float) -> AveragingStep:
        return AveragingStep(prior[0], prior[1], self.reach, sigma, dtype=self.dtype, cells=self.cells)

    def _one_step(self, prior: Point, crops: NoisyCrops, noisy: FloatArray) -> tuple[float, Point]:
        """The first part of the loss, over the pixels that lie in as many patches as there can be."""
        margin = int(np.sqrt(prior[0].shape[1])) - 1
        step = self._step(prior, crops.sigma)
        result, kept = step.forward(noisy)
        loss, in_result = _squared_error(result, crops.clean, margin, crops.sigma**-self.exponent)
        step.back(in_result, kept, to_images=False)
        return loss, list(step.gradient()[:2])

    def _splitting(
        self, prior: Point, crops: NoisyCrops, noisy: FloatArray, schedule: FloatArray
    ) -> tuple[float, Point, FloatArray]:
        margin = int(np.sqrt(prior[0].shape[1])) - 1
        sides = ((0, 0), (margin, margin), (margin, margin))
        noisy, clean = np.pad(noisy, sides, "reflect"), np.pad(crops.clean, sides)
        state = noisy
        steps, means, kepts = [], [], []
        for level, weight in schedule.T:
            steps.append(self._step(prior, float(level) * crops.sigma))
            mean, kept = steps[-1].forward(state)
            state = self.dtype(weight) * (noisy - mean) + mean
            means.append(mean)
            kepts.append(kept)
        loss, back = _squared_error(state, clean, margin + UNCOUNTED_EDGE, crops.sigma**-self.exponent)
        in_prior: Point = [np.zeros_like(block) for block in prior]
        in_schedule = np.zeros_like(schedule)
        for k in reversed(range(len(steps))):
            in_schedule[1, k] = float(np.vdot(back, noisy - means[k]))
            further = steps[k].back(self.dtype(1.0 - schedule[1, k]) * back, kepts.pop(), to_images=k > 0)
            in_filters, in_logits, in_sigma = steps[k].gradient()
            in_prior = [in_prior[0] + in_filters, in_prior[1] + in_logits]
            in_schedule[0, k] = in_sigma * crops.sigma
            back = back if further is None else further
        return loss, in_prior, in_schedule


def _squared_error(result: FloatArray, clean: FloatArray, margin: int, weight: float) -> tuple[float, FloatArray]:
    """Weighted mean squared error, without a margin, and its gradient in the result."""
    inside = (slice(None), slice(margin, -margin), slice(margin, -margin))
    error = np.zeros_like(result)
    error[inside] = result[inside] - clean[inside]
    part = weight / error[inside].size
    return part * float(np.square(error, dtype=np.float64).sum()), error * result.dtype.type(2.0 * part)
