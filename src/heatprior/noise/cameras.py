"""The noise profile of a camera from its pictures: correlated noise in each of the channels that are denoised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.kernels.row_bands import Progress, part_of
from heatprior.noise.correlated import (
    LEVELS,
    MOST_EXCESS,
    Fit,
    Patches,
    Picture,
    evidence_over_white,
    fit_noise,
    high_power,
    low_excess,
    patches_of,
    start_from_flat,
)
from heatprior.noise.flat_patches import FEWEST_PATCHES, levels_of_flattest, patches_on_grid, scatter
from heatprior.noise.levels import clipping
from heatprior.noise.profiles import NoiseProfile, StationaryNoise, smooth_brightness
from heatprior.noise.stationary import covariance_without_brightness
from heatprior.noise_model.spectrum import NoiseSpectrum
from heatprior.pixels.channels import ALONE, COLOUR, mixed
from heatprior.pixels.gaps import fill_missing
from heatprior.priors.filters import FilterBank
from heatprior.priors.gaussian_mixture import GaussianMixturePrior

MOST_EXCESS_OF_DIFFERENCES = 120.0  # cameras leave the noise of colours at low frequencies, and there texture is weak
# Sigma of photographs over that of patches that hold little but noise, in brightness and in differences: cameras smooth
# flat parts most, and there most at high frequencies. Chosen on crops of five pictures of CC15, the second of every
# three (experiments/camera_noise.py).
STRONGER = (1.7, 2.0)
FLATTER = (0.3, 0.6)  # power to which spectra are taken, by the same reason: towards white noise, where there is least
# Power at high frequencies over the mean, at most, in noise that was smoothed: 0.04 to 0.25 in CC15, 0.29 and more in
# six clean validation images, whose texture may pass for noise.
MOST_LEFT = 0.3
MOST_SPREAD = 4.0  # of sigma between levels of brightness: up to 2.8 in CC15, above 4.8 in six clean validation images
# Of the flattest patches: power at low frequencies over that of the middle ones, and scatter of their energy.
MOST_LOW_EXCESS, MOST_SCATTER = 25.0, 1.24
MODEL_ERROR = 0.2  # of sigma, typically, in photographs


class FoundProfile(NamedTuple):
    """A profile, the evidence for correlated noise in brightness over white noise, and what is left of the latter.

    Fine texture, too, is evidence against white noise. But only what was smoothed has lost its highest frequencies.
    """

    profile: NoiseProfile
    evidence: float
    left: float  # power at high frequencies over the mean power
    spread: float  # highest over lowest sigma in brightness, of the levels of brightness

    @property
    def is_correlated(self) -> bool:
        """Whether it is to be preferred to white noise."""
        return self.evidence > 0.0 and self.left < MOST_LEFT and self.spread < MOST_SPREAD


def find_profile(
    prior: GaussianMixturePrior,
    images: Sequence[FloatArray],
    *,
    is_colour: bool,
    doubtful: bool = False,
    progress: Progress | None = None,
) -> FoundProfile | None:
    """Of images (channels, H, W) of one camera, grey levels being 0 to 1; None if they hold too little to tell.

    If it is `doubtful` that there is such noise, None also where the flattest patches speak against it: EM is spared.
    """
    mix = COLOUR if is_colour else ALONE
    count = len(images[0])
    channels, evidence, left, spread = [], [], [], []
    for first in range(0, count, len(mix)):
        prepared = [_prepared(image[first : first + len(mix)], mix[0]) for image in images]
        for d, weights in enumerate(mix):
            pictures = [Picture(mixed(filled, weights), brightness, usable) for filled, brightness, usable in prepared]
            patches = patches_of(pictures, prior.size)
            if patches is None:
                return None
            power, variances = start_from_flat(patches)
            if d == 0 and doubtful and not _flattest_hold_noise(pictures, power):
                return None
            most = MOST_EXCESS if d == 0 else MOST_EXCESS_OF_DIFFERENCES
            fit = fit_noise(prior, patches, power, variances, most_excess=most)
            if d == 0:
                white = fit_noise(prior, patches, np.ones_like(power), variances, white=True)
                evidence.append(evidence_over_white(fit, white, patches))
                left.append(high_power(fit.power))
                spread.append(float(np.sqrt(fit.variances.max() / fit.variances.min())))
            smoothed = left[-1] < MOST_LEFT  # by a camera; other noise is what the flattest patches show
            channels.append(_as_noise(fit, patches, *((STRONGER[d > 0], FLATTER[d > 0]) if smoothed else (1.0, 1.0))))
            if (done := part_of(progress, first + d, count)) is not None:
                done(1.0)
    profile = NoiseProfile(tuple(channels), len(images))
    return FoundProfile(profile, float(np.mean(evidence)), float(np.mean(left)), max(spread))


def scatter_of_flattest(pictures: Sequence[Picture], power: FloatArray) -> float:
    """Of patches of nothing but noise of this power one: the geometric mean over levels of brightness.

    Infinite if there are too few patches. See flat_patches.py.
    """
    found = [patches_on_grid(picture.pixels, picture.usable) for picture in pictures]
    if sum(len(one.pixels) for one in found) < FEWEST_PATCHES:
        return np.inf
    basis = FilterBank.dct(round(found[0].pixels.shape[1] ** 0.5)).matrix
    covariance = covariance_without_brightness(power, round(len(basis[0]) ** 0.5))
    whitening = (np.linalg.inv(np.linalg.cholesky(covariance)) @ basis).astype(np.float32)
    energies = np.concatenate([np.square(one.pixels @ whitening.T).mean(axis=1) for one in found])
    light = [picture.brightness[one.rows, one.columns] for picture, one in zip(pictures, found, strict=True)]
    levels = np.array_split(np.argsort(np.concatenate(light), kind="stable"), LEVELS)
    ratios = [scatter(levels_of_flattest(energies[level], len(basis))) for level in levels]
    return float(np.exp(np.mean(np.log(ratios))))


def _flattest_hold_noise(pictures: Sequence[Picture], power: FloatArray) -> bool:
    """Whether noise that was smoothed may be what the flattest patches, of this power, hold."""
    smoothed = high_power(power) < MOST_LEFT and low_excess(power) < MOST_LOW_EXCESS
    return smoothed and scatter_of_flattest(pictures, power) < MOST_SCATTER


def noise_of_colours(profile: NoiseProfile, *, is_colour: bool) -> tuple[StationaryNoise, ...]:
    """The noise of red, green and blue, if that of brightness and the differences is uncorrelated."""
    if not is_colour:
        return profile.channels
    levels = profile.channels[0].brightness
    variances = [np.interp(levels, channel.brightness, channel.variances) for channel in profile.channels]
    errors = [np.interp(levels, channel.brightness, channel.errors) for channel in profile.channels]
    found = []
    for squares in np.square(np.linalg.inv(COLOUR)):
        parts = squares[:, None] * variances  # (3, L)
        power = sum(p * channel.spectrum.power for p, channel in zip(parts.mean(axis=1), profile.channels, strict=True))
        spread = np.sqrt(np.square(squares[:, None] * errors).sum(axis=0))
        power_error = max(channel.power_error for channel in profile.channels)
        found.append(StationaryNoise(NoiseSpectrum(np.asarray(power)), levels, parts.sum(axis=0), spread, power_error))
    return tuple(found)


def _prepared(channels: FloatArray, brightness: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Channels (k, H, W) without NaN, their brightness (H, W), and which pixels are neither missing nor clipped."""
    usable = np.isfinite(channels).all(axis=0)
    filled = np.array(channels, np.float32)
    for channel in filled:
        for end in clipping(channel):
            usable &= channel != end
        fill_missing(channel)
    return filled, smooth_brightness(mixed(filled, brightness)), np.asarray(usable)


def _as_noise(fit: Fit, patches: Patches, stronger: float, flatter: float) -> StationaryNoise:
    counts = np.array([len(level) for level in patches.levels]) * patches.levels[0].shape[1]
    variances = stronger**2 * fit.variances
    errors = variances * np.sqrt(2.0 * patches.repeated / counts)
    # Each frequency of the torus, one with its opposite, is seen by as many patches as together have its pixels.
    power_error = np.sqrt(patches.repeated * fit.power.size / counts.sum())
    spectrum = NoiseSpectrum(fit.power**flatter)
    return StationaryNoise(spectrum, patches.brightness, variances, errors, float(flatter * power_error), flatter)
