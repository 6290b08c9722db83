"""A mixture of zero-mean Gaussians with contrasts: many bases where the product of experts has one.

f(p, t) = Σ_k Σ_g π_kg G(p; 0, c_g Σ_k + sigma² Id), sigma = sqrt(2t), on patches without their brightness, which is not
modelled. With the one contrast c = 1 it is the prior of EPLL (Zoran and Weiss 2011); with several, each of the K shapes
appears at G contrasts (a Gaussian scale mixture). It is Eq. (2) of the paper with any covariance: noise adds sigma² to
every eigenvalue and touches nothing else, so the diffusion is exact without any condition of orthogonality.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isqrt
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, DTypeLike

from heatprior.arrays import FloatArray, IntArray
from heatprior.display import as_html, describe_prior, tile
from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.kernels.noisy_gaussians import LOG_2PI, log_densities, mean_precisions
from heatprior.kernels.threads import for_each, products_in_one_thread
from heatprior.locks import cached_property
from heatprior.priors.arguments import as_sigmas_of, evaluate
from heatprior.priors.filters import FilterBank
from heatprior.priors.mixture_step import StepSettings, cells_of_mixture, step_of_mixture, step_settings_on
from heatprior.priors.protocol import NoiseDirections, NoiseLikelihood, Posterior, with_card
from heatprior.priors.schedules import OF_MIXTURES, Schedules, schedules_on
from heatprior.scipy_subset import log_sum_exp, softmax
from heatprior.store import PriorFile, write_prior_file

CHUNK_NUMBERS = 1 << 20  # that each thread has in memory at once
LEAST_VARIANCE = 1e-12  # of a direction, over grey levels squared: less is no density
LEAST_WEIGHT = 1e-300  # of a component: none may be exactly zero
WEAK_SPREAD = 0.1  # of the noise: clean patches on average; a mixture knows better what they look like than filters do
FEWEST_AXES = 6  # at least every sixth axis is used


@dataclass(frozen=True, eq=False)
class GaussianMixturePrior:
    """K covariances, each at G contrasts: f(p) = Σ_k Σ_g π_kg G(p; 0, c_g Σ_k).

    Covariances are in the coordinates of the cosine basis without its constant, so d = b² − 1. Patches `y` are (...,
    b·b), float32 or float64, with grey levels scaled to [0, 1]; results have the same type.

    Parameters
    ----------
    covariances : ndarray, (K, d, d)
        The shapes Σ_k.
    log_weights : ndarray, (K, G)
        Log-weights log π_kg of the components, up to a constant.
    contrasts : ndarray, (G,), optional
        The contrasts c_g; default: one contrast of 1.
    card : mapping, optional
        Provenance of the prior; stored in its file.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> prior = hp.load("mixture")
    >>> noisy = prior.sample(5, 0.1, rng=np.random.default_rng(0))
    >>> prior.log_prob(noisy, 0.1).shape, prior.posterior(noisy, 0.1).variance.shape
    ((5,), (5, 64))
    """

    kind: ClassVar[str] = "mixture"
    covariances: FloatArray
    log_weights: FloatArray
    contrasts: FloatArray = field(default_factory=lambda: np.ones(1))
    card: Mapping[str, Any] = field(default_factory=dict)
    variances: FloatArray = field(init=False)  # along the axes of each shape at contrast one, largest first: (K, d)
    turns: FloatArray = field(init=False)  # the axes as rows, in the coordinates of the cosine basis: (K, d, d)

    def __repr__(self) -> str:
        shapes, contrasts = self.log_weights.shape
        return describe_prior(self, f"{shapes} shapes of {self.size}×{self.size} pixels at {contrasts} contrasts")

    def _repr_html_(self) -> str:
        frequent = np.argsort(-np.exp(self.log_weights).sum(axis=1), kind="stable")
        leading = [self.axes[k, 0].reshape(self.size, self.size) for k in frequent]
        return as_html(repr(self), tile(leading), 3)

    def __post_init__(self) -> None:
        covariances, log_weights, contrasts = (
            np.array(x, np.float64) for x in (self.covariances, self.log_weights, self.contrasts)
        )
        if covariances.ndim != 3 or covariances.shape[1] != covariances.shape[2] or 0 in covariances.shape:
            raise InvalidInputError(f"covariances have shape {covariances.shape}; expected (K, d, d)")
        if isqrt(covariances.shape[1] + 1) ** 2 != covariances.shape[1] + 1:
            raise InvalidInputError(f"covariances have {covariances.shape[1]} dimensions; expected b² − 1")
        if contrasts.ndim != 1 or log_weights.shape != (len(covariances), len(contrasts)):
            raise InvalidInputError(
                f"log_weights {log_weights.shape} and contrasts {contrasts.shape} do not match {len(covariances)} "
                "covariances; expected (K, G) and (G,)"
            )
        if not all(np.isfinite(x).all() for x in (covariances, log_weights, contrasts)):
            raise InvalidInputError("the parameters of the mixture hold NaN or infinite values")
        if not contrasts.min() > 0:
            raise InvalidInputError(f"the least contrast is {contrasts.min():g}; contrasts must be positive")
        log_weights = np.maximum(log_weights, log_weights.max() + np.log(LEAST_WEIGHT))
        values = {
            "covariances": (covariances + covariances.swapaxes(1, 2)) / 2.0,
            "log_weights": log_weights - log_sum_exp(log_weights),
            "contrasts": contrasts,
        }
        for name, value in values.items():
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        with products_in_one_thread():  # these matrices are too small to share
            variances, axes = np.linalg.eigh(self.covariances)
        object.__setattr__(self, "variances", np.ascontiguousarray(variances[:, ::-1]))
        object.__setattr__(self, "turns", np.ascontiguousarray(axes[:, :, ::-1].swapaxes(1, 2)))
        object.__setattr__(self, "card", dict(self.card))
        if not self.variances.min() * contrasts.min() > LEAST_VARIANCE:
            worst = int(self.variances.min(axis=1).argmin())
            raise InvalidInputError(
                f"covariance {worst} has an eigenvalue of {self.variances[worst].min():.2g}; all must be positive"
            )

    @property
    def size(self) -> int:
        """b, the side of a patch."""
        return isqrt(self.covariances.shape[1] + 1)

    @property
    def patch_shape(self) -> tuple[int, int]:
        """(b, b)."""
        return (self.size, self.size)

    @property
    def schedules(self) -> Schedules:
        """The schedules of half-quadratic splitting on the card."""
        return schedules_on(self.card, OF_MIXTURES)

    @property
    def step_settings(self) -> StepSettings:
        """The settings of the denoising step on the card."""
        return step_settings_on(self.card, self.size, self.log_weights.shape)

    @cached_property
    def noise_likelihood(self) -> NoiseLikelihood:
        """The likelihood of a noise level: log-densities of patches of unknown contrast.

        f_g(y, sigma) = Σ_k π_k|g G(Q y; 0, c_g Q Σ_k Qᵀ + sigma² Id): what the mixture says of patches of its contrast
        c_g, in some orthonormal directions Q, here axes of the mean covariance: Gaussians in the others integrate to
        one. The prior itself is Σ_g π_g f_g; an image has weights of its own, which are fitted to it; the mixture knows
        patches well enough for each to be a block. The axes of Q Σ_k Qᵀ serve all contrasts and noise levels, so a
        patch is turned once for each shape.
        """
        shares = np.exp(self.log_weights) @ self.contrasts  # (K,)
        variances, axes = np.linalg.eigh(np.tensordot(shares, self.covariances, 1))
        fewest = -(-len(variances) // FEWEST_AXES)
        return NoiseLikelihood(
            self.size,
            NoiseDirections(axes.T @ self.basis, np.sqrt(variances), WEAK_SPREAD, fewest),
            contrast_weights(self),
            stride=4,
            most_patches=50_000,  # each costs more than with filters
            photograph_error=(3.0 / 255, 0.02),  # fitted to sixteen validation images, as that of patch priors
            log_densities=self._log_densities,
            block=1,
        )

    def _log_densities(self, image: FloatArray, sigmas: FloatArray, chosen: IntArray, stride: int) -> FloatArray:
        return mixture_densities(self, image, sigmas, self.noise_likelihood.directions.unit[chosen], stride)

    @property
    def parameters(self) -> int:
        """The number of learnt parameters: d (d + 1) / 2 per covariance, K G weights, and those of the step."""
        shapes, dimension, _ = self.covariances.shape
        learnt = self.log_weights.size + self.step_settings.parameters
        return int(shapes * dimension * (dimension + 1) // 2 + learnt)

    @cached_property
    def basis(self) -> FloatArray:
        """The cosine basis without its constant, (d, a)."""
        return FilterBank.dct(self.size).matrix

    @cached_property
    def axes(self) -> FloatArray:
        """The axes of each shape as patches: (K, d, a)."""
        return self.turns @ self.basis

    @cached_property
    def signals(self) -> FloatArray:
        """c_g λ_kd: the variances of clean patches along the axes of each component, (K, G, d)."""
        return self.contrasts[:, None] * self.variances[:, None, :]

    def variances_at(self, sigma: float) -> FloatArray:
        """c_g λ_kd + sigma²: of noisy patches along the axes of each component, (K, G, d)."""
        return self.signals + sigma**2

    def log_prob(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """log f(y, t) on patches without their brightness: (...)."""
        return self._evaluate(lambda components, _: (components.log_density,), y, sigma)[0]

    def score(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """∇ log f(y, t) = −Σ_kg P(k, g | y) (c_g Σ_k + sigma² Id)⁻¹ y: (..., a)."""
        return self._evaluate(lambda components, _: (components.score(),), y, sigma)[0]

    def posterior(self, y: FloatArray, sigma: ArrayLike) -> Posterior:
        """Mean and variance, pixel by pixel, of the clean patch given the noisy y: (..., a) each.

        Brightness is known only through y: its mean is that of y, its variance sigma² / a for each pixel.
        """

        def moments(components: Components, _: int) -> tuple[FloatArray, FloatArray]:
            mean, spread = components.posterior()
            return mean, spread + components.noise[:, None] / self.size**2

        return Posterior(*self._evaluate(moments, y, sigma))

    def posterior_sample(self, y: FloatArray, sigma: ArrayLike, *, rng: np.random.Generator) -> FloatArray:
        """An exact draw of the clean patch given each noisy one: (..., a); brightness as observed, with its error."""
        seeds = rng.integers(2**63, size=max(1, np.asarray(y).size // self.size**2))  # one for each chunk

        def draw(components: Components, start: int) -> tuple[FloatArray]:
            own = np.random.default_rng(int(seeds[start]))
            brightness = components.sigma / self.size * own.standard_normal(len(components.sigma))
            return (components.draw(own) + brightness[:, None],)

        return self._evaluate(draw, y, sigma)[0]

    def sample(self, count: int, sigma: ArrayLike = 0.0, *, rng: np.random.Generator) -> FloatArray:
        """Exact draws of noisy patches without brightness, (count, a): a component by its weight, then a Gaussian."""
        sigmas = as_sigmas_of(count, sigma)[:, None]
        weights = np.exp(self.log_weights)
        component = rng.choice(weights.size, size=count, p=(weights / weights.sum()).reshape(-1))
        shapes, contrasts = np.divmod(component, len(self.contrasts))
        widths = np.sqrt(self.contrasts[contrasts, None] * self.variances[shapes] + sigmas**2)
        coordinates = widths * rng.standard_normal(widths.shape)
        patches = np.empty((count, self.size**2))
        for k in np.unique(shapes):
            of_shape = shapes == k
            patches[of_shape] = coordinates[of_shape] @ self.axes[k]
        return patches

    denoise_step, cells = step_of_mixture, cells_of_mixture  # as `Prior` asks for them
    takes_guide: ClassVar[bool] = True

    def facts(self) -> dict[str, object]:
        """A summary of the prior, for printing."""
        shapes, contrasts = self.log_weights.shape
        spread = f"{contrasts}, from {self.contrasts.min():.3g} to {self.contrasts.max():.3g}"
        facts = {"patch size": f"{self.size}×{self.size} pixels", "shapes": shapes, "contrasts": spread}
        return with_card(self, **facts)

    def save(self, path: str | PathLike[str], *, dtype: DTypeLike = np.float32) -> None:
        """Write the prior as one safetensors file, parameters in float32, or in float16: half the size.

        Covariances are stored as their Cholesky factors, row by row, so that rounding cannot make them indefinite.
        """
        lower = np.tril_indices(self.covariances.shape[1])
        factors = np.linalg.cholesky(self.covariances)[:, lower[0], lower[1]]
        tensors: dict[str, FloatArray] = {
            "factors": factors.astype(dtype),
            "log_weights": self.log_weights.astype(np.float32),
            "contrasts": self.contrasts,
        }
        write_prior_file(Path(path), PriorFile(self.kind, tensors, self.card))

    @classmethod
    def from_file(cls, contents: PriorFile) -> GaussianMixturePrior:
        """The inverse of `save`; refuses weights that do not sum to one and covariances that are none."""
        factors, log_weights, contrasts = contents.arrays("factors", "log_weights", "contrasts")
        entries = factors.shape[-1] if factors.ndim == 2 else 0
        dimension = (isqrt(8 * entries + 1) - 1) // 2
        if dimension * (dimension + 1) // 2 != entries or entries == 0 or log_weights.ndim != 2:
            raise PriorFileError(
                f"factors {factors.shape} and log_weights {log_weights.shape} are not (K, d (d + 1) / 2) and (K, G)"
            )
        total = np.exp(np.minimum(log_weights.astype(np.float64), 1.0)).sum()
        if not abs(total - 1.0) < 1e-4:
            raise PriorFileError(f"the weights of the components sum to {total:.6g} instead of 1")
        lower = np.zeros((len(factors), dimension, dimension))
        lower[:, *np.tril_indices(dimension)] = factors
        return cls(lower @ lower.swapaxes(1, 2), log_weights, contrasts, contents.card)

    def _evaluate(
        self, function: Callable[[Components, int], tuple[FloatArray, ...]], y: FloatArray, sigma: ArrayLike
    ) -> tuple[FloatArray, ...]:
        """Call `function` on the components of runs of patches that begin at a number."""
        chunk = max(1, CHUNK_NUMBERS // (self.covariances.size // self.covariances.shape[-1]))
        return evaluate(lambda at, y, sigma: function(Components(self, y, sigma), at), y, sigma, self.size, chunk)


@dataclass(frozen=True, eq=False)
class Components:
    """The components of a prior, seen by patches y (n, a) of noise levels sigma (n,): responses, responsibilities.

    Responses along the axes of a shape do not depend on the noise level, so patches of many levels are turned together,
    and each patch has a level of its own: kernels/noisy_gaussians.py, no slower than matrix products for a shared
    level. Patches come last: (K, d, n) for K shapes, d axes and n patches.
    """

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
        return np.asarray(log_densities(self.responses, self.prior.signals, self.noise, self.prior.log_weights))

    @property
    def log_density(self) -> FloatArray:
        """The log-density of the mixture: (n,)."""
        return np.asarray(log_sum_exp(self.log_densities, axis=(0, 1)))

    @cached_property
    def responsibilities(self) -> FloatArray:
        """P(k, g | y), (K, G, n)."""
        return np.asarray(softmax(self.log_densities, axis=(0, 1)))

    def precisions(self, shape: int) -> FloatArray:
        """Σ_g P(k, g | y) / (c_g λ_d + sigma²) along the axes of one shape k: (d, n)."""
        return np.asarray(mean_precisions(self.responsibilities[shape], self.prior.signals[shape], self.noise))

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


def contrast_weights(prior: GaussianMixturePrior) -> FloatArray:
    """π_g, how often each contrast is: (G,)."""
    return np.asarray(np.exp(log_sum_exp(prior.log_weights, axis=0)))


def mixture_densities(
    prior: GaussianMixturePrior, image: FloatArray, sigmas: FloatArray, directions: FloatArray, stride: int
) -> FloatArray:
    """Log-densities of the patches at every stride-th pixel, (S, G, rows, columns), in float32; directions: (m, a)."""
    windows = sliding_window_view(np.asarray(image, np.float32), (prior.size, prior.size))[::stride, ::stride]
    shape = windows.shape[:2]
    u = windows.reshape(-1, prior.size**2) @ directions.T.astype(np.float32)
    turn = directions @ prior.basis.T  # (m, d)
    with products_in_one_thread():  # they are small
        variances, axes = np.linalg.eigh(turn @ prior.covariances @ turn.T)  # (K, m), (K, m, m)
    noisy = prior.contrasts[:, None] * variances[:, None, None] + np.square(sigmas)[:, None, None]  # (K, S, G, m)
    shapes, levels, contrasts, dimension = noisy.shape
    precisions = np.ascontiguousarray((-0.5 / noisy).reshape(shapes, -1, dimension).swapaxes(1, 2), np.float32)
    within = prior.log_weights - np.log(contrast_weights(prior))  # (K, G)
    constants = within[:, None] - 0.5 * (np.log(noisy) + LOG_2PI).sum(axis=-1)
    constants = constants.reshape(shapes, 1, -1).astype(np.float32)
    axes = axes.astype(np.float32)
    sums = np.empty((levels, contrasts, len(u)), np.float32)
    chunk = max(16, CHUNK_NUMBERS // noisy[..., 0].size)

    def fill(start: int) -> None:
        responses = np.square(u[start : start + chunk] @ axes)  # (K, n, m)
        logs = responses @ precisions
        logs += constants
        highest = logs.max(axis=0)
        logs -= highest
        np.exp(logs, out=logs)
        found = np.log(logs.sum(axis=0)) + highest  # (n, S G)
        sums[..., start : start + chunk] = found.T.reshape(levels, contrasts, -1)

    for_each(fill, range(0, len(u), chunk))
    return sums.reshape(*sums.shape[:2], *shape)
