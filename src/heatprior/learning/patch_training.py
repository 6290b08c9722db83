"""Training a patch prior by denoising score matching, section 4.1.

Every batch is a function of the seed and of the number of the step alone, so a run that is resumed from its state ends
with the same bits as one without a break, whatever thread draws a batch, and when.

Eq. (4) is a loss over all noise levels at once. For clean patches x, noise n and y = x + sigma n the residual is
r = x − y − sigma² ∇ log f(y, t) = −sigma n − sigma² Kᵀ phi(K y), and the loss the mean of ‖r‖² / sigma²: the paper
writes a plain norm and no weight (docs/math.md). Patches are columns, (a, n), and the filters rows, (J, a). Within a
piece of a batch all is in the type of the batch; the loss, sums over pieces and the point are in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import helmert

from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource
from heatprior.errors import InvalidInputError, TrainingError
from heatprior.kernels.score_matching import error_to_gradient, score_derivatives, weight_gradient
from heatprior.kernels.threads import for_each, meanwhile
from heatprior.learning.training import (
    COLUMNS,
    MOST_STEPS,
    PriorTraining,
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
DIVERGED = 1e6  # no entry of a filter and no logit of a sound training is as large
FILTERS, LOGITS = BOTH = (0, 1)  # the blocks of variables
Point = list[FloatArray]  # one array for each block of variables
Loss = Callable[..., tuple[float, Point]]  # of a point, and perhaps of blocks: its value, and its gradient in them
BETA_MEAN = 0.9  # β₁
BETA_SQUARE = 0.99  # β₂
EPSILON = 1e-12  # against division by zero
NORM_RATE = 3.0  # relative change of a norm in one step, for a turn by one
CONVERGED = 1e-14  # relative fall of the squared distance in one step below which the iteration stops
MOST_ITERATES = 10_000
LEAST_SQUARED_RATIO = 1e-8  # leaves eight digits, which the polishing step doubles


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
    noise_of_images: ClassVar[float] = 0.0  # score matching needs clean images
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

    def training(self, source: PatchSource) -> Training:
        """A new training run with these settings."""
        return Training(self, source)


@dataclass(frozen=True)
class NoisyBatch:
    """Clean patches and unit noise, (a, n) each, and the noise level of each patch, (n,), above zero.

    All are of one type. Training runs in float32, in which the loss is right to six digits or more and its gradients to
    four; float64 is exact and slow, by the numpy twins of the kernels.
    """

    clean: FloatArray
    noise: FloatArray
    sigma: FloatArray


def match_scores(
    batch: Sequence[NoisyBatch], reach: float, point: Point, blocks: Sequence[int] = BOTH
) -> tuple[float, Point]:
    """The loss on one batch, mean of ‖x − E[X | y]‖² / sigma², Eq. (4), and its gradient in blocks of the point.

    The batch comes in pieces, which run side by side and are added in order: the number of threads changes no bit. The
    filters need not be orthogonal: points that iPALM extrapolates are not.
    """
    filters, logits = point
    log_weights = np.asarray(log_softmax(logits, axis=1))
    means = np.linspace(-reach, reach, logits.shape[1])
    pieces = for_each(lambda piece: _sums_over(piece, filters, log_weights, means, blocks), batch)
    losses, gradients = zip(*pieces, strict=True)
    count = sum(piece.sigma.size for piece in batch)
    return sum(losses) / count, [np.add.reduce(parts) / count for parts in zip(*gradients, strict=True)]


def _sums_over(
    piece: NoisyBatch, filters: FloatArray, log_weights: FloatArray, means: FloatArray, blocks: Sequence[int]
) -> tuple[float, Point]:
    """The sum of the losses over a part of a batch, and its gradients in the blocks."""
    own = np.asarray(filters, piece.clean.dtype)
    noisy, noise_variances = piece.clean + piece.sigma * piece.noise, piece.sigma**2
    responses = own @ noisy  # (J, n)
    variances = (own**2).sum(axis=1)[:, None] * noise_variances
    variances += np.square(means[1] - means[0], dtype=piece.clean.dtype)
    derivatives = score_derivatives(responses, variances, log_weights, means, want_derivatives=FILTERS in blocks)
    back = own.T @ derivatives.score  # Kᵀ phi, (a, n)
    loss = error_to_gradient(back, piece.noise, piece.sigma)  # now ∂loss/∂(Kᵀ phi)
    if not blocks:
        return loss, []
    back_scores = own @ back  # ∂loss/∂phi, (J, n)
    gradients: Point = []
    if FILTERS in blocks:
        products = derivatives.score @ back.T
        products += np.multiply(back_scores, derivatives.in_response, out=derivatives.in_response) @ noisy.T
        by_variance = np.multiply(back_scores, derivatives.in_variance, out=derivatives.in_variance)
        gradient = 2.0 * filters * (by_variance @ noise_variances)[:, None]
        gradient += products
        gradients.append(gradient)
    if LOGITS in blocks:
        gradients.append(weight_gradient(responses, variances, back_scores, derivatives, log_weights, means))
    return loss, gradients


# The nearest bank of orthogonal filters: Algorithm 1 of the paper, section 4.1 and its appendix.
#
# A bank (J, a), the transpose of the paper's K, is feasible if its rows are pairwise orthogonal: diag(D) O with
# O Oᵀ = Id and D ≥ 0. The distance ‖diag(D) O − K‖_F, Eq. (20), is minimised over O and D in turn, in closed form.


class OrthogonalIterate(NamedTuple):
    """One step of Algorithm 1: the feasible filters, and their squared distance to the given ones."""

    filters: FloatArray
    squared_distance: float


def project_orthogonal(filters: FloatArray, *, steps: int | None = 3, zero_mean: bool = True) -> FloatArray:
    """The feasible bank that Algorithm 1 reaches in `steps` polar decompositions; `None` runs it to convergence.

    A filter that depends on the others, or is tiny beside them, may end as zero. With `zero_mean` every filter also
    sums to zero, exactly: the iteration runs in the space of such filters. That is the projection onto both
    constraints, since a zero-mean bank is as far from a filter's mean whatever it is.
    """
    if steps is not None and steps < 1:
        raise InvalidInputError(f"steps is {steps}; expected 1 or more, or None for convergence")
    previous = np.inf
    for iterate in islice(orthogonal_iterates(filters, zero_mean=zero_mean), steps or MOST_ITERATES):
        if steps is None and previous - iterate.squared_distance <= CONVERGED * iterate.squared_distance:
            break
        previous = iterate.squared_distance
    return iterate.filters


def orthogonal_iterates(filters: FloatArray, *, zero_mean: bool = True) -> Iterator[OrthogonalIterate]:
    """The iterates of Algorithm 1 from D = Id on, without end. Each is feasible."""
    given = np.asarray(filters, dtype=np.float64)
    if given.ndim != 2 or not 1 <= len(given) <= given.shape[1] - zero_mean or not np.isfinite(given).all():
        raise InvalidInputError(
            f"filters of shape {given.shape} cannot be made orthogonal{' and zero-mean' if zero_mean else ''}; "
            "give finite filters as rows, at most one per free dimension"
        )
    basis = np.asarray(helmert(given.shape[1]) if zero_mean else np.eye(given.shape[1]))  # of what may be, as rows
    coordinates, scales = given @ basis.T, np.ones(len(given))  # D and O in turn
    while True:
        directions = polar_factor(scales[:, None] * coordinates)
        scales = np.maximum((directions * coordinates).sum(axis=1), 0.0)
        feasible = (scales[:, None] * directions) @ basis
        yield OrthogonalIterate(feasible, float(((feasible - given) ** 2).sum()))


def polar_factor(matrix: FloatArray) -> FloatArray:
    """The matrix with orthonormal rows nearest to `matrix` (J, a), J ≤ a: (M Mᵀ)^(−1/2) M.

    Through the eigenvectors of the J×J Gram matrix, half the time of a singular value decomposition. That squares the
    condition number: a Newton–Schulz step corrects the rounding, and nearly dependent rows take the other branch.
    """
    squares, axes = np.linalg.eigh(matrix @ matrix.T)
    if squares[0] > LEAST_SQUARED_RATIO * squares[-1]:
        nearly = (axes / np.sqrt(squares)) @ (axes.T @ matrix)
        return np.asarray(1.5 * nearly - 0.5 * (nearly @ nearly.T) @ nearly)
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(left @ right)


@dataclass
class OrthogonalAdam:
    """Adam on the manifold of orthogonal filters: it rotates pairs of filters in their common plane, and scales them.

    The filters must be orthogonal from the start, and their span does not change: a full set of zero-mean filters,
    J = a − 1, loses nothing by that.

    Orthogonal filters are diag(norms) O with O Oᵀ = Id. A small move of O along the constraint is an antisymmetric
    matrix A: O ← (Id − A) O, and A_ij is the angle by which filters i and j rotate in their common plane. Adam takes
    its steps in these angles, in the logarithms of the norms and in the logits, each with a step size of its own, so
    that filters with weak, high-frequency responses rotate as readily as strong ones. The polar factor removes the
    second-order error. The logits share one step size: with one each the weights of rarely seen components overfit.

    The state between two steps: running means of the gradients (angles, log-norms, logits) and of their squares.
    """

    means: Point
    squares: Point
    steps: int = 0

    def step(self, point: Point, gradient: Loss, rates: tuple[float, float]) -> tuple[float, Point]:
        """One step with rates for angles (radians) and logits: the function before it, and the new point."""
        filters, logits = point
        value, (in_filters, in_logits) = gradient(point)
        norms = np.linalg.norm(filters, axis=1, keepdims=True)
        directions = filters / norms
        in_turns = (norms * in_filters) @ directions.T  # (J, J)
        turn, growth, change = self._steps_for(
            [in_turns - in_turns.T, (in_filters * filters).sum(axis=1, keepdims=True), in_logits]
        )
        turned = polar_factor(directions - rates[0] * turn @ directions)
        return value, [norms * np.exp(-NORM_RATE * rates[0] * growth) * turned, logits - rates[1] * change]

    def _steps_for(self, gradients: Point) -> Point:
        """Adam's steps of size about one; the squares of the logits are averaged to one number."""
        self.steps += 1
        squares = [gradients[0] ** 2, gradients[1] ** 2, np.full(1, (gradients[2] ** 2).mean())]
        steps = []
        for block, (gradient, square) in enumerate(zip(gradients, squares, strict=True)):
            self.means[block] = BETA_MEAN * self.means[block] + (1.0 - BETA_MEAN) * gradient
            self.squares[block] = BETA_SQUARE * self.squares[block] + (1.0 - BETA_SQUARE) * square
            mean = self.means[block] / (1.0 - BETA_MEAN**self.steps)
            scale = np.sqrt(self.squares[block] / (1.0 - BETA_SQUARE**self.steps)) + EPSILON
            steps.append(mean / scale)
        return steps

    def state(self) -> dict[str, FloatArray]:
        """The arrays that a checkpoint must keep."""
        means = {f"mean{i}": x for i, x in enumerate(self.means)}
        squares = {f"square{i}": x for i, x in enumerate(self.squares)}
        return {**means, **squares, "steps": np.array([self.steps], dtype=np.float64)}

    @classmethod
    def begin(cls, point: Point) -> OrthogonalAdam:
        """The state before the first step: all moments are zero."""
        count = len(point[0])
        shapes = [(count, count), (count, 1)]
        return cls([*map(np.zeros, shapes), np.zeros_like(point[1])], [*map(np.zeros, shapes), np.zeros(1)])

    @classmethod
    def from_state(cls, state: dict[str, FloatArray]) -> OrthogonalAdam:
        """The inverse of `state`."""
        means, squares = ([state[f"{name}{i}"].copy() for i in range(3)] for name in ("mean", "square"))
        return cls(means, squares, int(state["steps"][0]))


