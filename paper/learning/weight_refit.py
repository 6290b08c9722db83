"""The weights of a patch prior by maximum likelihood over many noise levels, its filters held: a convex problem.

For one filter the mean over noise levels t of E[log psi_j(⟨k_j, p + sqrt(2t) n⟩, t)] is concave in the weights w_j, and
EM climbs to its maximum. The noise is not drawn: it widens the histogram of the clean responses by a Gaussian. Score
matching, the paper's loss, says little about responses that hardly any patch has; likelihood does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.threads import for_each
from heatprior.priors.experts import Experts
from heatprior.priors.patch import PatchPrior

BINS_PER_WIDTH = 4.0  # bins of a histogram in the standard deviation of a component
REACH = 6.0  # standard deviations of the noise that count
LEAST_WEIGHT = 1e-12  # of a component that no response asks for: not zero, whose logarithm is infinite


class Level(NamedTuple):
    """Of one filter at one noise level: the mass of the noisy responses in bins (n,), and densities there (n, L).

    Densities are over the largest of their bin, whose logarithm is apart: far outside the reach all of them underflow.
    """

    mass: FloatArray
    densities: FloatArray
    log_largest: FloatArray


def refit_weights(
    prior: PatchPrior,
    patches: FloatArray,
    sigmas: Sequence[float],
    rounds: int = 300,
    card: Mapping[str, Any] | None = None,
) -> PatchPrior:
    """The prior with the weights of greatest likelihood of clean patches (b², n) under noise of all `sigmas`, by EM."""
    if patches.ndim != 2 or patches.shape[0] != prior.filters.pixels or patches.shape[1] < 1:
        raise InvalidInputError(f"patches have shape {patches.shape}; expected ({prior.filters.pixels}, count)")
    if not len(sigmas) or min(sigmas) < 0.0:
        raise InvalidInputError(f"noise levels are {list(sigmas)}; expected one or more, none below 0")

    def of_filter(j: int) -> FloatArray:
        norm = float(prior.filters.norms[j])
        responses = prior.filters.matrix[j] @ patches
        levels = [level_of(responses, sigma * norm, prior.experts) for sigma in sigmas]
        weights: FloatArray = prior.experts.weights[j]
        for _ in range(rounds):
            weights = em_round(weights, levels)
        return weights

    weights = np.maximum(np.stack(for_each(of_filter, range(prior.filters.count))), LEAST_WEIGHT)
    return PatchPrior(prior.filters, Experts(np.log(weights), prior.experts.reach), dict(card or {}))


def em_round(weights: FloatArray, levels: Sequence[Level]) -> FloatArray:
    """w_l ← the mean over levels and responses of P(l | response): it never lowers the likelihood."""
    shares = [level.densities.T @ (level.mass / (level.densities @ weights)) for level in levels]
    return np.asarray(weights * np.mean(shares, axis=0))


def log_likelihood(weights: FloatArray, levels: Sequence[Level]) -> float:
    """The mean over noise levels and responses of log psi."""
    return float(np.mean([level.mass @ (np.log(level.densities @ weights) + level.log_largest) for level in levels]))


def level_of(responses: FloatArray, tau: float, experts: Experts) -> Level:
    """Responses (n,) under noise of `tau`, in bins that are narrow beside the components."""
    width = float(np.hypot(experts.base_sigma, tau))
    step = width / BINS_PER_WIDTH
    halves = int(np.ceil((np.abs(responses).max() + REACH * tau) / step)) + 1
    middles = step * np.arange(-halves, halves + 1)
    edges = np.append(middles - step / 2, middles[-1] + step / 2)
    mass = np.histogram(responses, edges)[0] / responses.size
    if tau > 0.0:
        around = step * np.arange(-int(REACH * tau / step) - 1, int(REACH * tau / step) + 2)
        kernel = np.exp(-0.5 * (around / tau) ** 2)
        mass = np.convolve(mass, kernel / kernel.sum(), "same")  # which is never shorter than the kernel
    seen = mass > 0.0
    log_densities = -0.5 * ((middles[seen, None] - experts.means) / width) ** 2 - np.log(width * np.sqrt(2.0 * np.pi))
    largest = log_densities.max(axis=1)
    return Level(mass[seen] / mass[seen].sum(), np.exp(log_densities - largest[:, None]), largest)
