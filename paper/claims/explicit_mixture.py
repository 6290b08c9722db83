"""The patch prior multiplied out (Theorem 1), of which the heat equation holds whatever the filters are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.priors.patch import PatchPrior
from heatprior.scipy_subset import log_sum_exp, softmax

MOST_EXPLICIT_COMPONENTS = 100_000
NULL_SPACE = 1e-10  # eigenvalues of the precision below this fraction of the largest are directions it does not see


@dataclass(frozen=True, eq=False)
class ExplicitMixture:
    """Theorem 1 taken literally: the product of experts multiplied out into one homoscedastic Gaussian mixture.

    It has C = L^J components, so it is for tiny J and L: to see what the product means, and as the oracle of the tests,
    since its diffusion, Σ ↦ Σ + sigma² Id, needs no orthogonality. Log-weights (C,), means (C, a), and one precision
    (a, a), singular off the span of the filters.
    """

    log_weights: FloatArray
    means: FloatArray
    precision: FloatArray

    @classmethod
    def of(cls, prior: PatchPrior) -> ExplicitMixture:
        """The density of a patch prior written out as L^J Gaussians on the patch space. For tiny J and L only.

        The precision is Eq. (7); the means are Σ_a (1/sigma_0²) Σ_j k_j mu_l(j): the paper lacks the 1/sigma_0².
        """
        experts, components = prior.experts.logits.shape
        if components**experts > MOST_EXPLICIT_COMPONENTS:
            raise InvalidInputError(
                f"{components}^{experts} components are too many to write out; at most {MOST_EXPLICIT_COMPONENTS}"
            )
        matrix, precision_of_response = prior.filters.matrix, prior.experts.base_sigma**-2
        precision = precision_of_response * matrix.T @ matrix
        choices = np.array(list(product(range(components), repeat=experts)))  # (L^J, J)
        covariance = np.linalg.pinv(precision, hermitian=True)
        means = precision_of_response * prior.experts.means[choices] @ matrix @ covariance
        log_weights = prior.experts.log_weights[np.arange(experts), choices].sum(axis=1)
        return cls(log_weights, means, precision)

    @cached_property
    def _span(self) -> tuple[FloatArray, FloatArray]:
        """Orthonormal axes (a, d) of the span and the variance (d,) along each."""
        eigenvalues, axes = np.linalg.eigh(self.precision)
        seen = eigenvalues > NULL_SPACE * eigenvalues.max()
        return axes[:, seen], 1.0 / eigenvalues[seen]

    def _parts(self, y: FloatArray, sigma: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Logarithm of each weighted component at y (..., C), and (mean − y) / variance along the axes (..., C, d)."""
        axes, variances = self._span
        widened = variances + np.asarray(sigma, dtype=np.float64)[..., None, None] ** 2  # (..., 1, d)
        offsets = (self.means @ axes) - (y @ axes)[..., None, :]  # (..., C, d)
        exponents = -0.5 * (offsets**2 / widened + np.log(2.0 * np.pi * widened)).sum(axis=-1)
        return self.log_weights + exponents, offsets / widened

    def log_prob(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """log Σ_c w_c G(y; mean_c, Σ + sigma² Id) on the span, Eq. (2): (...)."""
        return np.asarray(log_sum_exp(self._parts(y, sigma)[0], axis=-1))

    def score(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """Its gradient, (..., a)."""
        logs, pulls = self._parts(y, sigma)
        responsibilities = softmax(logs, axis=-1)
        return np.asarray(np.einsum("...c,...cd->...d", responsibilities, pulls) @ self._span[0].T)

    def sample(self, count: int, sigma: ArrayLike = 0.0, *, rng: np.random.Generator) -> FloatArray:
        """Draws on the span, (count, a)."""
        axes, variances = self._span
        chosen = rng.choice(len(self.means), size=count, p=softmax(self.log_weights))
        widths = np.sqrt(variances + np.broadcast_to(np.asarray(sigma, dtype=np.float64), (count,))[:, None] ** 2)
        return np.asarray(self.means[chosen] + (widths * rng.standard_normal(widths.shape)) @ axes.T)
