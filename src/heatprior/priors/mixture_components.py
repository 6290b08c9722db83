"""What noisy patches look like to the components of a mixture of Gaussians: responses, densities, responsibilities.

Responses along the axes of a shape do not depend on the noise level, so patches of many levels are turned together,
and each patch has a level of its own: kernels/noisy_gaussians.py, no slower than matrix products for a shared level.
Patches come last: (K, d, n) for K shapes, d axes and n patches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.noisy_gaussians import log_densities, mean_precisions
from heatprior.log_sums import log_sum_exp, softmax

if TYPE_CHECKING:
    from heatprior.priors.gaussian_mixture import GaussianMixturePrior


@dataclass(frozen=True, eq=False)
class Components:
    """The components of a prior, as seen by patches y (n, a) of noise levels sigma (n,)."""

    prior: GaussianMixturePrior
    y: FloatArray
    sigma: FloatArray

    @cached_property
    def noise(self) -> FloatArray:
        """sigma², (n,)."""
        return np.square(self.sigma)

    @cached_property
    def responses(self) -> FloatArray:
        """Along the axes of each shape: (K, d, n)."""
        return self.prior.turns @ (self.prior.basis @ self.y.T)

    @cached_property
    def log_densities(self) -> FloatArray:
        """log π_kg G(y; 0, c_g Σ_k + sigma² Id): (K, G, n)."""
        return log_densities(self.responses, self.prior.signals, self.noise, self.prior.log_weights)

    @property
    def log_density(self) -> FloatArray:
        """Of the mixture: (n,)."""
        return np.asarray(log_sum_exp(self.log_densities, axis=(0, 1)))

    @cached_property
    def responsibilities(self) -> FloatArray:
        """P(k, g | y), (K, G, n)."""
        return np.asarray(softmax(self.log_densities, axis=(0, 1)))

    def precisions(self, shape: int) -> FloatArray:
        """Σ_g P(k, g | y) / (c_g λ_d + sigma²) along the axes of one shape k: (d, n)."""
        return mean_precisions(self.responsibilities[shape], self.prior.signals[shape], self.noise)

    def score(self) -> FloatArray:
        """−Σ_kg P(k, g | y) (c_g Σ_k + sigma² Id)⁻¹ y: (n, a)."""
        total = np.zeros(self.y.T.shape)
        for k, axes in enumerate(self.prior.axes):
            total -= axes.T @ (self.precisions(k) * self.responses[k])
        return total.T

    def posterior(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each pixel of the clean patch, (n, a) each, without what brightness adds to the latter.

        The variance is what the components leave on average, and what their means differ by.
        """
        removed = -self.noise * self.score().T  # (a, n)
        spread = np.zeros(removed.shape)
        for k, axes in enumerate(self.prior.axes):
            parts, u = self.responsibilities[k], self.responses[k]
            left = self.noise * parts.sum(axis=0) - self.noise**2 * self.precisions(k)  # Σ_g P c λ σ² / (c λ + σ²)
            spread += (axes**2).T @ left
            for part, signals in zip(parts, self.prior.signals[k], strict=True):
                own = axes.T @ (self.noise / (signals[:, None] + self.noise) * u)  # what one component removes
                spread += part * (own - removed) ** 2
        return self.y - removed.T, spread.T

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """One draw of each clean patch: a component by its responsibility, then a Gaussian. (n, a), as bright as y."""
        contrasts = len(self.prior.contrasts)
        cumulative = np.cumsum(self.responsibilities.reshape(-1, len(self.y)), axis=0)
        chosen = (cumulative[:-1] < rng.random(len(self.y)) * cumulative[-1]).sum(axis=0)
        patches = np.repeat(self.y.mean(axis=1, keepdims=True), self.y.shape[1], axis=1)
        for component in np.unique(chosen):
            (of_it,) = np.nonzero(chosen == component)
            shape, contrast = divmod(int(component), contrasts)
            signals = self.prior.signals[shape, contrast][:, None]  # (d, 1)
            kept = signals / (signals + self.noise[of_it])
            spread = np.sqrt(kept * self.noise[of_it])
            coordinates = kept * self.responses[shape][:, of_it] + spread * rng.standard_normal(spread.shape)
            patches[of_it] += coordinates.T @ self.prior.axes[shape]
        return patches
