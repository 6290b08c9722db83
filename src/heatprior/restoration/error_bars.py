"""How far each pixel of a denoised image may be from the truth: from one probe of the denoiser.

For a posterior mean f(y) = E[X | Y = y] the covariance of what remains unknown is C times its derivative, Cov[X | Y] =
J_f(y) C: Tweedie's formula, differentiated once more. So one more run of the very same denoiser, on the image with a
tenth of the noise n added to it, tells the error of every pixel as n_p (f(y + n/10) − f(y))_p · 10 on average over n,
whatever the prior, the scales, the colours and the noise. How nearly averages, splitting and tuned priors have errors
of this size is measured on validation images and kept on the prior's card (`Calibration`).

White noise is probed with signs. The trace of a matrix J is the mean of n J n; of one draw it is off by Σ J_pq n_p n_q
over pixels p ≠ q, and J_pq is much the same for all pixels the same step apart. A maximal-length sequence of a shift
register, folded along the diagonal of a tile, has no such products: of any two different places of the tile, as many
pairs agree as differ (but for one).

The same probe predicts the PSNR, by two estimates of the risk, weighed by their variances. Stein's is unbiased for any
image and denoiser: E ‖f − x‖² = E ‖f − y‖² − tr C + 2 tr J C. But the noise of n pixels has not exactly the variance
that it should have, which is much beside the error that is left of strong noise. Another one, learnt on validation
images (`read_risk_table`), does not see that. Where the two contradict each other, nothing is predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import nan, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatprior.arrays import FloatArray
from heatprior.border.entry import as_type
from heatprior.border.pixels import as_channels
from heatprior.display import as_html, describe_fields
from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import Progress, span_of
from heatprior.locks import cached_property
from heatprior.noise.defects import NO_DEFECTS, Defects
from heatprior.noise.estimation import NoiseReport
from heatprior.priors.schedules import LEAST_SIGMA, TableOverSigma, read_table
from heatprior.restoration.denoising import Plan, Settings, plan

PROBE = 0.1  # of the noise: much less, and jumps between shapes go unseen; much more is no derivative
WIDTH = 5.0  # pixels over which neighbours share an average, the standard deviation of a Gaussian
TRUNCATED = 3.0  # widths at which the Gaussian ends
LEAST_PART, MOST_PART = 1e-3, 1.5  # of the variance of the noise: no pixel is known better, or much worse than noisy
CARD_ENTRY, COLUMNS = "standard_errors", ("sigmas", "probed", "actual", "powers")
TILE = (63, 65)  # coprime; their product is 2^12 − 1
TAPS = (11, 5, 3, 0)  # of x^12 + x^6 + x^4 + x + 1, which is primitive
LEAST_LEVEL = 1e-6  # of full scale
SEED = 0  # of the probe: the same image has the same errors
CORRELATED = " correlated"  # noise: behind a method's name on cards
TOO_HIGH = 0.5  # the mean of the errors of estimated levels over their typical size, on validation images
RISK_ENTRY, RISK_COLUMNS = "risk", ("sigmas", "stein", "constant", "trace", "structure", "spread")
BLUR = (0.25, 0.5, 0.25)  # of what was removed, along either axis: a standard deviation of 0.7 pixels
ALIKE = pi  # pixels that count as one after it: Σ of the squared correlations
CONTRADICTION = 3.0  # standard errors of the difference of both estimates
DECIBELS = 10.0 / np.log(10.0)


class PredictedPsnr(NamedTuple):
    """The PSNR that a denoised image is expected to have, in dB, and the standard error of that.

    Both are NaN where nothing can be predicted: the noise is not what was given, as where it was clipped at black or
    white, or the image is unlike any photograph.
    """

    psnr: float
    stderr: float

    def __repr__(self) -> str:
        return f"PredictedPsnr({self.psnr:.1f} ± {self.stderr:.1f} dB)"


class DenoisedWithError(NamedTuple):
    """A denoised image, the standard deviation of what is wrong with each pixel, and its PSNR without the truth.

    Attributes
    ----------
    pixels : ndarray
        The image, as `denoise` gives it.
    error : ndarray
        Standard deviation of what is wrong with each pixel, in the units of the image and of its shape.
    predicted : PredictedPsnr
        The PSNR that the image should have, `.psnr`, and its standard error, `.stderr`, in dB.
    noise : NoiseReport or None
        What was found of the noise, if `sigma` was not given.
    defects : Defects
        What was mended of the sensor's, such as hot pixels.

    Examples
    --------
    >>> import numpy as np, heatprior as hp
    >>> noisy = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((64, 64))
    >>> found = hp.denoise(noisy, 0.1, quality="fast", return_error=True)
    >>> found.pixels.shape == found.error.shape == noisy.shape
    True
    """

    pixels: NDArray[Any]
    error: FloatArray  # of the shape and in the units of the image
    predicted: PredictedPsnr
    noise: NoiseReport | None  # if it was estimated
    defects: Defects = NO_DEFECTS

    def __repr__(self) -> str:
        return describe_fields(self)

    def _repr_html_(self) -> str:
        return as_html(repr(self), self.error if self.error.ndim == 2 else None)


class Probe(NamedTuple):
    """How the denoised image answers to noise n that is added to the noisy one: J n, beside n itself."""

    drawn: FloatArray  # n, (..., H, W)
    answer: FloatArray  # (f(y + n/10) − f(y)) · 10


@dataclass(frozen=True)
class Calibration:
    """Variance of the error = actual · s² (probed variance / (probed · s²))^power for noise of level s.

    `probed` is what is typical at a level, in parts of the variance of the noise, `actual` what the error then is; in
    between levels all are straight in logarithms. A power above one says that a denoiser does worse than its own
    derivative where it changes much, and better where it is sure of itself.
    """

    sigmas: tuple[float, ...] = (1.0,)  # ascending
    probed: tuple[float, ...] = (1.0,)
    actual: tuple[float, ...] = (1.0,)
    powers: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if not all(value > 0.0 for column in (self.probed, self.actual, self.powers) for value in column):
            raise InvalidInputError(f"{', '.join(COLUMNS[1:])} must be positive")
        TableOverSigma(self.sigmas, (self.probed, self.actual, self.powers))  # checks the rest

    @cached_property
    def _logarithms(self) -> TableOverSigma:
        columns = (tuple(np.log(values).tolist()) for values in (self.probed, self.actual, self.powers))
        return TableOverSigma(self.sigmas, tuple(columns))

    def variance(self, probed: FloatArray, sigma: FloatArray) -> FloatArray:
        """Of the error, given the probed variance (..., H, W) and the level of the noise, which broadcasts to it."""
        noise = np.maximum(np.square(sigma), LEAST_SIGMA**2).astype(probed.dtype)
        usual, actual, power = (values.astype(probed.dtype) for values in self._logarithms.at(sigma))
        part = np.maximum(probed / noise, LEAST_PART)
        part = np.exp(actual + np.exp(power) * (np.log(part, out=part) - usual))
        return np.asarray(np.clip(part, LEAST_PART, MOST_PART) * noise)


def read_calibration(card: Mapping[str, Any], method: str) -> Calibration:
    """What a prior's card says of a method; if it says nothing, the probed variance is taken as it is."""
    return read_table(card, CARD_ENTRY, COLUMNS, Calibration, section=method) or Calibration()


