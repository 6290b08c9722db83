"""Training a patch prior by denoising score matching, section 4.1.

Every batch is a function of the seed and of the number of the step alone, so a run that is resumed from its state ends
with the same bits as one without a break, whatever thread draws a batch, and when.

Eq. (4) is a loss over all noise levels at once. For clean patches x, noise n and y = x + sigma n the residual is
r = x − y − sigma² ∇ log f(y, t) = −sigma n − sigma² Kᵀ phi(K y), and the loss the mean of ‖r‖² / sigma²: the paper
writes a plain norm and no weight (docs/math.md). Patches are columns, (a, n), and the filters rows, (J, a). Within a
piece of a batch all is in the type of the batch; the loss, sums over pieces and the point are in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource
from heatprior.errors import InvalidInputError, TrainingError
from heatprior.kernels.score_matching import error_to_gradient, score_derivatives, weight_gradient
from heatprior.kernels.threads import for_each, meanwhile
from heatprior.learning.optimisers import OrthogonalAdam, Point
from heatprior.learning.projections import project_orthogonal
from heatprior.learning.training import (
    COLUMNS,
    MOST_STEPS,
    StepByStep,
    Validation,
    ValidationScores,
    check_sizes,
    store_float,
    store_integer,
)
from heatprior.priors.experts import PAPER_COMPONENTS, Experts
from heatprior.priors.filters import FilterBank
from heatprior.priors.patch import PatchPrior
from heatprior.scipy_subset import log_softmax

PIECES = 8  # parts of a batch that run side by side; fixed, so that results do not depend on the number of threads
MOST_COMPONENTS = 500  # the error of sums over them in float32 grows with the square of their number
REACHES = (1e-3, 1e3)
LARGEST_SIGMA = 100.0  # grey levels being 0 to 1: nothing of an image is left
LARGEST_FILTER_RATE = 1.0  # radian in one step
LARGEST_LOGIT_RATE = 10.0
Batch = TypeVar("Batch")
DIVERGED = 1e6  # no entry of a filter and no logit of a sound training is as large


@dataclass(frozen=True)
class TrainingConfig:
    """Settings for training a patch prior: the paper's, but for noise levels, start, optimiser and steps.

    docs/training.md gives the reasons. Noise levels are uniform in log sigma.

    Parameters
    ----------
    size : int
        Patches of size×size pixels.
    components : int
        Number of Gaussians in each expert.
    reach : float
        The means of the Gaussians lie in ±reach.
    batch : int
        Patches per step.
    steps : int
        Number of steps; each draws a new batch.
    sigma_min : float
        Smallest noise level, on the scale of images in [0, 1].
    sigma_max : float
        Largest noise level, on the scale of images in [0, 1].
    filter_rate : float
        Adam's learning rate for the filters, in radians per step.
    logit_rate : float
        Adam's learning rate for the logarithms of the weights.
    averaged : int
        Length of the running average of the iterates that becomes the prior, in steps.
    seed : int
        Seed of the random number generator.

    Examples
    --------
    >>> import heatprior as hp
    >>> hp.TrainingConfig(size=15, steps=5000).components
    125
    """

    kind: ClassVar[str] = "patch"
    picture: ClassVar[str] = "filters.png"
    log_columns: ClassVar[tuple[str, ...]] = COLUMNS
    steps_per_validation: ClassVar[int] = 100  # a validation costs as much as 20 or 30 steps
    shorthands: ClassVar[Mapping[str, tuple[str, ...]]] = {"sigma": ("sigma_min", "sigma_max")}
    least_sigma: ClassVar[float] = 1e-6  # far below what 16 bits resolve

    size: int = 7
    components: int = PAPER_COMPONENTS
    reach: float = 1.0
    batch: int = 3200
    steps: int = 1000
    sigma_min: float = 0.01
    sigma_max: float = 0.4
    filter_rate: float = 0.003  # of the angles between filters, in radians, in one step of adam
    logit_rate: float = 0.01
    averaged: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in {"size": 2, "batch": PIECES, "averaged": 1, "seed": 0}.items():
            store_integer(self, name, least)
        store_integer(self, "components", 2, MOST_COMPONENTS)
        store_integer(self, "steps", 1, MOST_STEPS)
        store_float(self, "reach", *REACHES)
        store_float(self, "filter_rate", 0.0, LARGEST_FILTER_RATE)
        store_float(self, "logit_rate", 0.0, LARGEST_LOGIT_RATE)
        store_float(self, "sigma_min")
        store_float(self, "sigma_max")
        if not 0.0 <= self.sigma_min <= self.sigma_max <= LARGEST_SIGMA or self.sigma_max <= 0.0:
            raise InvalidInputError(
                f"noise levels {self.sigma_min} to {self.sigma_max}; expected 0 ≤ min ≤ max, 0 < max ≤ "
                f"{LARGEST_SIGMA:g}, for images scaled to [0, 1]: divide 8-bit levels by 255"
            )
        if self.sigma_min < self.least_sigma:
            raise InvalidInputError(
                f"sigma_min is {self.sigma_min:g}, too small for levels uniform in log sigma; give at least "
                f"{self.least_sigma:g}"
            )

    @property
    def noise_of_images(self) -> float:
        """0: score matching needs clean images."""
        return 0.0

    def training(self, source: PatchSource) -> Training:
        """A new training run with these settings."""
        return Training(self, source)


class Training(StepByStep):
    """A training run: its parameters, the state of its optimiser, and how many steps are done."""

    optimizer: ClassVar[Any] = OrthogonalAdam

    def __init__(self, config: TrainingConfig, source: PatchSource) -> None:
        super().__init__(source, config.size, config.steps)
        self.config = config
        count = config.size**2 - 1
        start = np.random.default_rng(config.seed).normal(scale=1.0 / config.size, size=(count, config.size**2))
        experts = self.first_experts(count)
        self.point: Point = [project_orthogonal(start), np.array(experts.logits)]
        self._average: Point = [x.copy() for x in self.point]
        self._optimizer: Any = self.optimizer.begin(self.point)
        self._batches = Prefetcher(self._batch, config.steps)

    def _step(self) -> float:
        loss = ScoreMatching(self._batches.take(self.done), self.config.reach)

        def gradient(point: Point, block: int | None = None) -> tuple[float, Point]:
            found = loss.gradient(point, block)
            self._batches.begin(self.done + 1)  # a gradient takes all cores, the projection after it only one
            return found

        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # the result is checked below
                value, self.point = self._move(loss, gradient)
            bounded = all(np.abs(block).max() < DIVERGED for block in self.point)  # NaN is not
        except np.linalg.LinAlgError:
            bounded = False
        if not bounded:
            raise TrainingError(f"the filters or the weights diverge at step {self.done + 1}; lower the rates")
        self.done += 1
        keep = 1.0 - 1.0 / min(self.config.averaged, 1.0 + self.done / 10.0)  # a short window at first
        self._average = [keep * old + (1.0 - keep) * new for old, new in zip(self._average, self.point, strict=True)]
        return value

    def first_experts(self, count: int) -> Experts:
        """The experts to begin with."""
        return Experts.student(count, self.config.components, self.config.reach)

    def sigmas(self, places: FloatArray) -> FloatArray:
        """The noise levels of patches, of places between 0 and 1."""
        low, high = self.config.sigma_min, self.config.sigma_max
        return low * (high / low) ** places

    def _move(self, _loss: ScoreMatching, gradient: Callable[..., tuple[float, Point]]) -> tuple[float, Point]:
        """The loss before a step of the optimiser, and the point after it."""
        return self._optimizer.step(self.point, gradient, (self.config.filter_rate, self.config.logit_rate))  # type: ignore[no-any-return]

    def _batch(self, step: int) -> Sequence[NoisyBatch]:
        """Patches and noise, both without their mean, which zero-mean filters do not see."""
        counts = np.diff(np.linspace(0, self.config.batch, PIECES + 1).astype(int))

        def piece(number: int) -> NoisyBatch:
            rng = np.random.default_rng([self.config.seed, step, number])
            clean = self.source.draw(int(counts[number]), rng).astype(np.float32)
            noise = rng.standard_normal(clean.shape, np.float32)
            places = 1.0 - np.asarray(rng.random(clean.shape[1]))  # in (0, 1], so that sigma is never zero
            sigma = self.sigmas(places).astype(np.float32)
            clean -= clean.mean(axis=0)
            noise -= noise.mean(axis=0)
            return NoisyBatch(clean, noise, sigma)

        return for_each(piece, range(PIECES))

    def prior(self, card: dict[str, Any] | None = None) -> PatchPrior:
        """The average of the last iterates as a prior, its filters sorted by norm."""
        filters, logits = project_orthogonal(self._average[0], steps=None), self._average[1]
        order = np.argsort(np.linalg.norm(filters, axis=1))
        return PatchPrior(
            FilterBank(filters[order]), Experts(logits[order], self.config.reach), self.describe(self.config, card)
        )

    def validate(self, validation: Validation) -> ValidationScores:
        """PSNR, in one step of empirical Bayes."""
        return ValidationScores(psnr=validation.psnr(self.prior()))

    def state(self) -> dict[str, FloatArray]:
        """Everything needed to go on: parameters, optimiser and number of steps."""
        return {
            "filters": self.point[0],
            "logits": self.point[1],
            "average.filters": self._average[0],
            "average.logits": self._average[1],
            "done": np.array([self.done], dtype=np.float64),
            **{f"optimizer.{name}": array for name, array in self._optimizer.state().items()},
        }

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Go on from `state`, of a run with the same configuration."""
        check_sizes(state, zip(("filters", "logits"), self.point, strict=True))
        self.point = [state["filters"].copy(), state["logits"].copy()]
        self._average = [state["average.filters"].copy(), state["average.logits"].copy()]
        self.done = int(state["done"][0])
        optimizer = {name.removeprefix("optimizer."): x for name, x in state.items() if name.startswith("optimizer.")}
        self._optimizer = self.optimizer.from_state(optimizer)


