"""The experts: one-dimensional Gaussian mixtures on the responses of the filters, Eq. (6) of section 3.1.

psi_j(u, t) = Σ_l w_jl G(u; mu_l, sigma_j²(t)). All experts share L means mu_l, spread uniformly over [−reach, reach]
(the paper's γ), and the width sigma_0 = 2 reach / (L − 1), the distance of two means. Noise of standard deviation tau
on a response only widens the components: sigma_j² = sigma_0² + tau².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray
from heatprior.display import describe_fields
from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.kernels.expert_moments import MixtureMoments, mixture_moments
from heatprior.locks import cached_property
from heatprior.scipy_subset import log_softmax

PAPER_COMPONENTS = 125
ALPHA = 1000.0
REACHES = (1e-6, 1e6)  # responses of grey levels in [0, 1] are nowhere near either end
DRAWN_TOGETHER = 8192  # responses, so that their responsibilities fit into the cache
LARGEST_SPREAD = 1e6  # of the logits of an expert: a weight of exp(−1e6) is zero for every purpose


@dataclass(frozen=True, eq=False)
class Experts:
    """J mixtures of L Gaussians in one dimension, with equidistant means: w_j = softmax(ζ_j).

    Everywhere `u` is (..., J), one response per expert, and `tau` broadcasts against it: the standard deviation of the
    noise on each response, at any value from 0 on.

    Parameters
    ----------
    logits : ndarray, (J, L)
        The paper's ζ.
    reach : float
        The means lie in ±reach: the paper's γ.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> experts = hp.Experts(np.zeros((2, 5)), reach=1.0)  # two filters, five components
    >>> experts.log_density(np.zeros((10, 2)), 0.1).shape
    (10, 2)
    """

    logits: FloatArray
    reach: float = 1.0
    __repr__ = describe_fields

    def __post_init__(self) -> None:
        logits = np.array(self.logits, dtype=np.float64)
        if logits.ndim != 2 or logits.shape[0] < 1 or logits.shape[1] < 2:
            raise InvalidInputError(f"logits have shape {logits.shape}; expected (experts, components ≥ 2)")
        if not np.isfinite(logits).all():
            raise InvalidInputError("logits hold NaN or infinite values; a weight of zero is not allowed")
        if np.ptp(logits, axis=1).max() > LARGEST_SPREAD:
            raise InvalidInputError(f"logits of one expert differ by more than {LARGEST_SPREAD:g}; bring them together")
        if not REACHES[0] <= self.reach <= REACHES[1]:
            raise InvalidInputError(f"reach is {self.reach}; expected a number from {REACHES[0]:g} to {REACHES[1]:g}")
        logits.flags.writeable = False
        object.__setattr__(self, "logits", logits)

    @classmethod
    def student(cls, count: int, components: int = PAPER_COMPONENTS, reach: float = 1.0) -> Experts:
        """Heavy tails like those of images, w_jl ∝ 1 / (1 + α mu_l²), Student's t with one degree of freedom.

        The paper's start (`paper/learning/ipalm.py`) is flat far from zero, and weights that are rarely seen stay as
        they start.
        """
        means = np.linspace(-reach, reach, components)
        return cls(np.tile(-np.log1p(ALPHA * means**2), (count, 1)), reach)

    @cached_property
    def means(self) -> FloatArray:
        """mu_l, (L,)."""
        return np.linspace(-self.reach, self.reach, self.logits.shape[1])

    @property
    def base_sigma(self) -> float:
        """sigma_0, the width of every component without noise."""
        return float(2.0 * self.reach / (self.logits.shape[1] - 1))

    @cached_property
    def log_weights(self) -> FloatArray:
        """log w_jl, (J, L)."""
        return np.asarray(log_softmax(self.logits, axis=1))

    @property
    def weights(self) -> FloatArray:
        """w_jl, (J, L), on the unit simplex for each j."""
        return np.exp(self.log_weights)

    def moments(
        self, u: FloatArray, tau: ArrayLike, *, want_log_density: bool = True, want_variance: bool = True
    ) -> MixtureMoments:
        """log psi_j(u), and mean and variance of mu under the responsibilities: (..., J), or empty if not wanted."""
        u = np.asarray(u, np.float64)
        shape = u.shape
        if shape[-1:] != self.logits.shape[:1]:
            raise InvalidInputError(f"responses have shape {shape}; expected {self.logits.shape[0]} in the last axis")
        variances = np.broadcast_to(self.base_sigma**2 + np.square(tau), shape)
        rows = (-1, self.logits.shape[0])
        given = (u.reshape(rows), variances.reshape(rows), self.log_weights, self.means)
        flat = mixture_moments(*given, want_log_density=want_log_density, want_variance=want_variance)
        return MixtureMoments(*(values.reshape(shape) if values.size == u.size else values for values in flat))

    def log_density(self, u: FloatArray, tau: ArrayLike) -> FloatArray:
        """log psi_j(u, t), Eq. (6)."""
        return self.moments(u, tau, want_variance=False).log_density

    def first_derivative(self, u: FloatArray, tau: ArrayLike) -> FloatArray:
        """∂ log psi_j / ∂u = (E[mu] − u) / sigma_j²."""
        mean = self.moments(u, tau, want_log_density=False, want_variance=False).mean
        return (mean - u) / (self.base_sigma**2 + np.square(tau))

    def posterior(self, u: FloatArray, tau: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the clean response given the noisy one u, accurate even for tau → 0 and tau → ∞."""
        moments = self.moments(u, tau, want_log_density=False)
        variance = self.base_sigma**2 + np.square(tau)
        shrink = np.square(tau) / variance  # 0 without noise, 1 under much noise
        mean = self.base_sigma**2 / variance * u + shrink * moments.mean
        return mean, shrink * self.base_sigma**2 + shrink**2 * moments.variance

    def posterior_sample(self, u: FloatArray, tau: ArrayLike, *, rng: np.random.Generator) -> FloatArray:
        """An exact draw of each clean response given the noisy one u: a component by its responsibility, a Gaussian."""
        u = np.asarray(u, np.float64)
        variance = np.broadcast_to(self.base_sigma**2 + np.square(tau), u.shape)
        towards = np.empty(u.shape)
        for j, log_weights in enumerate(self.log_weights):
            own, width, drawn = (x[..., j].reshape(-1) for x in (u, variance, towards))
            for start in range(0, len(own), DRAWN_TOGETHER):
                some = slice(start, start + DRAWN_TOGETHER)
                logs = log_weights - (own[some, None] - self.means) ** 2 / (2.0 * width[some, None])  # (n, L)
                cumulative = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
                component = (cumulative[:, :-1] < rng.random((len(logs), 1)) * cumulative[:, -1:]).sum(axis=1)
                drawn[some] = self.means[component]
            towards[..., j] = drawn.reshape(u.shape[:-1])
        shrink = 1.0 - self.base_sigma**2 / variance
        spread = self.base_sigma * np.sqrt(shrink)
        return np.asarray((1.0 - shrink) * u + shrink * towards + spread * rng.standard_normal(u.shape))

    def sample(self, count: int, tau: ArrayLike, *, rng: np.random.Generator) -> FloatArray:
        """Draws of the noisy responses, (count, J): a component by its weight, then a Gaussian around its mean."""
        cumulative = np.cumsum(self.weights, axis=1)
        uniform = rng.random((count, len(cumulative)))
        component = np.empty(uniform.shape, dtype=np.intp)
        for j, steps in enumerate(cumulative):
            component[:, j] = np.searchsorted(steps[:-1], uniform[:, j], side="right")
        width = np.sqrt(self.base_sigma**2 + np.square(tau))
        return self.means[component] + width * rng.standard_normal(uniform.shape)


def experts_from(log_weights: FloatArray, reach: FloatArray) -> Experts:
    """The experts of a file: log w_jl (J, L) and the reach (1,); refuses weights off the simplex."""
    if log_weights.ndim != 2 or log_weights.size == 0 or reach.shape != (1,):
        raise PriorFileError(f"log_weights {log_weights.shape} and reach {reach.shape} are not (J, L) and (1,)")
    with np.errstate(over="ignore"):
        totals = np.exp(log_weights.astype(np.float64)).sum(axis=1)
    if not np.abs(totals - 1.0).max() < 1e-4:
        worst = int(np.abs(totals - 1.0).argmax())
        raise PriorFileError(f"the weights of expert {worst} sum to {totals[worst]:.6g} instead of 1")
    return Experts(log_weights, float(reach[0]))
