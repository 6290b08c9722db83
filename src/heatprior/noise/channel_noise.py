"""The noise of one channel: one level, a line over brightness, or a map, chosen by evidence.

The evidence of a model is its log-likelihood less half its number of parameters times the logarithm of the number of
blocks (BIC). The likelihood is divided first by how often it counts the same information, since patches overlap, and
by how much more it errs since photographs are not quite what the prior says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.row_bands import Progress
from heatprior.noise import affine
from heatprior.noise.affine import Affine, fit_affine
from heatprior.noise.blocks import block_densities, stride_for, usable_patches
from heatprior.noise.directions import weak_directions
from heatprior.noise.doubts import doubts, too_weak
from heatprior.noise.flat_patches import MOST_SCATTER_OF_WHITE, flattest_of_white, scatter
from heatprior.noise.levels import Estimate, clipping, likelihood_of, model_error, noise_level, without_gaps
from heatprior.noise.likelihood import OCTAVES, find_peak, values_at
from heatprior.noise.maps import LocalLevels, local_levels, to_pixels
from heatprior.noise.profiles import StationaryNoise
from heatprior.priors.one_step import denoised_once
from heatprior.priors.protocol import Prior

LEVEL_PART, LOCAL_PART = 0.3, 0.85  # of the time, when one level is known, and when the map is
FEWEST_PATCHES = 144  # with fewer, only one level can be estimated


@dataclass(frozen=True)
class ChannelNoise:
    """The noise of one channel of one image, grey levels being 0 to 1; see `NoiseReport` for the units of the image."""

    model: str
    level: Estimate
    affine: Affine | None
    evidence: dict[str, float]  # of each model that was tried, less that of the constant one
    sigma: float | FloatArray  # as the model has it: a number, or a map (H, W)
    local: LocalLevels | None
    model_error: float  # of the level, as in `NoiseLevel`
    correlated: StationaryNoise | None = None  # where that is the model


def doubts_of(channel: ChannelNoise, image: FloatArray, size: int) -> list[str]:
    """What speaks against what was found in a grey image (H, W) scaled to [0, 1]; see doubts.py."""
    weak = too_weak(channel.level.sigma, float(np.hypot(channel.level.stderr, channel.model_error)))
    return [*([weak] if weak else []), *doubts(image, channel.level.sigma, size, white=channel.correlated is None)]


def channel_noise(
    image: FloatArray, prior: Prior, noise: str = "auto", progress: Progress | None = None
) -> ChannelNoise:
    """Of a grey image (H, W) scaled to [0, 1]."""
    from scipy.ndimage import uniform_filter  # noqa: PLC0415 (slow to import)

    done = progress or (lambda _: None)
    likelihood = likelihood_of(prior)
    level = noise_level(image, likelihood)
    done(LEVEL_PART)
    least = float(OCTAVES[0])
    smallest = max(level.sigma, least)
    typical = float(model_error(np.array(level.sigma), likelihood.photograph_error))
    if noise == "constant" or level.sigma == 0.0:
        return ChannelNoise("constant", level, None, {"constant": 0.0}, smallest, None, typical)
    whole, clipped = without_gaps(image), clipping(image)
    local = local_levels(likelihood, image, whole, clipped)
    done(LOCAL_PART)
    if _too_few(local):
        return ChannelNoise("constant", level, None, {"constant": 0.0}, smallest, local, typical)
    size, stride = likelihood.size, stride_for(likelihood, image.shape)
    usable = usable_patches(image, size, stride, clipped, level.sigma)
    chosen_directions = weak_directions(likelihood.directions, level.sigma)
    wide = block_densities(likelihood, whole, local.log_sigmas, chosen_directions, usable, stride, affine.BLOCK)
    misfit = typical / level.sigma
    line = fit_affine(local.log_sigmas, wide, float(np.log(level.sigma)), local.repeated, misfit)
    evidence = _evidence(local, line, misfit)
    chosen = max(evidence, key=evidence.__getitem__) if noise == "auto" else noise
    if chosen == "affine" and (line is None or (noise == "auto" and not line.is_worth_while(wide.means[wide.usable]))):
        chosen = "constant"
    sigma: float | FloatArray = smallest
    if chosen == "map":
        sigma = np.exp(to_pixels(local, local.log_sigma, image.shape))
    elif line is not None and chosen == "affine":
        first = np.exp(line.log_sigma(uniform_filter(whole, size)))
        sigma = np.exp(line.log_sigma(denoised_once(prior, whole, first)))
    done(1.0)
    if noise == "auto" and chosen != "map":
        flattest = flattest_of_white(image, sigma, clipped)
        if flattest is not None and scatter(flattest) > MOST_SCATTER_OF_WHITE:  # texture: noise, if any, is below that
            level = Estimate(0.0, max(float(flattest[0]) * level.sigma, least))
            return ChannelNoise("constant", level, line, evidence, least, local, 0.0)
    return ChannelNoise(chosen, level, line, evidence, sigma, local, typical)


def _too_few(local: LocalLevels) -> bool:
    return bool(local.blocks.usable.sum() * local.blocks.side**2 < FEWEST_PATCHES)


def why_constant(channel: ChannelNoise) -> str:
    """Why one level is all that was found."""
    if channel.level.sigma == 0.0:
        return "there is no measurable noise"
    if channel.local is None or _too_few(channel.local):
        return "too little of the image can be used"
    return "the image has one brightness only"


def _evidence(local: LocalLevels, line: Affine | None, misfit: float) -> dict[str, float]:
    """Of each model, less that of the constant one."""
    used = local.blocks.usable
    values = local.values[:, used]
    repeated = local.repeated * (1.0 + (misfit / float(np.median(local.error[used]))) ** 2)
    each = float(np.log(max(used.sum(), 2))) / 2.0

    def likelihood(log_sigma: FloatArray) -> float:
        return float(values_at(local.log_sigmas, values, log_sigma).sum()) / repeated

    best = find_peak(local.log_sigmas, values.sum(axis=1)).log_sigma
    constant = likelihood(np.full(values.shape[1], float(best)))
    evidence = {"constant": 0.0}
    if line is not None:
        evidence["affine"] = likelihood(line.log_sigma(local.blocks.means[used])) - constant - each
    evidence["map"] = likelihood(local.log_sigma[used]) - constant - (local.parameters - 1.0) * each
    return evidence