class Prefetcher(Generic[Batch]):
    """Draws the batches of steps 0 to `steps` − 1 by `draw`, the next one in the background while a core is idle."""

    def __init__(self, draw: Callable[[int], Batch], steps: int) -> None:
        self._draw = draw
        self._steps = steps
        self._started: dict[int, Callable[[], Batch]] = {}

    def begin(self, step: int) -> None:
        """Start drawing the batch of a step in the background, unless it was started or there is no such step."""
        if step < self._steps and step not in self._started:
            self._started = {step: meanwhile(partial(self._draw, step))}

    def take(self, step: int) -> Batch:
        """The batch of a step, drawn now unless it was started before."""
        return self._started.pop(step, partial(self._draw, step))()


@dataclass(frozen=True)
class NoisyBatch:
    """Clean patches and unit noise, (a, n) each, and the noise level of each patch, (n,), above zero.

    All are of one type. Training runs in float32, in which the loss is right to six digits or more and its gradients to
    four; float64 is exact and slow, by the numpy twins of the kernels.
    """

    clean: FloatArray
    noise: FloatArray
    sigma: FloatArray


FILTERS, LOGITS = 0, 1  # the two blocks of variables


class ScoreMatching:
    """The loss on one batch: mean of ‖x − E[X | y]‖² / sigma², Eq. (4), as a function of the point [filters, logits].

    The batch comes in pieces, which run side by side and are added in order: the number of threads changes no bit. The
    filters need not be orthogonal: extrapolated points are not. Responses are kept for the next point,
    which may have the same filters: arrays of a point must not be changed once they were given, and one object is not
    for several threads.
    """

    def __init__(self, batch: Sequence[NoisyBatch], reach: float) -> None:
        self._pieces = [_Piece(piece) for piece in batch]
        self._count = sum(piece.sigma.size for piece in batch)
        self._reach = reach

    def value(self, point: Point) -> float:
        """The loss at a point."""
        return self._evaluate(point, ())[0]

    def gradient(self, point: Point, block: int | None = None) -> tuple[float, Point]:
        """The loss, and its gradient in one block or in both."""
        return self._evaluate(point, (FILTERS, LOGITS) if block is None else (block,))

    def _evaluate(self, point: Point, blocks: Sequence[int]) -> tuple[float, Point]:
        filters, logits = point
        log_weights = np.asarray(log_softmax(logits, axis=1))
        means = np.linspace(-self._reach, self._reach, logits.shape[1])
        pieces = for_each(lambda piece: piece.sums(filters, log_weights, means, blocks), self._pieces)
        losses, gradients = zip(*pieces, strict=True)
        return sum(losses) / self._count, [_sum(parts) / self._count for parts in zip(*gradients, strict=True)]


