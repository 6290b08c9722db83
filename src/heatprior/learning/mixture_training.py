"""Learning a mixture of Gaussians with contrasts by stepwise EM, from clean images or from images with known noise.

The E-step computes the expected sufficient statistics of a batch under the current mixture
(priors/expectation_maximisation.py), running averages move towards them with decreasing step sizes, and the M-step is
the mixture of these.

From noisy patches plain EM learns narrow directions very slowly: where the variance is a tenth of that of the noise, a
step covers a hundredth of the distance. Fisher scoring divides the step by the Fisher information: with one contrast
the new covariance is the mean of y yᵀ − sigma² Id over the patches of the shape; without noise it is EM. Many shapes
explain a faint patch about equally well, which costs no likelihood but denoising quality, which uses the best shape
alone: so the last steps sharpen the responsibilities. A batch is a function of the seed and the step alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.data.datasets import PatchSource
from heatprior.kernels.threads import products_in_one_thread
from heatprior.learning.training import (
    LIKELIHOOD_COLUMNS,
    MOST_STEPS,
    PriorTraining,
    Validation,
    ValidationScores,
    check_sizes,
    store_float,
    store_integer,
)
from heatprior.priors.expectation_maximisation import FLOOR, Statistics, expected_statistics
from heatprior.priors.filters import FilterBank
from heatprior.priors.gaussian_mixture import GaussianMixturePrior

FLAT_FRACTION = 0.2  # of the patches, those of least contrast, have no usable direction
CLUSTERING_ROUNDS = 5
SHRINKAGE = 0.3  # of every covariance towards the one of all patches, so that none starts out narrow
LEAST_VARIANCE = 1e-6  # added to every variance, over grey levels squared
STEP_EXPONENT = 0.6  # the step size is i^−0.6 in step i: old statistics fade, sampling noise averages out
BURN_IN_STEPS = 2  # in which a batch replaces the statistics
CONTRAST_RATIO = 4.0  # between one contrast and the next: a factor of two in grey levels
DEAD_SHARE = 0.01  # of the mean number of patches of a shape: with fewer it is revived,
REVIVAL_PHASE = 0.6  # in this part of the steps, the first; the others settle and, if there is noise,
SHARPNESS = 2.0  # raise the responsibilities of the shapes to this power
REVIVAL_SPREAD = 0.5  # of the logarithms of the variances of a revived shape, around those of the one it shares with
LEAST_VARIANCE_RATIO = 1e-3  # variance, relative to that of the noise, of the narrowest direction that can be estimated
LEAST_WEIGHT = 1e-6  # of a component
MOST_SHAPES = 100_000
MOST_CONTRASTS = 40  # powers of four: more would overflow


@dataclass(frozen=True)
class MixtureConfig:
    """Settings for training a Gaussian mixture; docs/training.md says when to change which.

    Parameters
    ----------
    size : int
        Patches of size×size pixels.
    shapes : int
        Number of covariances.
    contrasts : int
        Number of contrasts of each shape; one contrast is EPLL's mixture.
    batch : int
        Patches per step.
    steps : int
        Number of steps; each draws a new batch.
    sigma : float
        Standard deviation of the noise in the training images, on the scale of images in [0, 1].
    seed : int
        Seed of the random number generator.

    Examples
    --------
    >>> import heatprior as hp
    >>> hp.MixtureConfig(contrasts=3).contrast_values.tolist()
    [0.25, 1.0, 4.0]
    """

    kind: ClassVar[str] = "mixture"
    picture: ClassVar[str] = "shapes.png"
    log_columns: ClassVar[tuple[str, ...]] = LIKELIHOOD_COLUMNS
    steps_per_validation: ClassVar[int] = 10  # its steps are long
    shorthands: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    size: int = 8
    shapes: int = 50
    contrasts: int = 6
    batch: int = 40_000
    steps: int = 300
    sigma: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in {"size": 2, "batch": 1, "seed": 0}.items():
            store_integer(self, name, least)
        store_integer(self, "shapes", 1, MOST_SHAPES)
        store_integer(self, "contrasts", 1, MOST_CONTRASTS)
        store_integer(self, "steps", 1, MOST_STEPS)
        store_float(self, "sigma", 0.0, 1.0, ", the noise of images scaled to [0, 1]: divide an 8-bit level by 255")

    @property
    def contrast_values(self) -> FloatArray:
        """Powers of four around one, (G,)."""
        return np.asarray(CONTRAST_RATIO ** (np.arange(self.contrasts) - (self.contrasts - 1) / 2.0))

    @property
    def noise_of_images(self) -> float:
        """`sigma`: mixtures are learnt from noisy images as well."""
        return self.sigma

    def training(self, source: PatchSource) -> MixtureTraining:
        """A new training run with these settings."""
        return MixtureTraining(self, source)


class MixtureTraining(PriorTraining[GaussianMixturePrior]):
    """A run: running averages of the sufficient statistics, their mixture, and how many steps are done."""

    config: MixtureConfig

    def __init__(self, config: MixtureConfig, source: PatchSource) -> None:
        super().__init__(source, config.size, config.steps)
        self.config = config
        rng = np.random.default_rng(config.seed)
        with products_in_one_thread():
            u = source.draw(config.batch, rng).T @ FilterBank.dct(config.size).matrix.T
            covariances = cluster_covariances(u, config.shapes, config.sigma, alike=config.contrasts > 1, rng=rng)
            even = 1.0 / (config.shapes * config.contrasts)
            self._weights: FloatArray = np.full((config.shapes, config.contrasts), even)
            self._moments: FloatArray = covariances / config.shapes
            self._mixture = self._maximise()

    def _step(self) -> float:
        """The loss is the negative mean log-likelihood of the batch under the mixture before the step."""
        rng = np.random.default_rng([self.config.seed, self.done])
        y = self.source.draw(self.config.batch, rng).T.astype(np.float32)
        settling = self.done >= REVIVAL_PHASE * self.config.steps
        sharpness = SHARPNESS if settling and self.config.sigma > 0.0 else 1.0
        sums = expected_statistics(self._mixture, y, self.config.sigma, sharpness=sharpness, least_keep=0.0)
        part = 1.0 if self.done < BURN_IN_STEPS else self.done**-STEP_EXPONENT
        moments = score_moments(self._mixture, sums, self.config.sigma)
        self._weights = (1.0 - part) * self._weights + part * sums.weights / sums.patches
        self._moments = (1.0 - part) * self._moments + part * moments / sums.patches
        self.done += 1
        if not settling:
            self._revive(rng)
        self._mixture = self._maximise()
        return -sums.log_likelihood / sums.patches

    def _revive(self, rng: np.random.Generator) -> None:
        """Let shapes that explain next to nothing share with the most frequent one, their variances scaled at random.

        Along its own axes: a turn, however slight, would spill the widest directions into the narrowest.
        """
        for k in np.nonzero(self._weights.sum(axis=1) < DEAD_SHARE / self.config.shapes)[0]:
            frequent = int(self._weights.sum(axis=1).argmax())
            self._weights[frequent] /= 2.0
            self._moments[frequent] /= 2.0
            self._weights[k] = self._weights[frequent]
            variances, axes = np.linalg.eigh(self._moments[frequent])
            scaled = np.maximum(variances, 0.0) * np.exp(REVIVAL_SPREAD * rng.standard_normal(len(variances)))
            self._moments[k] = (axes * scaled) @ axes.T

    def _maximise(self) -> GaussianMixturePrior:
        """The M-step: the mixture of the running averages, variances floored at what noise lets one estimate."""
        shares = np.maximum(self._weights.sum(axis=1), LEAST_WEIGHT)
        variances, axes = np.linalg.eigh(self._moments / shares[:, None, None])
        variances = np.maximum(variances, LEAST_VARIANCE_RATIO * self.config.sigma**2) + FLOOR
        covariances = (axes * variances[:, None, :]) @ axes.swapaxes(1, 2)
        weights = np.log(np.maximum(self._weights, LEAST_WEIGHT))
        return GaussianMixturePrior(covariances, weights, self.config.contrast_values)

    def prior(self, card: dict[str, Any] | None = None) -> GaussianMixturePrior:
        """The mixture, its most frequent shape first."""
        mixture = self._mixture
        order = np.argsort(-np.exp(mixture.log_weights).sum(axis=1), kind="stable")
        return GaussianMixturePrior(
            mixture.covariances[order], mixture.log_weights[order], mixture.contrasts, self.describe(card)
        )

    def validate(self, validation: Validation) -> ValidationScores:
        """The log-likelihood of held-out patches and, unless the images are noisy themselves, PSNR."""
        prior = self.prior()
        psnr = None if validation.sigma > 0.0 else validation.psnr(prior)
        return ValidationScores(psnr, validation.log_likelihood(prior))

    def state(self) -> dict[str, FloatArray]:
        """Everything needed to go on: the running averages and the number of steps."""
        return {"weights": self._weights, "moments": self._moments, "done": np.array([self.done], dtype=np.float64)}

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Go on from `state`, of a run with the same configuration."""
        check_sizes(state, [("weights", self._weights), ("moments", self._moments)])
        self._weights, self._moments = state["weights"].copy(), state["moments"].copy()
        self.done = int(state["done"][0])
        with products_in_one_thread():
            self._mixture = self._maximise()


