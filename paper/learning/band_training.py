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
from functools import partial

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource
from heatprior.errors import InvalidInputError
from heatprior.kernels.score_matching import score_derivatives, weight_gradient
from heatprior.kernels.threads import for_each, products_in_one_thread
from heatprior.learning.patch_training import Loss, NoisyBatch, Point, match_scores
from heatprior.priors.bands import NORM_RANGE, Bands, Shape, Spectrum, image_of, to_spectrum
from heatprior.priors.experts import PAPER_COMPONENTS, Experts
from heatprior.priors.wavelet import WaveletBasis
from heatprior.scipy_subset import log_softmax
from paper.learning.ipalm import IPalm, Objective

NORMS, LOGITS = 0, 1  # the two blocks of variables
START_CROPS = 64  # crops from which the starting point is computed
TAIL_FRACTION = 1e-4  # of the responses of a band lie beyond the means of its expert at the start
COEFFICIENT_CROPS = 200  # that coefficients are taken from
LEAST_SHARE = 1e-6  # of the largest share that a band has in the loss
STAGES = {"start": 0, "coefficients": 1, "images": 2}  # so that no two stages share random numbers

ReportLoss = Callable[[int, float], object]  # of the number of the step and the loss before it


@dataclass(frozen=True)
class NoisyImages:
    """Clean images and unit noise, (n, H, W) each, and the noise level of each image, (n,), above zero."""

    clean: FloatArray
    noise: FloatArray
    sigma: FloatArray


@dataclass(frozen=True)
class BandMatching:
    """The loss of denoising score matching, Eq. (4), on one batch of images of one shape, and its exact gradient.

    It is a function of the point [xi (J,), logits (J, L)]. For clean images x, noise n and y = x + sigma n the residual
    is r = x − y − sigma² Σ_j shares_j K_jᵀ phi_j(K_j y), with K_j = xi_j S_j and S_j the filter of the band, and the
    loss is the mean of r² / sigma² over all pixels. With shares of one that is the convolutional model; with those of a
    wavelet basis, the mean over all its shifts.

    The batch comes in pieces, which run side by side and are added in order: the number of threads changes no bit.
    """

    batch: Sequence[NoisyImages]
    bands: Bands
    reach: float

    def value(self, point: Point) -> float:
        """The loss at a point."""
        return self._evaluate(point, ())[0]

    def gradient(self, point: Point, block: int | None) -> tuple[float, Point]:
        """The loss, and its gradient in one block or, for `block=None`, in both."""
        return self._evaluate(point, (NORMS, LOGITS) if block is None else (block,))

    def _evaluate(self, point: Point, blocks: Sequence[int]) -> tuple[float, Point]:
        height, width = self.batch[0].clean.shape[-2:]
        spectra = spectra_of(self.bands, (height, width))
        pieces = for_each(lambda piece: self._sums_over(piece, spectra, point, blocks), self.batch)
        count = sum(piece.clean.size for piece in self.batch)
        losses, gradients = zip(*pieces, strict=True)
        return sum(losses) / count, [np.sum(parts, axis=0) / count for parts in zip(*gradients, strict=True)]

    def _sums_over(
        self, batch: NoisyImages, spectra: Spectrum, point: Point, blocks: Sequence[int]
    ) -> tuple[float, Point]:
        norms, logits = point
        log_weights = np.asarray(log_softmax(logits, axis=1))
        means = np.linspace(-self.reach, self.reach, logits.shape[1])
        shape, count = batch.clean.shape[-2:], self.bands.count
        shares = self.bands.shares
        sigma = batch.sigma[:, None, None]

        def in_bands(images: FloatArray) -> FloatArray:
            """S_j of images (n, H, W): (J, pixels of all)."""
            return image_of(spectra[:, None] * to_spectrum(images), shape).reshape(count, -1)

        def put_together(responses: FloatArray, factors: FloatArray) -> FloatArray:
            """Σ_j factors_j S_jᵀ responses_j: (n, H, W)."""
            of_bands = to_spectrum(responses.reshape(count, *batch.clean.shape))
            return image_of(np.einsum("j,jhw,jnhw->nhw", factors, np.conj(spectra), of_bands), shape)

        unit = in_bands(batch.clean + sigma * batch.noise)
        responses = (norms[:, None] * unit).astype(batch.clean.dtype)
        noise_variance = np.broadcast_to(sigma**2, batch.clean.shape).reshape(-1)
        variances = ((means[1] - means[0]) ** 2 + (norms**2)[:, None] * noise_variance).astype(batch.clean.dtype)
        derivatives = score_derivatives(responses, variances, log_weights, means, want_derivatives=NORMS in blocks)
        # r / sigma, of the noise that the bands see
        seen = put_together(in_bands(batch.noise), shares)
        residual = -seen - sigma * put_together(derivatives.score, shares * norms)
        loss = float(np.vdot(residual, residual))
        if not blocks:
            return loss, []

        back = in_bands(-2.0 * sigma * residual)  # ∂loss/∂(S_jᵀ phi_j), up to factors
        back_scores = (shares * norms)[:, None] * back  # ∂loss/∂phi
        gradients: Point = []
        if NORMS in blocks:
            gradient = shares * (derivatives.score * back).sum(axis=1)
            gradient += (back_scores * derivatives.in_response * unit).sum(axis=1)
            gradient += 2.0 * norms * ((back_scores * derivatives.in_variance) @ noise_variance)
            gradients.append(gradient)
        if LOGITS in blocks:
            coefficients = back_scores.astype(responses.dtype)
            gradients.append(weight_gradient(responses, variances, coefficients, derivatives, log_weights, means))
        return loss, gradients