class Training(PriorTraining[PatchPrior]):
    """A training run: its parameters, the state of its optimiser, and how many steps are done."""

    optimizer: ClassVar[Any] = OrthogonalAdam
    config: TrainingConfig

    def __init__(self, config: TrainingConfig, source: PatchSource) -> None:
        super().__init__(source, config.size, config.steps)
        self.config = config
        count = config.size**2 - 1
        start = np.random.default_rng(config.seed).normal(scale=1.0 / config.size, size=(count, config.size**2))
        experts = self.first_experts(count)
        self.point: Point = [project_orthogonal(start), np.array(experts.logits)]
        self._average: Point = [x.copy() for x in self.point]
        self._optimizer: Any = self.optimizer.begin(self.point)
        self._begun: dict[int, Callable[[], Sequence[NoisyBatch]]] = {}  # the next batch, drawn in the background

    def _step(self) -> float:
        batch = self._begun.pop(self.done, partial(self._batch, self.done))()

        def loss(point: Point, blocks: Sequence[int] = BOTH) -> tuple[float, Point]:
            found = match_scores(batch, self.config.reach, point, blocks)
            following = self.done + 1
            if following < self.config.steps and following not in self._begun:
                # now: a gradient takes all cores, the projection after it only one
                self._begun = {following: meanwhile(partial(self._batch, following))}
            return found

        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # the result is checked below
                value, self.point = self._move(loss)
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

    def _move(self, loss: Loss) -> tuple[float, Point]:
        """The loss before a step of the optimiser, and the point after it."""
        return self._optimizer.step(self.point, loss, (self.config.filter_rate, self.config.logit_rate))  # type: ignore[no-any-return]

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
        return PatchPrior(FilterBank(filters[order]), Experts(logits[order], self.config.reach), self.describe(card))

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
