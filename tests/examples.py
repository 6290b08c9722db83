"""Small priors of many shapes, right ones and wrong ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from laws import Span
from scipy.linalg import helmert

from heatprior.priors.experts import Experts
from heatprior.priors.filters import FilterBank
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.patch import PatchPrior
from paper.claims.explicit_mixture import ExplicitMixture


def filter_bank(size: int, count: int, *, seed: int = 0, zero_mean: bool = True) -> FilterBank:
    """Random orthogonal filters with norms from 0.4 to 1.7, whose product is not one."""
    rng = np.random.default_rng(seed)
    basis = helmert(size**2, full=not zero_mean)
    rotation, _ = np.linalg.qr(rng.standard_normal((len(basis), len(basis))))
    norms = np.geomspace(0.4, 1.7, count) if count > 1 else np.array([1.7])
    return FilterBank(norms[:, None] * (rotation[:count] @ basis))


def patch_prior(size: int, count: int, components: int, *, seed: int = 0, zero_mean: bool = True) -> PatchPrior:
    """Random filters, random weights: every expert lopsided in its own way."""
    rng = np.random.default_rng(seed + 1)
    experts = Experts(rng.standard_normal((count, components)), reach=0.8)
    return PatchPrior(filter_bank(size, count, seed=seed, zero_mean=zero_mean), experts)


def tilted(prior: PatchPrior, degrees: float) -> PatchPrior:
    """The same prior with its first filter turned towards the second: what FilterBank refuses to build."""
    matrix = prior.filters.matrix.copy()
    first, second = np.linalg.norm(matrix[:2], axis=1)
    angle = np.deg2rad(degrees)
    matrix[0] = np.cos(angle) * matrix[0] + np.sin(angle) * (first / second) * matrix[1]
    bank = FilterBank(prior.filters.matrix)
    object.__setattr__(bank, "matrix", matrix)
    return replace(prior, filters=bank)


def gaussian_mixture(
    size: int, shapes: int, contrasts: tuple[float, ...] = (1.0,), *, seed: int = 0, narrowest: float = 0.1
) -> GaussianMixturePrior:
    """Random covariances of standard deviations from 0.1, or `narrowest`, to 0.4, random weights."""
    rng = np.random.default_rng(seed)
    dimension = size**2 - 1
    turns, _ = np.linalg.qr(rng.standard_normal((shapes, dimension, dimension)))
    variances = np.geomspace(narrowest, 0.4, dimension) ** 2 * rng.uniform(0.7, 1.4, (shapes, 1))
    covariances = (turns * variances[:, None, :]) @ turns.swapaxes(1, 2)
    return GaussianMixturePrior(covariances, rng.standard_normal((shapes, len(contrasts))), np.array(contrasts))


def with_learnt_step(
    prior: GaussianMixturePrior, *, seed: int = 0, rival: float = 0.3, candidates: int = 4
) -> GaussianMixturePrior:
    """The same mixture, whose patches count by place and by component, and which mixes likely shapes."""
    rng = np.random.default_rng(seed)
    window, confidences = (rng.uniform(0.3, 3.0, shape) for shape in ((prior.size,) * 2, prior.log_weights.shape))
    entry = {
        "window": window.tolist(),
        "confidences": confidences.tolist(),
        "rival": rival,
        "candidates": candidates,
    }
    return replace(prior, card={**prior.card, "step": entry})


def span_of(prior: PatchPrior | ExplicitMixture | GaussianMixturePrior) -> Span:
    """The filters of a patch prior, the eigenvectors of an explicit mixture, all but brightness of a mixture."""
    if isinstance(prior, GaussianMixturePrior):
        narrowest, widest = (np.sqrt(f(prior.variances) * f(prior.contrasts)) for f in (np.min, np.max))
        ones = np.ones(len(prior.basis))
        return Span(prior.basis, narrowest * ones, 9.0 * (widest - narrowest) * ones)  # its means lie at zero
    if isinstance(prior, PatchPrior):
        bank, experts = prior.filters, prior.experts
        return Span(bank.matrix / bank.norms[:, None], experts.base_sigma / bank.norms, experts.reach / bank.norms)
    eigenvalues, vectors = np.linalg.eigh(prior.precision)
    seen = eigenvalues > 1e-8 * eigenvalues.max()
    axes = vectors[:, seen].T
    return Span(axes, eigenvalues[seen] ** -0.5, np.abs(prior.means @ axes.T).max(axis=0))


@dataclass(frozen=True)
class Altered:
    """A prior with one thing wrong, for the negative controls."""

    right: PatchPrior
    score_factor: float = 1.0
    log_factor: float = 0.0
    sigma_factor: float = 1.0
    sample_factor: float = 1.0
    variance_factor: float = 1.0

    def log_prob(self, y, sigma):
        return self.right.log_prob(y, self.sigma_factor * sigma) + self.log_factor

    def score(self, y, sigma):
        return self.score_factor * self.right.score(y, self.sigma_factor * sigma)

    def sample(self, count, sigma=0.0, *, rng):
        return self.right.sample(count, self.sample_factor * np.asarray(sigma), rng=rng)

    def posterior(self, y, sigma):
        right = self.right.posterior(y, sigma)
        return right._replace(variance=self.variance_factor * right.variance)


PATCH_PRIORS = {
    "one filter of two components": patch_prior(2, 1, 2),
    "two filters on 3×3": patch_prior(3, 2, 9, seed=1),
    "three filters on 2×2": patch_prior(2, 3, 4, seed=2),
    "brightness too": patch_prior(2, 4, 3, seed=3, zero_mean=False),
    "24 experts of 125 components": patch_prior(5, 24, 125, seed=4),
}
EXPLICIT_MIXTURES = {
    "explicit mixture": ExplicitMixture.of(patch_prior(2, 2, 3, seed=5)),
    "explicit mixture of filters that are not orthogonal": ExplicitMixture.of(tilted(patch_prior(3, 2, 3, seed=6), 30)),
}
GAUSSIAN_MIXTURES = {
    "one Gaussian": gaussian_mixture(2, 1),
    "three Gaussians": gaussian_mixture(2, 3, seed=1),
    "two shapes at three contrasts": gaussian_mixture(2, 2, (0.5, 1.0, 2.0), seed=2),
    "five shapes on 4×4": gaussian_mixture(4, 5, (0.25, 1.0, 4.0), seed=3),
}
PRIORS = PATCH_PRIORS | EXPLICIT_MIXTURES | GAUSSIAN_MIXTURES