def score_moments(prior: GaussianMixturePrior, sums: Statistics, sigma: float) -> FloatArray:
    """Compute n_k Σ_k by one step of Fisher scoring instead of EM, from the sums that `prior` made: (K, d, d).

    Along the axes of a shape, with λ the variances and v_g = c_g λ + sigma² the noisy ones, EM moves Σ_k by
    λ_i λ_j R_ij / n_k and Fisher scoring by R_ij / Σ_g n_kg c_g² / (v_gi v_gj), R being the gradient. Unlike EM's, the
    result may be indefinite: it is an estimate without bias, so averages of it are too.
    """
    if sigma == 0.0:
        return sums.moments
    counts = sums.weights.sum(axis=1)[:, None, None]
    inverse = prior.contrasts[:, None] / prior.variances_at(sigma)  # c / v, (K, G, d)
    information = np.einsum("kg,kgi,kgj->kij", sums.weights, inverse, inverse)
    products = prior.variances[:, :, None] * prior.variances[:, None, :]
    moves = prior.turns @ (sums.moments - counts * prior.covariances) @ prior.turns.swapaxes(1, 2)
    moves *= counts / np.maximum(products * information, np.finfo(np.float64).tiny)
    return np.asarray(counts * prior.covariances + prior.turns.swapaxes(1, 2) @ moves @ prior.turns)


