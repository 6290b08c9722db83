"""Fields of Experts (Roth and Black), the row of Table 1 that the paper quotes: 24 filters of 5×5, Student-t experts.

The density of a whole image is, up to a constant,

    log f(x) = −Σ_j Σ_c α_j log(1 + (k_j · x_c)² / (2 s_j²)),

with x_c the 5×5 pixels at place c, unit filters k_j, scales s_j and exponents α_j: 24 · (25 + 1 + 1) = 648 numbers, as
many as the paper counts. Filters overlap and are not orthogonal, so neither the normaliser nor the density at other
noise levels is known. It is learnt by denoising score matching at one noise level (`FieldTraining`) and denoises by
maximum a posteriori estimation (`denoise`): argmin ‖x − y‖² / (2 sigma²) − w log f(x), with a weight w for each sigma.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource
from heatprior.errors import InvalidInputError
from heatprior.files import replacing
from heatprior.learning.patch_training import BETA_MEAN, BETA_SQUARE, EPSILON, Point
from heatprior.learning.training import StepByStep
from heatprior.priors.filters import FilterBank
from paper.learning.cards import part_of_newest

MODEL_FILE = Path(__file__).with_suffix(".safetensors")
TENSORS = ("filters", "scales", "exponents")
SIZE = 5  # of the filters
ROWS_AT_ONCE = 32  # of an image: their responses stay in the cache
MARGIN = 2 * SIZE  # mirrored pixels around an image that is denoised
TOLERANCE = 2e-5  # root mean square change at which gradient descent ends: a two-hundredth of a grey level of 255
MOST_STEPS = 300
FILTERS, LOG_SCALES, LOG_EXPONENTS = 0, 1, 2  # the blocks of variables


@dataclass(frozen=True)
class FieldOfExperts:
    """Unit filters (J, b²), scales (J,) and exponents (J,), and a card that says how they were learnt."""

    filters: FloatArray
    scales: FloatArray
    exponents: FloatArray
    card: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parameters(self) -> int:
        """How many numbers the model has."""
        return int(self.filters.size + self.scales.size + self.exponents.size)

    def log_density(self, image: FloatArray) -> float:
        """Return log f of an image (H, W), up to a constant."""
        responses = self.filters @ cut(image[None])
        experts = self.exponents[:, None] * np.log1p(responses**2 / (2.0 * self.scales[:, None] ** 2))
        return -float(experts.sum())

    def score(self, image: FloatArray) -> FloatArray:
        """Return the gradient of log f at an image (H, W), in the type of the image."""
        filters = self.filters.astype(image.dtype)
        squares, exponents = (x.astype(image.dtype)[:, None] for x in (self.scales**2, self.exponents))
        result = np.zeros_like(image)
        for top in range(0, image.shape[0] - SIZE + 1, ROWS_AT_ONCE):
            rows = image[None, top : top + ROWS_AT_ONCE + SIZE - 1]
            responses = filters @ cut(rows)
            below = responses * responses
            below *= 0.5
            below += squares
            responses /= below
            responses *= exponents
            result[top : top + rows.shape[1]] -= add_up(filters.T @ responses, rows.shape)[0]
        return result

    def weight(self, sigma: float) -> float:
        """Return the weight of regularisation on the card: linear in log sigma, constant beyond the ends."""
        table = self.card["weights"]
        return float(np.interp(np.log(sigma), np.log(table["sigmas"]), table["values"]))

    def steepness(self) -> float:
        """Return a bound of the second derivatives of log f: that of the experts at zero, at the worst frequency."""
        kernels = self.filters.reshape(-1, SIZE, SIZE)
        power = np.square(np.abs(np.fft.fft2(kernels, (64, 64))))
        return float(np.tensordot(self.exponents / self.scales**2, power, axes=1).max())

    def save(self, path: Path) -> None:
        """Write the model as one safetensors file."""
        tensors = {name: getattr(self, name).astype(np.float32) for name in TENSORS}
        with replacing(path) as temporary:
            temporary.write_bytes(save(tensors, metadata={"card": json.dumps(dict(self.card), sort_keys=True)}))

    @classmethod
    def load(cls, path: Path) -> FieldOfExperts:
        """Read what `save` wrote."""
        with safe_open(str(path), framework="numpy") as file:
            filters, scales, exponents = (file.get_tensor(name).astype(np.float64) for name in TENSORS)
            return cls(filters, scales, exponents, json.loads(file.metadata()["card"]))

    @classmethod
    def of_point(cls, point: Point, card: Mapping[str, Any] | None = None) -> FieldOfExperts:
        """Return the model at a point of the training."""
        return cls(unit(point[FILTERS]), np.exp(point[LOG_SCALES]), np.exp(point[LOG_EXPONENTS]), card or {})


def denoise(model: FieldOfExperts, noisy: FloatArray, sigma: float, weight: float | None = None) -> FloatArray:
    """Return the MAP estimate argmin ‖x − y‖² / 2 − w sigma² log f(x) by accelerated gradient descent from y.

    The weight w is that of the model's card unless given.

    Steps are those of Nesterov, begun anew whenever they climb; their length is one over a bound of the second
    derivatives. The image (H, W) is mirrored beyond its edges.
    """
    y = np.pad(noisy, MARGIN, "reflect")
    pull = (model.weight(sigma) if weight is None else weight) * float(sigma) ** 2
    length = 1.0 / (1.0 + pull * model.steepness())
    x, ahead, momentum = y, y, 1.0
    for _ in range(MOST_STEPS):
        new = ahead - length * ((ahead - y) - pull * model.score(ahead))
        change = new - x
        size = float(np.sqrt(np.mean(np.square(change), dtype=np.float64)))
        if np.vdot(change, ahead - new) > 0.0:
            momentum, ahead = 1.0, new
        else:
            following = (1.0 + sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            ahead = new + ((momentum - 1.0) / following) * change
            momentum = following
        x = new
        if size < TOLERANCE:
            break
    return np.asarray(x[MARGIN:-MARGIN, MARGIN:-MARGIN])


def match_scores(point: Point, clean: FloatArray, noise: FloatArray, sigma: float) -> tuple[float, Point]:
    """Return the loss of denoising score matching, mean ‖n + sigma ∇ log f(x + sigma n)‖², and its gradient.

    Crops x and unit noise n are (N, h, w). Counted are the pixels inside, around which every filter fits, so that the
    score there is the one that it would be in a larger image.
    """
    norms = np.linalg.norm(point[FILTERS], axis=1, keepdims=True)
    kind, inside = clean.dtype, (slice(None), slice(SIZE - 1, 1 - SIZE), slice(SIZE - 1, 1 - SIZE))
    filters = (point[FILTERS] / norms).astype(kind)
    squares = np.exp(2.0 * point[LOG_SCALES]).astype(kind)[:, None]
    exponents = np.exp(point[LOG_EXPONENTS]).astype(kind)[:, None]
    noisy = clean + kind.type(sigma) * noise
    patches = cut(noisy)  # (b², P)
    responses = filters @ patches  # (J, P)
    below = squares + 0.5 * responses**2
    slopes = exponents * responses / below  # −(log expert)'
    error = np.zeros_like(noisy)
    error[inside] = (noise - kind.type(sigma) * add_up(filters.T @ slopes, noisy.shape))[inside]
    count = error[inside].size
    loss = float(np.sum(np.square(error), dtype=np.float64)) / count
    back = cut(kind.type(2.0 * sigma / count) * error)
    in_slopes = -(filters @ back)  # ∂loss/∂slopes, (J, P)
    in_responses = in_slopes * exponents * (squares - 0.5 * responses**2) / below**2
    in_filters = (in_responses @ patches.T - slopes @ back.T).astype(np.float64)
    along = np.sum(in_filters * filters, axis=1, keepdims=True) * filters
    shares = in_slopes * slopes
    in_scales = -2.0 * squares[:, 0] * np.sum(shares / below, axis=1)
    gradient = [(in_filters - along) / norms, in_scales.astype(np.float64), shares.sum(1).astype(np.float64)]
    return loss, gradient


@dataclass(frozen=True)
class FieldConfig:
    """How a field is learnt: at which noise level, on how many crops of which side, how fast, and how long.

    `rate` is Adam's, of entries of unit filters and of the logarithms of scales and exponents; it rises in the first
    `warm_up` steps and falls to zero in the second half. The result averages the iterates of the last steps.
    """

    sigma: float = 8.0 / 255
    steps: int = 16_000
    crops: int = 32
    side: int = 24
    rate: float = 0.01
    warm_up: int = 50
    averaged: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.steps, self.crops) < 1 or self.side < 3 * SIZE or not self.sigma > 0.0:
            raise InvalidInputError(
                f"steps, crops, side and sigma are {self.steps}, {self.crops}, {self.side}, {self.sigma:g}; "
                f"expected at least 1, 1, {3 * SIZE}, and above 0"
            )


class FieldTraining(StepByStep):
    """A run: the point, the moments of Adam, and the average of the iterates. It begins with the cosine filters."""

    def __init__(self, config: FieldConfig, source: PatchSource) -> None:
        super().__init__(source, config.side, config.steps)
        self.config = config
        filters = unit(np.asarray(FilterBank.dct(SIZE).matrix))
        crops = self._crops(np.random.default_rng(config.seed), 8 * config.crops)
        typical = np.median(np.abs(filters @ cut(crops)), axis=1)
        self.point: Point = [filters, np.log(typical), np.full(len(filters), np.log(0.1))]
        self._average = [block.copy() for block in self.point]
        self._moments = [(np.zeros_like(block), np.zeros_like(block)) for block in self.point]

    def _step(self) -> float:
        config = self.config
        rng = np.random.default_rng([config.seed, self.done])
        clean = self._crops(rng, config.crops)
        noise = rng.standard_normal(clean.shape, dtype=np.float32)
        loss, gradient = match_scores(self.point, clean, noise, config.sigma)
        self.done += 1
        left = 2.0 * (config.steps - self.done + 1) / config.steps
        rate = config.rate * min(1.0, self.done / config.warm_up, left)
        for block, slope in enumerate(gradient):
            self.point[block] = self.point[block] - rate * self._adam(block, slope)
        self.point[FILTERS] = unit(self.point[FILTERS])
        part = part_of_newest(config.averaged, self.done)
        self._average = [old + part * (new - old) for old, new in zip(self._average, self.point, strict=True)]
        return loss

    def _adam(self, block: int, gradient: FloatArray) -> FloatArray:
        mean, square = self._moments[block]
        mean += (1.0 - BETA_MEAN) * (gradient - mean)
        size = gradient**2 if block == FILTERS else np.mean(gradient**2)
        square += (1.0 - BETA_SQUARE) * (size - square)
        scale = np.sqrt(square / (1.0 - BETA_SQUARE**self.done)) + EPSILON
        return np.asarray(mean / (1.0 - BETA_MEAN**self.done) / scale)

    def _crops(self, rng: np.random.Generator, count: int) -> FloatArray:
        side = self.config.side
        return np.ascontiguousarray(self.source.draw(count, rng).T, np.float32).reshape(-1, side, side)

    def model(self) -> FieldOfExperts:
        """Return the average of the last iterates, with a card."""
        training = {**asdict(self.config), "steps_done": self.done, "images": self.source.images}
        return FieldOfExperts.of_point(self._average, {"name": "fields-of-experts", "training": training})


def unit(filters: FloatArray) -> FloatArray:
    """Return filters (J, b²) scaled to norm one."""
    return np.asarray(filters / np.linalg.norm(filters, axis=1, keepdims=True))


def cut(images: FloatArray) -> FloatArray:
    """Return all patches of images (N, H, W) as columns, (b², places)."""
    count, height, width = images.shape[0], images.shape[1] - SIZE + 1, images.shape[2] - SIZE + 1
    patches = np.empty((SIZE, SIZE, count, height, width), images.dtype)
    for i in range(SIZE):
        for j in range(SIZE):
            patches[i, j] = images[:, i : i + height, j : j + width]
    return patches.reshape(SIZE**2, -1)


def add_up(patches: FloatArray, shape: Sequence[int]) -> FloatArray:
    """Add patches (b², places) into images of this shape, (N, H, W): the adjoint of `cut`."""
    count, height, width = shape[0], shape[1] - SIZE + 1, shape[2] - SIZE + 1
    parts = patches.reshape(SIZE, SIZE, count, height, width)
    images = np.zeros(shape, patches.dtype)
    for i in range(SIZE):
        for j in range(SIZE):
            images[:, i : i + height, j : j + width] += parts[i, j]
    return images
