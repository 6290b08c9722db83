"""A mixture of zero-mean Gaussians with contrasts: many bases where the product of experts has one.

f(p, t) = Σ_k Σ_g π_kg G(p; 0, c_g Σ_k + sigma² Id), sigma = sqrt(2t), on patches without their brightness, which is not
modelled. With the one contrast c = 1 it is the prior of EPLL (Zoran and Weiss 2011); with several, each of the K shapes
appears at G contrasts (a Gaussian scale mixture). It is Eq. (2) of the paper with any covariance: noise adds sigma² to
every eigenvalue and touches nothing else, so the diffusion is exact without any condition of orthogonality.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import isqrt
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.kernels.threads import for_each, products_in_one_thread
from heatprior.log_sums import log_sum_exp
from heatprior.priors.arguments import as_patches, as_sigma, in_double
from heatprior.priors.filters import FilterBank
from heatprior.priors.mixture_components import Components
from heatprior.priors.mixture_likelihood import MixtureLikelihood
from heatprior.priors.mixture_step import cells_of_mixture, step_of_mixture
from heatprior.priors.protocol import Posterior
from heatprior.priors.schedules import OF_MIXTURES, Schedules, schedules_on
from heatprior.priors.step_settings import StepSettings, step_settings_on
from heatprior.priors.stored import with_card
from heatprior.store import PriorFile, write_prior_file

KIND = "mixture"
CHUNK_NUMBERS = 1 << 20  # responses that each thread has in memory at once
LEAST_VARIANCE = 1e-12  # of a direction, over grey levels squared: less is no density
LEAST_WEIGHT = 1e-300  # of a component: none may be exactly zero


@dataclass(frozen=True, eq=False)
class GaussianMixturePrior:
    """K covariances, each at G contrasts: f(p) = Σ_k Σ_g π_kg G(p; 0, c_g Σ_k).

    Covariances are in the coordinates of the cosine basis without its constant, so d = b² − 1. Patches `y` are (...,
    b·b), float32 or float64, with grey levels scaled to [0, 1]; results have the same type.

    Parameters
    ----------
    covariances : ndarray, (K, d, d)
        Σ_k, the shapes.
    log_weights : ndarray, (K, G)
        log π_kg, up to a constant.
    contrasts : ndarray, (G,), optional
        c_g; one contrast of 1 if left out.
    card : mapping, optional
        Where the prior comes from; kept in its file.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> prior = hp.load("mixture")
    >>> noisy = prior.sample(5, 0.1, rng=np.random.default_rng(0))
    >>> prior.log_prob(noisy, 0.1).shape, prior.posterior(noisy, 0.1).variance.shape
    ((5,), (5, 64))
    """

    kind: ClassVar[str] = KIND
    covariances: FloatArray
    log_weights: FloatArray
    contrasts: FloatArray = field(default_factory=lambda: np.ones(1))
    card: Mapping[str, Any] = field(default_factory=dict)

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
        """Of half-quadratic splitting, as the card says."""
        return schedules_on(self.card, OF_MIXTURES)

    @property
    def step_settings(self) -> StepSettings:
        """How patches are taken and averaged, as the card says."""
        return step_settings_on(self.card, self.size, self.log_weights.shape)

    @cached_property
    def noise_likelihood(self) -> MixtureLikelihood:
        """The likelihood by which noise is estimated from patches."""
        return MixtureLikelihood(self)

    @property
    def parameters(self) -> int:
        """How many numbers were learnt: d (d + 1) / 2 of each covariance, K G weights, and how patches are averaged."""
        shapes, dimension, _ = self.covariances.shape
        learnt = self.log_weights.size + self.step_settings.parameters
        return int(shapes * dimension * (dimension + 1) // 2 + learnt)

    @cached_property
    def basis(self) -> FloatArray:
        """The cosine basis without its constant, (d, a)."""
        return FilterBank.dct(self.size).matrix

    @cached_property
    def _eigen(self) -> tuple[FloatArray, FloatArray]:
        with products_in_one_thread():  # these matrices are too small to share
            variances, axes = np.linalg.eigh(self.covariances)
        return np.ascontiguousarray(variances[:, ::-1]), np.ascontiguousarray(axes[:, :, ::-1].swapaxes(1, 2))

    @property
    def variances(self) -> FloatArray:
        """Along the axes of each shape at contrast one, largest first: (K, d)."""
        return self._eigen[0]

    @property
    def turns(self) -> FloatArray:
        """The axes of each shape as rows, in the coordinates of the cosine basis: (K, d, d)."""
        return self._eigen[1]

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
        y = as_patches(y, self.size)
        result = np.empty(y.shape[:-1], y.dtype)
        flat = result.reshape(-1)

        def fill(rows: slice, components: Components) -> None:
            flat[rows] = components.log_density

        self._for_each_chunk(fill, y, sigma)
        return result

    def score(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """∇ log f(y, t) = −Σ_kg P(k, g | y) (c_g Σ_k + sigma² Id)⁻¹ y: (..., a)."""
        y = as_patches(y, self.size)
        result = np.empty(y.shape, y.dtype)
        flat = result.reshape(-1, self.size**2)

        def fill(rows: slice, components: Components) -> None:
            flat[rows] = components.score()

        self._for_each_chunk(fill, y, sigma)
        return result

    def posterior(self, y: FloatArray, sigma: ArrayLike) -> Posterior:
        """Mean and variance, pixel by pixel, of the clean patch given the noisy y: (..., a) each.

        Brightness is known only through y: its mean is that of y, its variance sigma² / a for each pixel.
        """
        y = as_patches(y, self.size)
        mean, variance = np.empty(y.shape, y.dtype), np.empty(y.shape, y.dtype)
        flat_mean, flat_variance = (x.reshape(-1, self.size**2) for x in (mean, variance))

        def fill(rows: slice, components: Components) -> None:
            flat_mean[rows], spread = components.posterior()
            flat_variance[rows] = spread + components.noise[:, None] / self.size**2

        self._for_each_chunk(fill, y, sigma)
        return Posterior(mean, variance)

    def posterior_sample(self, y: FloatArray, sigma: ArrayLike, *, rng: np.random.Generator) -> FloatArray:
        """An exact draw of the clean patch given each noisy one: (..., a); brightness as observed, with its error."""
        y = as_patches(y, self.size)
        result = np.empty(y.shape)
        flat = result.reshape(-1, self.size**2)
        seeds = rng.integers(2**63, size=len(flat))  # one is used for each chunk, wherever it begins

        def fill(rows: slice, components: Components) -> None:
            own = np.random.default_rng(int(seeds[rows.start]))
            brightness = components.sigma / self.size * own.standard_normal(len(components.sigma))
            flat[rows] = components.draw(own) + brightness[:, None]

        self._for_each_chunk(fill, y, sigma)
        return result

    def sample(self, count: int, sigma: ArrayLike = 0.0, *, rng: np.random.Generator) -> FloatArray:
        """Exact draws of noisy patches without brightness, (count, a): a component by its weight, then a Gaussian."""
        if count < 0:
            raise InvalidInputError(f"count is {count}; expected 0 or more")
        sigmas = as_sigma(sigma, (count,))[:, None]
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

    def facts(self) -> dict[str, object]:
        """What it is, for people to read."""
        shapes, contrasts = self.log_weights.shape
        facts: dict[str, object] = {
            "name": self.card.get("name", "none"),
            "kind": KIND,
            "patch size": f"{self.size}×{self.size} pixels",
            "shapes": shapes,
            "contrasts": f"{contrasts}, from {self.contrasts.min():.3g} to {self.contrasts.max():.3g}",
            "parameters": self.parameters,
        }
        return with_card(facts, self.card)

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
        write_prior_file(Path(path), PriorFile(KIND, tensors, self.card))

    @classmethod
    def from_file(cls, contents: PriorFile) -> GaussianMixturePrior:
        """The inverse of `save`; refuses weights that do not sum to one and covariances that are none."""
        factors, log_weights, contrasts = contents.named("factors", "log_weights", "contrasts")
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
        try:
            return cls(lower @ lower.swapaxes(1, 2), log_weights, contrasts, contents.card)
        except InvalidInputError as error:
            raise PriorFileError(str(error)) from error

    def _for_each_chunk(self, fill: Callable[[slice, Components], None], y: FloatArray, sigma: ArrayLike) -> None:
        """Call `fill` on runs of patches, on all cores, in bounded memory."""
        flat = y.reshape(-1, self.size**2)
        sigmas = as_sigma(sigma, y.shape[:-1]).reshape(-1)
        chunk = max(1, CHUNK_NUMBERS // (self.covariances.size // self.covariances.shape[-1]))

        def work(start: int) -> None:
            rows = slice(start, start + chunk)
            fill(rows, Components(self, in_double(flat[rows]), sigmas[rows]))

        for_each(work, range(0, len(flat), chunk))