def probe(
    denoise: Callable[[FloatArray], FloatArray], noisy: FloatArray, clean: FloatArray, drawn: FloatArray
) -> Probe:
    """Denoise once more, with a tenth of the noise `drawn` added; `clean` is the image denoised without it."""
    return Probe(drawn, (denoise(noisy + PROBE * drawn) - clean) / PROBE)


def estimate_variance(found: Probe, alike: float = 1.0) -> FloatArray:
    """n J n, averaged over neighbours in the last two axes, not negative; NaN where pixels are missing.

    `alike` is how many pixels count as one where noise is correlated: as many more share an average.
    """
    from scipy.ndimage import gaussian_filter  # noqa: PLC0415 (slow to import)

    product = found.drawn * found.answer
    known = np.isfinite(product)
    width = WIDTH * float(np.sqrt(alike))
    over = (0.0,) * (product.ndim - 2) + (width, width)
    if known.all():
        return np.maximum(gaussian_filter(product, over, mode="nearest", truncate=TRUNCATED), 0.0)
    weights = gaussian_filter(known.astype(np.float32), over, mode="nearest", truncate=TRUNCATED)
    sums = gaussian_filter(np.where(known, product, 0.0), over, mode="nearest", truncate=TRUNCATED)
    return np.where(known, np.maximum(sums / np.maximum(weights, 1e-6), 0.0), np.nan)