def _sum(parts: Sequence[FloatArray]) -> FloatArray:
    """Add up the parts, in place, into the first of them."""
    for part in parts[1:]:
        np.add(parts[0], part, out=parts[0])
    return parts[0]


class _Piece:
    """A part of a batch, with its responses to the filters that it met last."""

    def __init__(self, batch: NoisyBatch) -> None:
        self._batch = batch
        self._variance_of_noise = batch.sigma**2
        self._noisy: FloatArray | None = None
        self._given: FloatArray | None = None
        self._filters = self._responses = self._noise_variances = np.empty((0, 0), batch.clean.dtype)

    def sums(
        self, filters: FloatArray, log_weights: FloatArray, means: FloatArray, blocks: Sequence[int]
    ) -> tuple[float, Point]:
        """The sum of the losses, and its gradients in the blocks."""
        batch = self._batch
        if self._noisy is None:
            self._noisy = batch.clean + batch.sigma * batch.noise
        if filters is not self._given:
            self._given, self._filters = filters, np.asarray(filters, batch.clean.dtype)
            self._responses = self._filters @ self._noisy  # (J, n)
            self._noise_variances = (self._filters**2).sum(axis=1)[:, None] * self._variance_of_noise
        own, responses = self._filters, self._responses
        variances = self._noise_variances + np.square(means[1] - means[0], dtype=batch.clean.dtype)
        derivatives = score_derivatives(responses, variances, log_weights, means, want_derivatives=FILTERS in blocks)
        back = own.T @ derivatives.score  # Kᵀ phi, (a, n)
        loss = error_to_gradient(back, batch.noise, batch.sigma)  # now ∂loss/∂(Kᵀ phi)
        if not blocks:
            return loss, []

        back_scores = own @ back  # ∂loss/∂phi, (J, n)
        gradients: Point = []
        if FILTERS in blocks:
            products = derivatives.score @ back.T
            products += np.multiply(back_scores, derivatives.in_response, out=derivatives.in_response) @ self._noisy.T
            by_variance = np.multiply(back_scores, derivatives.in_variance, out=derivatives.in_variance)
            gradient = 2.0 * filters * (by_variance @ self._variance_of_noise)[:, None]
            gradient += products
            gradients.append(gradient)
        if LOGITS in blocks:
            gradients.append(weight_gradient(responses, variances, back_scores, derivatives, log_weights, means))
        return loss, gradients
