"""Learning a prior of whole images: xi_j and the experts of given bands, by score matching and iPALM, section 4.1.

Two stages. `learn_coefficients` matches the score of single coefficients of an orthonormal basis, which is the score of
the image: each band is a filter of one entry, so the loss of `score_matching.py` serves as it is. `learn_images`
matches the change of whole images: for the convolutional model that is its score; for a wavelet basis it is the mean
over all shifts, which wants the experts to shrink harder than single coefficients do.

Every batch is a function of the seed and of the number of the step alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource
from heatprior.errors import InvalidInputError
from heatprior.kernels.threads import for_each, products_in_one_thread
from heatprior.learning.band_matching import LOGITS, NORMS, BandMatching, NoisyImages, spectra_of
from heatprior.learning.ipalm import IPalm
from heatprior.learning.objective import Objective, Point
from heatprior.learning.score_matching import NoisyBatch, ScoreMatching
from heatprior.priors.bands import NORM_RANGE, Bands, image_of, transformed
from heatprior.priors.experts import PAPER_COMPONENTS, Experts
from heatprior.priors.wavelet_bases import WaveletBasis

START_CROPS = 64  # crops from which the starting point is computed
TAIL_FRACTION = 1e-4  # of the responses of a band lie beyond the means of its expert at the start
COEFFICIENT_CROPS = 200  # that coefficients are taken from
LEAST_SHARE = 1e-6  # of the largest share that a band has in the loss
STAGES = {"start": 0, "coefficients": 1, "images": 2}  # so that no two stages share random numbers

ReportLoss = Callable[[int, float], object]  # of the number of the step and the loss before it


@dataclass(frozen=True)
class BandConfig:
    """How a prior of whole images is learnt: noise levels uniform in log sigma; `batch` crops, in pieces, a step.

    The result is the mean of the iterates of the last `averaged` steps.
    """

    components: int = PAPER_COMPONENTS
    reach: float = 1.0
    batch: int = 4
    pieces: int = 4
    coefficients: int = 1600  # of each band, in a batch of `learn_coefficients`
    sigma_min: float = 0.01
    sigma_max: float = 0.4
    averaged: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.sigma_min <= self.sigma_max:
            raise InvalidInputError(f"noise levels {self.sigma_min} to {self.sigma_max}; expected 0 < min ≤ max")
        if self.pieces < 1 or self.batch % self.pieces:
            raise InvalidInputError(f"a batch of {self.batch} crops in {self.pieces} pieces; expected equal pieces")


def start(bands: Bands, source: PatchSource, config: BandConfig) -> Point:
    """xi_j that bring responses to the range of the means, and heavy tails: [xi (J,), logits (J, L)]."""
    clean = mirrored(source, START_CROPS, _rng(config, "start", 0))
    shape = clean.shape[-2:]
    norms = []
    for spectrum in spectra_of(bands, shape):
        largest = float(np.quantile(np.abs(image_of(spectrum * transformed(clean), shape)), 1.0 - TAIL_FRACTION))
        norms.append(np.clip(config.reach / max(largest, NORM_RANGE[0]), *NORM_RANGE))
    return [np.array(norms), np.array(Experts.student(bands.count, config.components, config.reach).logits)]


def learn_coefficients(
    basis: WaveletBasis,
    source: PatchSource,
    point: Point,
    config: BandConfig,
    steps: int,
    report: ReportLoss | None = None,
) -> Point:
    """The score of single coefficients at all noise levels: band by band, since they have nothing in common.

    `report` is called with the mean loss over the bands, step by step, once all are learnt.
    """

    def learn(band: int) -> tuple[FloatArray, FloatArray, list[float]]:
        clean = coefficients(basis, band, source, _rng(config, "coefficients", band))
        losses: list[float] = []

        def objective(step: int) -> Objective:
            rng = _rng(config, "coefficients", band, step)
            drawn = clean[rng.integers(clean.size, size=(1, config.coefficients))]
            noise, sigma = rng.standard_normal(drawn.shape), _sigmas(config, config.coefficients, rng)
            loss = ScoreMatching([NoisyBatch(drawn, noise, sigma)], config.reach)
            return Objective(loss.value, loss.gradient, (lambda filters: np.clip(filters, *NORM_RANGE), None))

        first: Point = [point[0][band].reshape(1, 1), point[1][band][None]]
        norm, logits = _minimise(first, objective, steps, config.averaged, lambda _, loss: losses.append(loss))
        return norm[0], logits, losses

    norms, logits, losses = zip(*for_each(learn, range(basis.count)), strict=True)
    if report is not None:
        for step, loss in enumerate(np.mean(losses, axis=0)):
            report(step + 1, float(loss))
    return [np.concatenate(norms), np.concatenate(logits)]


def learn_images(
    bands: Bands, source: PatchSource, point: Point, config: BandConfig, steps: int, report: ReportLoss | None = None
) -> Point:
    """The change of whole images at all noise levels.

    iPALM has one step size for all bands, but a band has a part in the loss by the part of the pixels that it stands
    for, which falls by four from scale to scale. So log xi and logits of each band are measured in units of the
    root of it.
    """
    side = 2 * source.size
    parts = np.array([_part(spectrum, side) for spectrum in spectra_of(bands, (side, side))]) * bands.shares
    units = np.sqrt(np.maximum(parts, parts.max() * LEAST_SHARE))

    def to_point(scaled: Point) -> Point:
        return [np.exp(scaled[NORMS] / units), scaled[LOGITS] / units[:, None]]

    def project(scaled: FloatArray) -> FloatArray:
        return np.asarray(np.clip(scaled / units, *np.log(NORM_RANGE)) * units)

    def objective(step: int) -> Objective:
        loss = BandMatching(_batch(source, config, step), bands, config.reach)

        def gradient(scaled: Point, block: int | None) -> tuple[float, Point]:
            place = to_point(scaled)
            value, gradients = loss.gradient(place, block)
            factors = [place[NORMS] / units, 1.0 / units[:, None]]
            wanted = factors if block is None else [factors[block]]
            return value, [part * factor for part, factor in zip(gradients, wanted, strict=True)]

        return Objective(lambda scaled: loss.value(to_point(scaled)), gradient, (project, None))

    first = [np.log(point[NORMS]) * units, point[LOGITS] * units[:, None]]
    return to_point(_minimise(first, objective, steps, config.averaged, report))


def coefficients(basis: WaveletBasis, band: int, source: PatchSource, rng: np.random.Generator) -> FloatArray:
    """The coefficients of one band in some crops, in all shifts of the basis."""
    images = mirrored(source, COEFFICIENT_CROPS, rng)
    shape = images.shape[-2:]
    return image_of(basis.spectrum(band, shape) * transformed(images), shape).reshape(-1)


def mirrored(source: PatchSource, count: int, rng: np.random.Generator) -> FloatArray:
    """Crops, mirrored so that they are cyclic without a seam: (count, 2·size, 2·size)."""
    size = source.size
    crops = np.ascontiguousarray(source.draw(count, rng).T).reshape(count, size, size)
    return np.pad(crops, ((0, 0), (0, size), (0, size)), mode="symmetric")


def _minimise(
    point: Point, objective: Callable[[int], Objective], steps: int, averaged: int, report: ReportLoss | None
) -> Point:
    """iPALM on a new batch in every step: the mean of the last iterates."""
    optimizer = IPalm.begin(point)
    total = [np.zeros_like(x) for x in point]
    last = min(averaged, steps)
    with products_in_one_thread():
        for step in range(steps):
            value, point = optimizer.step(point, objective(step))
            if report is not None:
                report(step + 1, value)
            if step >= steps - last:
                total = [a + x for a, x in zip(total, point, strict=True)]
    return [a / last for a in total] if last else point


def _batch(source: PatchSource, config: BandConfig, step: int) -> Sequence[NoisyImages]:
    sigmas = _sigmas(config, config.batch, _rng(config, "images", step))

    def piece(number: int) -> NoisyImages:
        sigma = sigmas[number :: config.pieces]
        rng = _rng(config, "images", step, number)
        clean = mirrored(source, sigma.size, rng)
        return NoisyImages(clean, rng.standard_normal(clean.shape), sigma)

    return for_each(piece, range(config.pieces))


def _sigmas(config: BandConfig, count: int, rng: np.random.Generator) -> FloatArray:
    """Spread evenly in log sigma, one in each of `count` equal parts, in random order."""
    place = rng.permutation((np.arange(count) + rng.random(count)) / count)
    return np.asarray(config.sigma_min * (config.sigma_max / config.sigma_min) ** place)


def _rng(config: BandConfig, stage: str, *numbers: int) -> np.random.Generator:
    return np.random.default_rng([config.seed, STAGES[stage], *numbers])


def _part(spectrum: FloatArray, side: int) -> float:
    """Mean of |F k|² over the plane of frequencies: the square of the norm of the filter."""
    return float(np.square(image_of(spectrum, (side, side))).sum())