@cache
def sign_tile() -> NDArray[np.bool_]:
    """One period of the signs, as whether they are positive: (63, 65)."""
    length = TILE[0] * TILE[1]
    register, bits = [True] * (max(TAPS) + 1), np.empty(length, np.bool_)
    for k in range(length):
        bits[k] = register[-1]
        register = [bool(sum(register[tap] for tap in TAPS) % 2), *register[:-1]]
    folded, places = np.empty(TILE, np.bool_), np.arange(length)
    folded[places % TILE[0], places % TILE[1]] = bits
    folded.setflags(write=False)
    return folded


def draw_signs(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Where the signs are positive: tiles over the last two axes, begun at another place for each image in front."""
    signs = np.empty(shape, np.bool_)
    repeats = [-(-length // side) + 1 for length, side in zip(shape[-2:], TILE, strict=True)]
    tiled = np.tile(sign_tile(), repeats)
    for index in np.ndindex(shape[:-2]):
        top, left = (int(rng.integers(side)) for side in TILE)
        signs[index] = tiled[top : top + shape[-2], left : left + shape[-1]]
    return signs


class Probed(NamedTuple):
    """A plan carried out and probed, in floats: what errors and risk are computed from."""

    plan: Plan
    noisy: FloatArray  # of the shape of the image
    clean: FloatArray
    found: Probe  # (..., channels, H, W), in the units of the image
    levels: FloatArray  # of the noise, likewise, or (..., channels, 1, 1)
    alike: float  # pixels that count as one because their noise is correlated, at most; 1 if it is white

    @property
    def variance(self) -> FloatArray:
        """That of the errors by the derivative alone: (..., channels, H, W)."""
        return estimate_variance(self.found, self.alike)

    def ingredients(self) -> Ingredients:
        """What the risk is estimated from: of all channels but transparency."""
        removed = as_channels(self.noisy - self.clean, self.plan.entered.channel_axis)
        kept = slice(None, -1 if self.plan.entered.has_alpha else None)
        return Ingredients.of(removed[..., kept, :, :], Probe(*(values[..., kept, :, :] for values in self.found)))


def probe_image(
    image: ArrayLike, sigma: ArrayLike | None, settings: Settings, progress: Progress | None = None
) -> Probed:
    """The image denoised, and once more with some noise added to it."""
    made, progress = plan(image, sigma, settings, progress)
    entered = made.entered._replace(pixels=made.entered.pixels.astype(np.float32), dtype=None)
    clean = made.denoise_entered(entered, span_of(progress, 0.0, 0.5))
    second = span_of(progress, 0.5, 1.0)
    drawn = draw_noise(made, np.random.default_rng(SEED))
    found = probe(
        lambda pixels: made.denoise_entered(entered._replace(pixels=pixels), second), entered.pixels, clean, drawn
    )
    planes = Probe(*(as_channels(values, entered.channel_axis) for values in found))
    spectra = () if made.profile is None else [channel.spectrum for channel in made.profile.channels]
    alike = max((spectrum.pixels_alike for spectrum in spectra), default=1.0)
    return Probed(made, entered.pixels, clean, planes, noise_levels(made), alike)


def denoise_with_error(
    image: ArrayLike, sigma: ArrayLike | None, settings: Settings, progress: Progress | None = None
) -> DenoisedWithError:
    """As `denoise`, which it runs twice."""
    done = probe_image(image, sigma, settings, progress)
    made, entered, full = done.plan, done.plan.entered, done.plan.entered.full
    calibration = read_calibration(made.prior.card, table_name(made))
    variance = calibration.variance(done.variance / full**2, done.levels / full)
    error = np.empty(done.noisy.shape, np.float32)
    as_channels(error, entered.channel_axis)[...] = np.where(done.found.drawn == 0.0, 0.0, full * np.sqrt(variance))
    parts, table = done.ingredients(), read_risk_table(made.prior.card, table_name(made))
    levels, (excess, doubt) = done.levels[..., : parts.known.shape[-3], :, :], _errors_of_noise(made.report)
    quality = predict_psnr(parts, levels, full, table=table, excess=excess, doubt=doubt, alike=done.alike)
    dtype = entered.result_dtype
    pixels = made.join(as_type(done.clean, dtype).astype(dtype))
    return DenoisedWithError(pixels, made.join(error), quality, made.report, made.defects)


def draw_noise(made: Plan, rng: np.random.Generator) -> FloatArray:
    """Noise of the covariance that the plan takes the image's to have, in its units and shape, in float32.

    White noise is ± sigma, which tells a trace better than a Gaussian. Transparency has none.
    """
    drawn = np.zeros(made.entered.pixels.shape, np.float32)
    entered, channels = made.entered, as_channels(drawn, made.entered.channel_axis)
    shape = channels.shape[-2:]
    for group in entered.groups():
        if made.profile is None:
            rows = [made.noises[*group.image, c].rows(slice(None)) * entered.full for c in group.channels]
            sigma = np.array([np.broadcast_to(own, shape) for own in rows], np.float32)
            channels[group.place] = np.where(draw_signs(sigma.shape, rng), sigma, -sigma)
        else:
            fields = [
                noise.rows(slice(None)) * (1.0 if noise.spectrum is None else noise.spectrum.field(shape, rng))
                for noise in made.noises_of_planes(group)
            ]
            channels[group.place] = np.tensordot(np.linalg.inv(entered.mix) * entered.full, np.array(fields), axes=1)
    return drawn


def noise_levels(made: Plan) -> FloatArray:
    """Standard deviation of that noise, in the units of the image: (..., channels, H, W), or (..., channels, 1, 1)."""
    entered = made.entered
    shape = entered.channels.shape
    constant = made.profile is None and all(noise.is_constant for noise in made.noises.values())
    levels = np.ones((*shape[:-2], 1, 1) if constant else shape, np.float32)
    squares = np.square(np.linalg.inv(entered.mix) * entered.full)
    for place, noise in made.noises.items():
        levels[place] = noise.rows(slice(None)) * entered.full
    for group in entered.groups():
        if made.profile is not None:
            rows = [np.broadcast_to(noise.rows(slice(None)), shape[-2:]) for noise in made.noises_of_planes(group)]
            levels[group.place] = np.sqrt(np.tensordot(squares, np.square(np.array(rows)), axes=1))
    return levels


def table_name(made: Plan) -> str:
    """Under which name a prior's card has the tables for a plan: its method, and whether the noise is correlated."""
    return ("eb" if made.settings.steps == 1 else "hqs") + (CORRELATED if made.profile is not None else "")


def _errors_of_noise(report: NoiseReport | None) -> tuple[float, float]:
    """Of an estimated variance: the part by which it is too large on average, and its relative error beside that.

    Both on average over channels, and none if it was given. Texture passes for white noise, but noise seldom for
    texture; that of a camera may be found too weak as well as too strong.
    """
    if report is None:
        return 0.0, 0.0
    levels = np.array([max(channel.level.sigma, LEAST_LEVEL) for channel in report.channels])
    chance = np.array([channel.level.stderr for channel in report.channels])
    typical = np.array([channel.model_error for channel in report.channels])
    mean = np.where([model == "camera" for model in report.models], 0.0, TOO_HIGH)
    errors = np.hypot(chance, np.sqrt(1.0 - mean**2) * typical)
    return float(np.mean(2.0 * mean * typical / levels)), float(np.mean(2.0 * errors / levels))


def read_risk_table(card: Mapping[str, Any], method: str) -> TableOverSigma | None:
    """What a prior's card says of the risk of a method, if anything.

    Risk = constant · s² + trace · (n J n) + structure · (what was removed, blurred, squared, beyond noise). `stein`
    corrects the trace in Stein's estimate, which a probe that is no infinitesimal one gets a little wrong; `spread` is
    the relative error of the risk from image to image.
    """

    def make(sigmas: tuple[float, ...], *columns: tuple[float, ...]) -> TableOverSigma:
        if not all(spread > 0.0 for spread in columns[-1]):
            raise InvalidInputError(f"spread is {columns[-1]}; expected numbers above 0")
        return TableOverSigma(sigmas, columns)

    return read_table(card, RISK_ENTRY, RISK_COLUMNS, make, section=method)


class Ingredients(NamedTuple):
    """What risk is estimated from, for every pixel, in squared units of the image; zero where pixels are missing."""

    removed: FloatArray  # squared: (f − y)²
    trace: FloatArray  # n J n
    through: FloatArray  # (J n)²
    blurred: FloatArray  # what was removed, blurred, squared
    of_noise: FloatArray  # the same of n − J n: what would be there if nothing but noise were removed
    known: FloatArray  # whether the pixel is there, 0 or 1
    pixels: float  # how many are

    @classmethod
    def of(cls, removed: FloatArray, found: Probe) -> Ingredients:
        """From what was removed, y − f (..., H, W), and the probe."""
        trace = found.drawn * found.answer
        known = np.isfinite(trace)
        drawn, answer = found
        if not known.all():
            removed, drawn, answer, trace = (np.where(known, values, 0.0) for values in (removed, drawn, answer, trace))
        blurred, of_noise = (np.square(_blur(values)) for values in (removed, drawn - answer))
        pixels = float(np.count_nonzero(known))
        return cls(np.square(removed), trace, np.square(answer), blurred, of_noise, known, pixels)

    def mean(self, values: FloatArray) -> float:
        """Over the pixels that are there; one level stands for all."""
        if values.size == 1:
            return float(values.ravel()[0])
        if values.shape != self.known.shape or self.pixels < self.known.size:
            values = values * self.known
        return float(np.sum(values, dtype=np.float64)) / self.pixels


class _Estimate(NamedTuple):
    """Of the mean squared error: its variance, and how it moves with the logarithm of the variance of the noise."""

    risk: float
    variance: float
    slope: float

    def without(self, excess: float) -> _Estimate:
        """Had the variance of the noise been taken for smaller by this part."""
        return self._replace(risk=self.risk - excess * self.slope)


def predict_psnr(
    parts: Ingredients,
    levels: FloatArray,
    full: float,
    *,
    table: TableOverSigma | None = None,
    excess: float = 0.0,
    doubt: float = 0.0,
    alike: float = 1.0,
) -> PredictedPsnr:
    """The PSNR, full scale being `full`; `levels` are the standard deviations of the noise, (..., H, W).

    Where the variance of the noise was estimated, `excess` is the part by which it is too large on average, and `doubt`
    its relative error. `alike` is how many pixels count as one where noise is correlated.
    """
    if not parts.pixels:
        raise InvalidInputError("every pixel of the image is missing; nothing is known of its quality")
    if table is None:
        risk, error, sound = _alone(_by_stein(parts, levels, 1.0, alike).without(excess), doubt)
    else:
        values = tuple(column.astype(levels.dtype) for column in table.at(levels / full))
        learnt = _by_table(parts, levels, values).without(excess)
        if doubt and alike > 1.0:  # Stein's needs the covariance of the noise, which is then in doubt as a whole
            risk, error, sound = _alone(learnt, doubt)
        else:
            risk, error, sound = _weigh(_by_stein(parts, levels, values[0], alike).without(excess), learnt, doubt)
    if not sound:
        return PredictedPsnr(nan, nan)
    least = LEAST_PART * parts.mean(np.square(levels))
    risk = max(risk, error / 2.0, least)  # an estimate of nearly nothing may come out negative
    return PredictedPsnr(float(DECIBELS * np.log(full**2 / risk)), float(DECIBELS * error / risk))


def _by_stein(parts: Ingredients, sigma: FloatArray, factor: FloatArray | float, alike: float) -> _Estimate:
    """‖f − y‖² − tr C + 2 tr J C, each over the number of pixels.

    Its variance has two parts, that of the noise itself, as far as the denoiser does not see it, and that of one draw
    instead of the trace; both are those of white noise on as many pixels as count.
    """
    variance = np.square(sigma)
    whole, squares = (parts.mean(values) for values in (variance, np.square(variance)))
    trace = parts.mean(factor * parts.trace)
    size = parts.mean(parts.through) * whole
    risk = parts.mean(parts.removed) - whole + 2.0 * trace
    by_noise = 2.0 * (squares - 4.0 * whole * trace + 4.0 * size) + 4.0 * whole * max(risk, 0.0)
    by_draw = 8.0 * max(size - trace**2, 0.0)
    return _Estimate(risk, (max(by_noise, 0.0) + by_draw) * alike / parts.pixels, 2.0 * trace - whole)


def _by_table(parts: Ingredients, sigma: FloatArray, values: tuple[FloatArray, ...]) -> _Estimate:
    """What is learnt: off by another part for every image, and a little because what was removed holds noise, too."""
    _, constant, trace, structure, spread = values
    steady = parts.mean(constant * np.square(sigma)) + parts.mean(trace * parts.trace)
    of_noise = parts.mean(structure * parts.of_noise)
    risk = steady + parts.mean(structure * parts.blurred) - of_noise
    risk = max(risk, parts.mean(parts.through) / 2.0)
    variance = (parts.mean(spread) * risk) ** 2 + 4.0 * ALIKE * of_noise**2 / parts.pixels
    return _Estimate(risk, variance, steady - of_noise)


def _alone(one: _Estimate, doubt: float) -> tuple[float, float, bool]:
    """The risk, its standard error, and whether it makes sense: none is below zero."""
    error = sqrt(one.variance + (one.slope * doubt) ** 2)
    return one.risk, error, one.risk > -CONTRADICTION * error


def _weigh(stein: _Estimate, learnt: _Estimate, doubt: float) -> tuple[float, float, bool]:
    """The same for both estimates by least variance; a doubt about the noise moves both."""
    first, second = (one.variance + (one.slope * doubt) ** 2 for one in (stein, learnt))
    both = stein.slope * learnt.slope * doubt**2
    apart = first + second - 2.0 * both
    weight = min(max((second - both) / apart, 0.0), 1.0)
    risk = weight * stein.risk + (1.0 - weight) * learnt.risk
    variance = weight**2 * first + (1.0 - weight) ** 2 * second + 2.0 * weight * (1.0 - weight) * both
    return risk, sqrt(max(variance, 0.0)), abs(stein.risk - learnt.risk) < CONTRADICTION * sqrt(apart)


def _blur(values: FloatArray) -> FloatArray:
    from scipy.ndimage import convolve1d  # noqa: PLC0415 (slow to import)

    rows = convolve1d(values, BLUR, axis=-2, mode="nearest")
    return np.asarray(convolve1d(rows, BLUR, axis=-1, mode="nearest"))
