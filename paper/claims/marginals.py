"""The marginals of noisy patches beside the experts: h_j(z, t), the density of ⟨k_j, p + sqrt(2t) n⟩, and psi_j(z, t).

The noise is not drawn: it widens the histogram of the clean responses by a Gaussian, which is done exactly. So only the
choice of patches is left to chance, and what it adds to any figure is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from heatprior.arrays import FloatArray
from heatprior.kernels.threads import for_each
from heatprior.priors.experts import Experts
from heatprior.priors.patch import PatchPrior

HISTOGRAM_BINS = 2**15  # of the clean responses
BINS = 201  # of an interval in which densities are compared
SURE = 0.1  # relative standard error of a density up to which its logarithm is compared
TAIL = 0.005  # of the responses on either side


class Histogram(NamedTuple):
    """Densities in bins of equal width, their variance by the choice of patches, and how many patches there are."""

    edges: FloatArray
    density: FloatArray
    variance: FloatArray
    patches: float

    def sure(self) -> NDArray[np.bool_]:
        """Where a bin holds one patch or more in the mean, and its density is known to a tenth."""
        one = 1.0 / (self.patches * (self.edges[1] - self.edges[0]))
        return np.asarray((self.density > one) & (self.variance <= (SURE * self.density) ** 2))


class Discrepancy(NamedTuple):
    """NMSE_κ of one filter, and how much of it is due to the finite number of patches."""

    nmse: float
    chance: float


class Marginal(NamedTuple):
    """Of one filter at one noise level, over the means of the expert: h_j, psi_j, and the mean |log psi_j − log h_j|.

    The last is over bins whose density is known to a tenth: in the middle 99 % of the responses, and beyond; NaN if
    there are none. `depth` says how far down that is: the logarithm of the peak over the least density known.
    """

    empirical: Histogram
    expert: FloatArray
    body: float
    tail: float
    depth: float


@dataclass(frozen=True)
class Responses:
    """The responses of one filter to clean patches, finely counted over [−end, end)."""

    counts: FloatArray
    end: float

    @classmethod
    def count(cls, responses: FloatArray, largest_tau: float) -> Responses:
        """Count responses (n,), with room for noise of `largest_tau`."""
        end = 1.01 * float(np.abs(responses).max()) + 8.0 * largest_tau + 1e-6
        counts, _ = np.histogram(responses, HISTOGRAM_BINS, (-end, end))
        return cls(counts.astype(np.float64), end)

    @cached_property
    def _spectrum(self) -> NDArray[Any]:
        return np.asarray(fft.rfft(self.counts / self.counts.sum()))

    def cumulative(self, tau: float) -> FloatArray:
        """The distribution function under noise of `tau` at the edges of the fine bins, (HISTOGRAM_BINS + 1,)."""
        frequency = fft.rfftfreq(HISTOGRAM_BINS, 2.0 * self.end / HISTOGRAM_BINS)
        mass = fft.irfft(self._spectrum * np.exp(-2.0 * (np.pi * frequency * tau) ** 2), HISTOGRAM_BINS)
        return np.concatenate([[0.0], np.cumsum(np.maximum(mass, 0.0))])


class NoisyResponses:
    """The responses under noise of standard deviation `tau` on each."""

    def __init__(self, clean: Responses, tau: float) -> None:
        self._tau, self._patches = tau, float(clean.counts.sum())
        self._edges = np.linspace(-clean.end, clean.end, HISTOGRAM_BINS + 1)
        self._cumulative = clean.cumulative(tau)
        self._half = clean.cumulative(tau / np.sqrt(2.0)) if tau > 0.0 else None  # under half the variance

    def interval(self, kappa: float) -> tuple[float, float]:
        """Ω_j(t, κ): the ends between which all but κ on either side lie."""
        low, high = np.interp((kappa, 1.0 - kappa), self._cumulative, self._edges)
        return float(low), float(high)

    def histogram(self, edges: FloatArray) -> Histogram:
        """The density, averaged over bins.

        Its variance is (E[w²] − h²) / n, w being what one patch adds: a Gaussian, or a whole bin if that is wider.
        """
        density = self._means(self._cumulative, edges)
        squares = density / (edges[1] - edges[0])
        if self._half is not None:  # the square of a Gaussian is one of half the variance
            squares = np.minimum(squares, self._means(self._half, edges) / (2.0 * np.sqrt(np.pi) * self._tau))
        return Histogram(edges, density, np.maximum(squares - density**2, 0.0) / self._patches, self._patches)

    def _means(self, cumulative: FloatArray, edges: FloatArray) -> FloatArray:
        return np.diff(np.interp(edges, self._edges, cumulative)) / np.diff(edges)


def each_marginal(
    prior: PatchPrior, patches: FloatArray, sigmas: Sequence[float], filters: Sequence[int] | None = None
) -> list[list[Marginal]]:
    """Of clean patches (b², n): for each filter, or some, a list over the noise levels."""
    edges = np.linspace(-prior.experts.reach, prior.experts.reach, BINS + 1)

    def of_filter(j: int) -> list[Marginal]:
        norm = float(prior.filters.norms[j])
        responses = Responses.count(prior.filters.matrix[j] @ patches, max(sigmas) * norm)
        found = []
        for sigma in sigmas:
            noisy = NoisyResponses(responses, sigma * norm)
            empirical, expert = noisy.histogram(edges), expert_density(prior, j, sigma, edges)
            errors = _log_errors(empirical, expert, noisy.interval(TAIL))
            found.append(Marginal(empirical, expert, *errors, _depth(empirical)))
        return found

    return for_each(of_filter, range(prior.filters.count) if filters is None else filters)


def each_discrepancy(
    prior: PatchPrior, patches: FloatArray, sigmas: Sequence[float], kappas: Sequence[float]
) -> list[list[list[Discrepancy]]]:
    """Of clean patches (b², n): for each filter a list over the noise levels of a list over κ."""

    def of_filter(j: int) -> list[list[Discrepancy]]:
        norm = float(prior.filters.norms[j])
        responses = Responses.count(prior.filters.matrix[j] @ patches, max(sigmas) * norm)
        levels = [(sigma, NoisyResponses(responses, sigma * norm)) for sigma in sigmas]
        return [[discrepancy(prior, j, sigma, noisy, kappa) for kappa in kappas] for sigma, noisy in levels]

    return for_each(of_filter, range(prior.filters.count))


def discrepancy(prior: PatchPrior, j: int, sigma: float, responses: NoisyResponses, kappa: float) -> Discrepancy:
    """The mean of (psi_j − h_j)² over Ω_j(t, κ), over the largest h_j² there: a term of the appendix's NMSE_κ."""
    empirical = responses.histogram(np.linspace(*responses.interval(kappa), BINS + 1))
    highest = float(empirical.density.max()) ** 2
    squares = (expert_density(prior, j, sigma, empirical.edges) - empirical.density) ** 2
    return Discrepancy(float(squares.mean()) / highest, float(empirical.variance.mean()) / highest)


def expert_density(prior: PatchPrior, j: int, sigma: float, edges: FloatArray) -> FloatArray:
    """psi_j(·, t) averaged over each bin, as a histogram is: Simpson's rule."""
    expert = Experts(prior.experts.logits[j : j + 1], prior.experts.reach)
    points = np.stack([edges[:-1], 0.5 * (edges[:-1] + edges[1:]), edges[1:]])  # (3, bins)
    psi = np.exp(expert.log_density(points[..., None], sigma * prior.filters.norms[j]))[..., 0]
    return np.asarray(np.array([1.0, 4.0, 1.0]) / 6.0 @ psi)


def _depth(empirical: Histogram) -> float:
    known = empirical.density[empirical.sure()]
    return float(np.log(known.max() / known.min())) if known.size else 0.0


def _log_errors(empirical: Histogram, expert: FloatArray, ends: tuple[float, float]) -> tuple[float, float]:
    inside = (empirical.edges[:-1] >= ends[0]) & (empirical.edges[1:] <= ends[1])
    known = empirical.sure()
    parts = [np.log(expert[known & part] / empirical.density[known & part]) for part in (inside, ~inside)]
    body, tail = (float(np.abs(part).mean()) if part.size else np.nan for part in parts)
    return body, tail