def cluster_covariances(
    u: FloatArray, shapes: int, sigma: float, *, alike: bool, rng: np.random.Generator
) -> FloatArray:
    """Initial covariances (K, d, d) from patches u (n, d) without brightness, with noise of standard deviation `sigma`.

    Patches of one shape are multiples of each other, up to noise, so their directions are clustered, like k-means.
    `alike` makes every patch count with the same contrast: for mixtures whose contrasts are apart from their shapes.
    """
    variances, axes = np.linalg.eigh(u.T @ u / len(u))
    signal = np.maximum(variances - sigma**2, 0.0) + LEAST_VARIANCE
    overall = (axes * signal) @ axes.T
    x = u @ ((axes * (signal / (signal + sigma**2))) @ axes.T)  # denoised by the one Gaussian of all patches
    norms = np.linalg.norm(x, axis=1)
    textured = norms > np.quantile(norms, FLAT_FRACTION)
    if not textured.any():
        return np.repeat(overall[None], shapes, axis=0)
    x, norms = x[textured], norms[textured, None]
    labels = cluster_directions(x / norms, shapes, rng=rng)
    members = x * (np.sqrt(np.trace(overall)) / norms) if alike else x
    covariances = np.empty((shapes, *overall.shape))
    for k in range(shapes):
        of_shape = members[labels == k]
        own = of_shape.T @ of_shape / len(of_shape) if len(of_shape) else overall
        covariances[k] = (1.0 - SHRINKAGE) * own + SHRINKAGE * overall
    return covariances


def cluster_directions(z: FloatArray, count: int, *, rng: np.random.Generator) -> IntArray:
    """Cluster the unit vectors of z (n, d) around `count` lines through 0: the number of the nearest of each, (n,)."""
    lines = z[rng.integers(len(z), size=count)]
    labels: IntArray = np.abs(z @ lines.T).argmax(axis=1)
    for _ in range(CLUSTERING_ROUNDS):
        for k in range(count):
            members = z[labels == k]
            few = len(members) <= z.shape[1]  # then it is restarted from a random vector
            lines[k] = z[rng.integers(len(z))] if few else np.linalg.eigh(members.T @ members)[1][:, -1]
        labels = np.abs(z @ lines.T).argmax(axis=1)
    return labels
