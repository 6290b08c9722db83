"""Correlated noise by maximum likelihood: its spectrum, and its strength as a function of brightness.

A mixture of Gaussians is exact under noise of any covariance, so that EM finds the covariance itself: patches are
explained by the prior and noise of covariance v_l C, one level l for patches of like brightness, and

    v_l ← mean of tr(C⁻¹ E[n nᵀ | y]) / d,    C ← the stationary covariance nearest to the mean of E[n nᵀ | y] / v_l.

The likelihood has more than one peak, since a texture that is the same everywhere is noise to any likelihood. EM starts
from the patches of least energy, and at low frequencies, where texture is strong and the noise of brightness is not,
the power may not grow beyond `most_excess` times that of the middle ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.log_sums import log_sum_exp
from heatprior.noise.stationary import covariance_without_brightness, fit_power, frequencies
from heatprior.priors.filters import FilterBank
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.noise_expectation import NoiseStatistics, expected_noise

SIDE = 16  # of the torus: all lags within a patch of 8×8 pixels
MOST_PATCHES = 2000
AREA = 16  # pixels for each patch, at least: closer ones tell hardly more
FEWEST_PATCHES = 200  # with fewer, nothing but one level can be told
LEVELS, FEWEST_IN_LEVEL = 5, 60
FLATTEST = 0.2  # of the patches of a level, from which EM starts
FIRST_STEPS, STEPS = 20, 5  # on the torus, before the first round and within each
ROUNDS = 8
PSEUDO_COUNT = 0.02  # of the patches: pseudo-counts for the usual contrasts
LEAST_VARIANCE = 1e-8  # of the noise: a fortieth of a grey level of 8 bits
MOST_EXCESS = 2.5  # of the power at low frequencies over that of the middle ones, in grey images
LOW, MIDDLE, HIGH = 0.13, (0.2, 0.3), 0.4  # cycles per pixel
LEAST_RIDGE = 1e-3  # of white noise, added to the moments from which EM starts


class Picture(NamedTuple):
    """A grey image (H, W), grey levels being 0 to 1; its brightness (H, W), smooth; and which pixels count."""

    pixels: FloatArray
    brightness: FloatArray
    usable: NDArray[np.bool_]


class Patches(NamedTuple):
    """Patches by levels of brightness, as coordinates in the cosine basis without its constant, in float32."""

    levels: list[FloatArray]  # (n_l, d) each
    brightness: FloatArray  # mean of each level, (L,)
    size: int
    repeated: float  # how often each pixel counts, one or more

    @property
    def total(self) -> int:
        """How many there are in all."""
        return sum(len(level) for level in self.levels)


class Fit(NamedTuple):
    """What EM has found."""

    power: FloatArray  # (P, P), of mean one
    variances: FloatArray  # v_l (L,)
    contrasts: FloatArray  # weights of the contrasts of the prior in these patches, (G,)
    log_posterior: tuple[float, ...]  # round by round, of all patches and the pseudo-counts together


def patches_of(pictures: Sequence[Picture], size: int, *, seed: int = 0) -> Patches | None:
    """Some patches of pictures of one camera; None if there are too few. Patches that are one grey value do not count.

    Such patches are clipped or drawn: no noise is as weak as that.
    """
    rng = np.random.default_rng(seed)
    basis = FilterBank.dct(size).matrix
    found, brightness, area = [], [], 0
    for picture in pictures:
        windows = sliding_window_view(picture.pixels, (size, size))
        across = windows.shape[1]
        count = min(windows.shape[0] * across, picture.pixels.size // AREA, -(-MOST_PATCHES // len(pictures)))
        rows, columns = np.divmod(rng.choice(windows.shape[0] * across, count, replace=False), across)
        whole = sliding_window_view(picture.usable, (size, size))[rows, columns].all(axis=(1, 2))
        rows, columns = rows[whole], columns[whole]
        patches = windows[rows, columns].reshape(-1, size**2).astype(np.float64)
        varied = np.ptp(patches, axis=1) > 0
        found.append(patches[varied] @ basis.T)
        middle = size // 2
        brightness.append(picture.brightness[rows + middle, columns + middle][varied])
        area += picture.pixels.size
    rows, light = np.concatenate(found).astype(np.float32), np.concatenate(brightness)
    if len(rows) < FEWEST_PATCHES:
        return None
    count = min(LEVELS, len(rows) // FEWEST_IN_LEVEL)
    order = np.argsort(light, kind="stable")
    parts = np.array_split(order, count)
    means = np.array([light[part].mean() for part in parts])
    return Patches([rows[part] for part in parts], means, size, max(1.0, len(rows) * size**2 / area))


def start_from_flat(patches: Patches) -> tuple[FloatArray, FloatArray]:
    """Power and variances of the patches of least energy in each level, as if they were noise alone."""
    dimension = patches.levels[0].shape[1]
    variances, moments, count = [], np.zeros((dimension, dimension)), 0
    for level in patches.levels:
        energy = np.square(level).sum(axis=1)
        flat = level[np.argsort(energy)[: max(8, int(FLATTEST * len(level)))]].astype(np.float64)
        variances.append(max(float(np.square(flat).mean()), LEAST_VARIANCE))
        moments += flat.T @ flat / variances[-1]
        count += len(flat)
    ridge = LEAST_RIDGE * np.eye(dimension)
    return _scaled(fit_power(np.ones((SIDE, SIDE)), moments / count + ridge, patches.size, FIRST_STEPS), variances)


def fit_noise(
    prior: GaussianMixturePrior,
    patches: Patches,
    power: FloatArray,
    variances: FloatArray,
    *,
    white: bool = False,
    most_excess: float = np.inf,
    rounds: int = ROUNDS,
) -> Fit:
    """EM from this power and these variances on; `white` noise keeps its power.

    Without a bound on the excess no round lowers the posterior.
    """
    usual = np.exp(log_sum_exp(prior.log_weights, axis=0))
    within = prior.log_weights - np.log(usual)
    weights, history = usual, []
    middle = (frequencies(len(power)) > MIDDLE[0]) & (frequencies(len(power)) < MIDDLE[1])
    for last in [False] * rounds + [True]:
        covariance = covariance_without_brightness(power, patches.size)
        sums = expected_noise(prior, within + np.log(weights), covariance, patches.levels, variances)
        extra = PSEUDO_COUNT * patches.total * usual
        history.append(sums.log_likelihood + float((extra * np.log(weights)).sum()))
        if last:
            break
        variances = _new_variances(sums, covariance, patches)
        if not white:
            moments = np.einsum("l,lde->de", 1.0 / variances, sums.moments) / patches.total
            power = fit_power(power, moments, patches.size, STEPS)
            power = np.minimum(power, most_excess * power[middle].mean())
            power, variances = _scaled(power, variances)
        weights = (sums.weights.sum(axis=0) + extra) / (patches.total * (1.0 + PSEUDO_COUNT))
    return Fit(power, variances, weights, tuple(history))


def evidence_over_white(correlated: Fit, white: Fit, patches: Patches) -> float:
    """Of the correlated noise, less that of white noise: by BIC, the likelihood counted once for each pixel."""
    lags = 2 * patches.size * (patches.size - 1)
    gained = correlated.log_posterior[-1] - white.log_posterior[-1]
    return gained / patches.repeated - 0.5 * lags * float(np.log(patches.total))


def high_power(power: FloatArray) -> float:
    """What is left at high frequencies of a power of mean one: one in white noise, less in noise that was smoothed."""
    return float(power[frequencies(len(power)) > HIGH].mean())


def low_excess(power: FloatArray) -> float:
    """The power at low frequencies over that of the middle ones."""
    from_zero = frequencies(len(power))
    middle = (from_zero > MIDDLE[0]) & (from_zero < MIDDLE[1])
    return float(power[(from_zero > 0) & (from_zero < LOW)].mean() / power[middle].mean())


def _new_variances(sums: NoiseStatistics, covariance: FloatArray, patches: Patches) -> FloatArray:
    inverse = np.linalg.inv(covariance)
    traces = np.einsum("de,led->l", inverse, sums.moments)
    counts = np.array([len(level) for level in patches.levels])
    return np.asarray(np.maximum(traces / (counts * len(covariance)), LEAST_VARIANCE))


def _scaled(power: FloatArray, variances: Sequence[float] | FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same noise, its power of mean one."""
    mean = float(power.mean())
    return power / mean, np.asarray(variances) * mean
