"""The noise of one channel: one level, a line over brightness, or a map, chosen by evidence.

The evidence of a model is its log-likelihood less half its number of parameters times the logarithm of the number of
blocks (BIC). The likelihood is divided first by how often it counts the same information, since patches overlap, and
by how much larger its error is because photographs are not quite what the prior says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.display import describe_fields, format_level
from heatprior.kernels.patches import Progress
from heatprior.noise import photon_noise
from heatprior.noise.levels import (
    Estimate,
    LocalLevels,
    clipping,
    find_level,
    likelihood_of,
    local_levels,
    model_error,
    to_pixels,
    without_gaps,
)
from heatprior.noise.likelihood import (
    CLEAR,
    OCTAVES,
    Blocks,
    Clipped,
    block_densities,
    find_peak,
    stride_for,
    usable_patches,
    weak_directions,
)
from heatprior.noise.photon_noise import Affine, fit_affine, holds_counts, whole_counts
from heatprior.noise.stabilisation import MOST_READ, PoissonGaussian, split_line
from heatprior.priors.protocol import NoiseLikelihood, Prior, denoise_once

LEVEL_PART, LOCAL_PART = 0.3, 0.85  # of the time, when one level is known, and when the map is
FEWEST_PATCHES = 144  # with fewer, only one level can be estimated
CERTAIN = 50.0  # of log evidence: more than texture brings about in white noise (paper/evaluations/line_evidence.py)

# Where the model of white noise does not hold: clipped, quantised or too weak.
MANY_CLIPPED = 0.02  # of the pixels
ENOUGH = 0.25  # of the patches, not clipped
COARSE = 0.5  # times the step between grey levels: noise weaker than this
FEW_VALUES = 4096  # with more distinct values than this, quantisation is not looked for
NINETY = 1.645  # standard errors: the interval that holds the truth in 90 of 100 cases
NUMBER = re.compile(r"\d+(\.\d+)?")


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
    probability: float = 1.0  # that removing it pays
    counts: PoissonGaussian | None = None  # where it is affine, and grows with brightness
    __repr__ = describe_fields

    def interval90(self, white: float) -> tuple[float, float]:
        """The ends of the interval that holds the level in 90 of 100 cases, full scale being `white`."""
        half = NINETY * float(np.hypot(self.level.stderr, self.model_error))
        return max(0.0, self.level.sigma - half) * white, (self.level.sigma + half) * white


def doubts_of(channel: ChannelNoise, image: FloatArray, size: int, white: float) -> list[str]:
    """What speaks against what was found in a grey image (H, W) scaled to [0, 1] by `white`."""
    if channel.model in ("none", "camera"):  # that was decided by what is there, whatever it is
        return []
    found, (low, high) = doubts(image, channel.level.sigma, size, white), channel.interval90(white)
    if low > 0.0:
        return found
    weak = f"noise below {format_level(high)} looks like fine texture; if detail is lost, lower the strength"
    return [weak, *found]


def channel_noise(
    image: FloatArray, priors: Sequence[Prior], noise: str = "auto", progress: Progress | None = None
) -> ChannelNoise:
    """The noise of a grey image (H, W) scaled to [0, 1], by the first of the priors; weak noise by the last.

    That weighs dark and bright parts differently, so it has no say where noise certainly changes with brightness.
    """
    from scipy.ndimage import uniform_filter  # noqa: PLC0415 (slow to import)

    done = progress or (lambda _: None)
    likelihood = likelihood_of(priors[0])
    level, best, best_error = find_level(image, priors)
    done(LEVEL_PART)
    smallest = max(best.sigma, float(OCTAVES[0]))
    if noise == "constant" or best.sigma == 0.0:
        return ChannelNoise("constant", best, None, {"constant": 0.0}, smallest, None, best_error)
    whole, clipped = without_gaps(image), clipping(image)
    typical = float(model_error(np.array(level.sigma), likelihood.photograph_error))
    misfit = typical / level.sigma
    is_counted, found = False, _local_and_line(likelihood, image, whole, clipped, level, misfit)
    if np.isfinite(clipped[0]):
        every = _local_and_line(likelihood, image, whole, (-np.inf, clipped[1]), level, misfit)
        if not _too_few(every[0]):
            is_counted = holds_counts(image, clipped[0], *every[:2], _repeated(every[0], misfit))
    local, line, wide = every if is_counted else found
    done(LOCAL_PART)
    if _too_few(local):
        return ChannelNoise("constant", best, None, {"constant": 0.0}, smallest, local, best_error)
    evidence = _evidence(local, line, misfit)
    chosen = max(evidence, key=evidence.__getitem__) if noise == "auto" else noise
    if noise == "auto" and is_counted:
        chosen = "affine"
    elif chosen == "affine" and (
        line is None or (noise == "auto" and not line.is_worth_while(wide.means[wide.usable]))
    ):
        chosen = "constant"
    is_certain = noise != "auto" or is_counted or evidence[chosen] > CERTAIN
    if chosen == "constant" or not is_certain:  # texture adds to a map and to a line what it adds to one level
        factor = best.sigma / level.sigma
        local = local._replace(log_sigma=local.log_sigma + np.log(factor))
        line = line and Affine(*(factor**2 * value for value in line))
        level, typical = best, best_error
    sigma: float | FloatArray = smallest
    if chosen == "map":
        sigma = np.exp(to_pixels(local, local.log_sigma, image.shape))
    elif line is not None and chosen == "affine":
        first = np.exp(line.log_sigma(uniform_filter(whole, likelihood.size)))
        sigma = np.exp(line.log_sigma(denoise_once(priors[0], whole, first)))
    done(1.0)
    counts = None
    if chosen == "affine" and line is not None and MOST_READ * line.gain > level.sigma:
        counts = whole_counts(image, clipped[0], line) if is_counted else None
        counts = counts or split_line(line.gain, line.offset, whole)
    return ChannelNoise(chosen, level, line, evidence, sigma, local, typical, counts=counts)


def _local_and_line(
    likelihood: NoiseLikelihood, image: FloatArray, whole: FloatArray, clipped: Clipped, level: Estimate, misfit: float
) -> tuple[LocalLevels, Affine | None, Blocks]:
    """Levels here and there, and the line over brightness, of patches that are not clipped, with their blocks."""
    local = local_levels(likelihood, image, whole, clipped)
    stride = stride_for(likelihood, image.shape)
    usable = usable_patches(image, likelihood.size, stride, clipped, level.sigma)
    chosen = weak_directions(likelihood.directions, level.sigma)
    wide = block_densities(likelihood, whole, local.log_sigmas, chosen, usable, stride, photon_noise.BLOCK)
    return local, fit_affine(local.log_sigmas, wide, float(np.log(level.sigma)), local.repeated, misfit), wide


def _too_few(local: LocalLevels) -> bool:
    return bool(local.blocks.usable.sum() * local.blocks.side**2 < FEWEST_PATCHES)


def why_constant(channel: ChannelNoise) -> str:
    """Why one level is all that was found."""
    if channel.level.sigma == 0.0:
        return "there is no measurable noise"
    if channel.local is None or _too_few(channel.local):
        return "too little of the image can be used"
    return "the image has one brightness only"


def _repeated(local: LocalLevels, misfit: float) -> float:
    """By how much evidence is divided: how often pixels are counted, times the growth of the error by the misfit."""
    return local.repeated * (1.0 + (misfit / float(np.median(local.error[local.blocks.usable]))) ** 2)


def _evidence(local: LocalLevels, line: Affine | None, misfit: float) -> dict[str, float]:
    """The evidence of each model, less that of the constant one."""
    used, repeated = local.blocks.usable, _repeated(local, misfit)
    each = float(np.log(max(used.sum(), 2))) / 2.0
    best = find_peak(local.log_sigmas, local.values[:, used].sum(axis=1)).log_sigma
    constant = local.likelihood(np.full(used.sum(), float(best))) / repeated
    evidence = {"constant": 0.0}
    if line is not None:
        evidence["affine"] = local.likelihood(line.log_sigma(local.blocks.means[used])) / repeated - constant - each
    evidence["map"] = local.likelihood(local.log_sigma[used]) / repeated - constant - (local.parameters - 1.0) * each
    return evidence


def doubts(image: FloatArray, sigma: float, size: int, white: float = 1.0) -> list[str]:
    """What speaks against `sigma`, the estimate for a grey image (H, W) scaled to [0, 1] by patches of this size.

    It is said in the units of an image of this full scale (`white`), with what to do about it.
    """
    found = [_clipped(image, sigma, size), _quantised(image, sigma, white)]
    return [doubt for doubt in found if doubt]


def one_of_each(found: Sequence[str]) -> list[str]:
    """Of doubts that differ in a figure alone, as those of several channels do, the first."""
    kinds: dict[str, str] = {}
    for doubt in found:
        kinds.setdefault(NUMBER.sub("#", doubt), doubt)
    return list(kinds.values())


def _clipped(image: FloatArray, sigma: float, size: int) -> str:
    """Whether so much is black or white that what is left may tell too little; less than that does no harm."""
    ends = clipping(image)
    cut = sum(np.count_nonzero(image == end) for end in set(ends) if np.isfinite(end))
    part = cut / np.count_nonzero(np.isfinite(image))
    if part < MANY_CLIPPED or part == 1.0:
        return ""
    clear = usable_patches(image, size, 1, ends, CLEAR[1] / CLEAR[0] * sigma).mean()
    if clear > ENOUGH:
        return ""
    return f"{part:.0%} of the pixels are clipped, black or white; if noise is left, raise the strength"


def _quantised(image: FloatArray, sigma: float, white: float) -> str:
    values = np.unique(image[np.isfinite(image)])
    if not 1 < len(values) <= FEW_VALUES:
        return ""
    step = float(np.diff(values).min())
    if sigma >= COARSE * step:
        return ""
    apart = format_level(step * white)
    return f"grey levels are {apart} apart, which hides the noise; if bands or grain are left, raise the strength"
