"""The patch prior: a product of Gaussian-mixture experts on orthogonal filter responses, Eq. (5), section 3.1.

f(p, t) = ∏_j ‖k_j‖ psi_j(⟨k_j, p⟩, t) with sigma_j²(t) = sigma_0² + ‖k_j‖² sigma², sigma = sqrt(2t): because the
filters are orthogonal, noise on the patch is independent noise on the responses (Theorem 2). It is a density on the
span of the filters. What the filters do not see (with zero-mean filters: the brightness of the patch) is not modelled:
it has no influence on the density, the posterior leaves it as observed, and samples have none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.kernels.threads import for_each
from heatprior.priors.arguments import as_patches, as_sigma, in_double
from heatprior.priors.experts import Experts, experts_from
from heatprior.priors.explicit_mixture import ExplicitMixture
from heatprior.priors.filters import FilterBank
from heatprior.priors.patch_likelihood import PatchLikelihood
from heatprior.priors.patch_step import cells_of_patch_prior, step_of_patch_prior
from heatprior.priors.protocol import Posterior
from heatprior.priors.schedules import Schedules, schedules_on
from heatprior.priors.stored import with_card
from heatprior.store import PriorFile, write_prior_file

KIND = "patch"
CHUNK = 256  # patches whose responses each thread has in memory at once
MOST_EXPLICIT_COMPONENTS = 100_000


class _Chunk(NamedTuple):
    rows: slice
    y: FloatArray  # (n, a)
    sigma: FloatArray  # (n, 1)
    u: FloatArray  # responses (n, J)
    tau: FloatArray  # noise on the responses (n, J)


@dataclass(frozen=True, eq=False)
class PatchPrior:
    """Filters, their experts, and a card that says where they come from.

    Patches `y` are (..., b·b), float32 or float64, with grey levels scaled to [0, 1]; results have the same type.
    `sigma` is the standard deviation of their noise, one number or one per patch.

    Parameters
    ----------
    filters : FilterBank
        J of them, on patches of b×b pixels.
    experts : Experts
        As many: the mixtures on the responses.
    card : mapping, optional
        Where the prior comes from; kept in its file.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> prior = hp.load("patch7")
    >>> noisy = prior.sample(5, 0.1, rng=np.random.default_rng(0))
    >>> prior.log_prob(noisy, 0.1).shape, prior.score(noisy, 0.1).shape
    ((5,), (5, 49))
    """

    kind: ClassVar[str] = KIND
    filters: FilterBank
    experts: Experts
    card: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "card", dict(self.card))
        if self.filters.count != self.experts.logits.shape[0]:
            raise InvalidInputError(
                f"{self.filters.count} filters but {self.experts.logits.shape[0]} experts; each filter needs one"
            )

    @property
    def patch_shape(self) -> tuple[int, int]:
        """(b, b)."""
        return (self.filters.size, self.filters.size)

    @property
    def size(self) -> int:
        """b, the side of a patch."""
        return self.filters.size

    @property
    def schedules(self) -> Schedules:
        """Of half-quadratic splitting, as the card says."""
        return schedules_on(self.card)

    @cached_property
    def noise_likelihood(self) -> PatchLikelihood:
        """The likelihood by which noise is estimated from patches."""
        return PatchLikelihood(self)

    @property
    def parameters(self) -> int:
        """How many numbers were learnt: J b² of the filters and J L of the experts."""
        return self.filters.matrix.size + self.experts.logits.size

    def log_prob(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """log f(y, t) = Σ_j log psi_j(⟨k_j, y⟩, t) + Σ_j log ‖k_j‖ on the span of the filters, Eq. (5): (...).

        The normaliser differs from the paper's, see docs/math.md.
        """
        y = as_patches(y, self.filters.size)
        result = np.empty(y.shape[:-1], y.dtype)
        flat = result.reshape(-1)
        log_volume = np.log(self.filters.norms).sum()

        def fill(chunk: _Chunk) -> None:
            flat[chunk.rows] = self.experts.log_density(chunk.u, chunk.tau).sum(axis=-1) + log_volume

        self._for_each_chunk(fill, y, sigma)
        return result

    def score(self, y: FloatArray, sigma: ArrayLike) -> FloatArray:
        """∇ log f(y, t) = Σ_j k_j (log psi_j)'(⟨k_j, y⟩, t): (..., a)."""
        y = as_patches(y, self.filters.size)
        result = np.empty(y.shape, y.dtype)
        flat = result.reshape(-1, self.filters.pixels)

        def fill(chunk: _Chunk) -> None:
            flat[chunk.rows] = self.filters.synthesise(self.experts.first_derivative(chunk.u, chunk.tau))

        self._for_each_chunk(fill, y, sigma)
        return result

    def posterior(self, y: FloatArray, sigma: ArrayLike) -> Posterior:
        """Mean (Tweedie, Eq. (3)) and variance, pixel by pixel, of the clean patch given the noisy y: (..., a) each.

        What the filters do not see is known only through y: there the mean is y itself and the variance sigma².
        """
        y = as_patches(y, self.filters.size)
        mean, variance = np.empty(y.shape, y.dtype), np.empty(y.shape, y.dtype)
        flat_mean, flat_variance = (array.reshape(-1, self.filters.pixels) for array in (mean, variance))
        directions = (self.filters.matrix / self.filters.norms[:, None]) ** 2  # (J, a)
        unseen = np.clip(1.0 - directions.sum(axis=0), 0.0, None)  # (a,)

        def fill(chunk: _Chunk) -> None:
            clean, spread = self.experts.posterior(chunk.u, chunk.tau)
            flat_mean[chunk.rows] = chunk.y + self.filters.reconstruct(clean - chunk.u)
            flat_variance[chunk.rows] = (spread / self.filters.norms**2) @ directions + chunk.sigma**2 * unseen

        self._for_each_chunk(fill, y, sigma)
        return Posterior(mean, variance)

    def posterior_sample(self, y: FloatArray, sigma: ArrayLike, *, rng: np.random.Generator) -> FloatArray:
        """An exact draw of the clean patch given each noisy one: (..., a); what no filter sees has its noise."""
        y = as_patches(y, self.filters.size)
        sigmas = as_sigma(sigma, y.shape[:-1])[..., None]
        u = self.filters.analyse(y)
        change = self.experts.posterior_sample(u, sigmas * self.filters.norms, rng=rng) - u
        noise = sigmas * rng.standard_normal(y.shape)
        return np.asarray(y + noise + self.filters.reconstruct(change - self.filters.analyse(noise)))

    def sample(self, count: int, sigma: ArrayLike = 0.0, *, rng: np.random.Generator) -> FloatArray:
        """Exact draws of noisy patches, (count, a): Y = Σ_j k_j Z_j / ‖k_j‖², Z_j from psi_j (Corollary 2.1).

        They lie in the span of the filters: with zero-mean filters they have mean zero; add the brightness you want.
        """
        if count < 0:
            raise InvalidInputError(f"count is {count}; expected 0 or more")
        sigmas = as_sigma(sigma, (count,))[:, None]
        patches = np.empty((count, self.filters.pixels))
        for start in range(0, count, CHUNK):
            tau = sigmas[start : start + CHUNK] * self.filters.norms
            responses = self.experts.sample(len(tau), tau, rng=rng)
            patches[start : start + CHUNK] = self.filters.reconstruct(responses)
        return patches

    denoise_step, cells = step_of_patch_prior, cells_of_patch_prior  # as `Prior` asks for them

    def facts(self) -> dict[str, object]:
        """What it is, for people to read."""
        norms = self.filters.norms
        facts: dict[str, object] = {
            "name": self.card.get("name", "none"),
            "kind": KIND,
            "patch size": f"{self.size}×{self.size} pixels",
            "filters": f"{self.filters.count}, of norm {norms.min():.2g} to {norms.max():.2g}",
            "components": f"{self.experts.logits.shape[1]} per filter, over responses of ±{self.experts.reach:g}",
            "parameters": self.parameters,
        }
        return with_card(facts, self.card)

    def as_gaussian_mixture(self) -> ExplicitMixture:
        """The same density written out as L^J Gaussians on the patch space (Theorem 1). For tiny J and L only.

        The precision is Eq. (7); the means are Σ_a (1/sigma_0²) Σ_j k_j mu_l(j): the paper lacks the 1/sigma_0².
        """
        experts, components = self.experts.logits.shape
        if components**experts > MOST_EXPLICIT_COMPONENTS:
            raise InvalidInputError(
                f"{components}^{experts} components are too many to write out; at most {MOST_EXPLICIT_COMPONENTS}"
            )
        matrix, precision_of_response = self.filters.matrix, self.experts.base_sigma**-2
        precision = precision_of_response * matrix.T @ matrix
        choices = np.array(list(product(range(components), repeat=experts)))  # (L^J, J)
        covariance = np.linalg.pinv(precision, hermitian=True)
        means = precision_of_response * self.experts.means[choices] @ matrix @ covariance
        log_weights = self.experts.log_weights[np.arange(experts), choices].sum(axis=1)
        return ExplicitMixture(log_weights, means, precision)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the prior as one safetensors file, parameters in float32; the file appears only when it is whole."""
        size = self.filters.size
        tensors: dict[str, FloatArray] = {
            "filters": self.filters.matrix.reshape(-1, size, size).astype(np.float32),
            "log_weights": self.experts.log_weights.astype(np.float32),
            "reach": np.array([self.experts.reach], dtype=np.float64),
        }
        write_prior_file(Path(path), PriorFile(KIND, tensors, self.card))

    @classmethod
    def from_file(cls, contents: PriorFile) -> PatchPrior:
        """The inverse of `save`; refuses filters that are not orthogonal and weights off the simplex."""
        filters, log_weights, reach = contents.named("filters", "log_weights", "reach")
        square = filters.ndim == 3 and filters.shape[1] == filters.shape[2]
        if not square or log_weights.ndim != 2 or reach.shape != (1,) or 0 in (filters.size, log_weights.size):
            raise PriorFileError(
                f"filters {filters.shape}, log_weights {log_weights.shape} and reach {reach.shape} "
                "are not (J, b, b), (J, L) and (1,)"
            )
        try:
            bank = FilterBank(filters.reshape(len(filters), -1))
            return cls(bank, experts_from(log_weights, reach), contents.card)
        except InvalidInputError as error:
            raise PriorFileError(str(error)) from error

    def _for_each_chunk(self, fill: Callable[[_Chunk], None], y: FloatArray, sigma: ArrayLike) -> None:
        """Call `fill` on runs of patches with their responses, on all cores, in bounded memory."""
        flat = y.reshape(-1, self.filters.pixels)
        sigmas = as_sigma(sigma, y.shape[:-1]).reshape(-1, 1)

        def work(start: int) -> None:
            rows = slice(start, start + CHUNK)
            patches = in_double(flat[rows])
            fill(_Chunk(rows, patches, sigmas[rows], self.filters.analyse(patches), sigmas[rows] * self.filters.norms))

        for_each(work, range(0, len(flat), CHUNK))