def spectra_of(bands: Bands, shape: Shape) -> Spectrum:
    """The spectra of all bands, (J, H, W // 2 + 1)."""
    return np.stack([bands.spectrum(j, shape) for j in range(bands.count)])


@dataclass(frozen=True)
class BandConfig:
    """Settings for training a prior of whole images: noise levels uniform in log sigma, `batch` crops per step.

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
    """The starting point [xi (J,), logits (J, L)]: responses brought to the range of the means, heavy tails."""
    clean = draw_mirrored(source, START_CROPS, _rng(config, "start", 0))
    shape = clean.shape[-2:]
    norms = []
    for spectrum in spectra_of(bands, shape):
        largest = float(np.quantile(np.abs(image_of(spectrum * to_spectrum(clean), shape)), 1.0 - TAIL_FRACTION))
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
    """Learn the score of single coefficients at all noise levels, band by band: bands share no parameters.

    `report` is called with the mean loss over the bands, step by step, once all are learnt.
    """

    def learn(band: int) -> tuple[FloatArray, FloatArray, list[float]]:
        clean = coefficients(basis, band, source, _rng(config, "coefficients", band))
        losses: list[float] = []

        def objective(step: int) -> Objective:
            rng = _rng(config, "coefficients", band, step)
            drawn = clean[rng.integers(clean.size, size=(1, config.coefficients))]
            noise, sigma = rng.standard_normal(drawn.shape), _sigmas(config, config.coefficients, rng)
            batch = NoisyBatch(*(array.astype(np.float32) for array in (drawn, noise, sigma)))
            loss: Loss = partial(match_scores, [batch], config.reach)
            return Objective.of(loss, (lambda filters: np.clip(filters, *NORM_RANGE), None))

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
    """Learn the change of whole images at all noise levels.

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
    images = draw_mirrored(source, COEFFICIENT_CROPS, rng)
    shape = images.shape[-2:]
    return image_of(basis.spectrum(band, shape) * to_spectrum(images), shape).reshape(-1)


def draw_mirrored(source: PatchSource, count: int, rng: np.random.Generator) -> FloatArray:
    """Draw crops, mirrored so that they are cyclic without a seam: (count, 2·size, 2·size)."""
    size = source.size
    crops = np.ascontiguousarray(source.draw(count, rng).T).reshape(count, size, size)
    return np.pad(crops, ((0, 0), (0, size), (0, size)), mode="symmetric")


def _minimise(
    point: Point, objective: Callable[[int], Objective], steps: int, averaged: int, report: ReportLoss | None
) -> Point:
    """Run iPALM on a new batch in every step; returns the mean of the last iterates."""
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
        clean = draw_mirrored(source, sigma.size, rng)
        noise = rng.standard_normal(clean.shape)
        return NoisyImages(*(array.astype(np.float32) for array in (clean, noise, sigma)))

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
