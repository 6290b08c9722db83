"""Why many pixels have the lowest value: because values below it were cut off, or because no photons were counted.

Gaussian noise that was cut off at a floor is weaker near it, and so are counts near none: but beyond the floor's reach
the former stays the same, the latter goes on to grow. If a pixel has noise of sigma before it is cut off, its standard
deviation follows from its mean. So both are models of the noise of blocks by their brightness, and the likelihood
decides. Where it cannot, below two counts or so, the values are whole numbers of counts, and the gain is their step.
"""

from __future__ import annotations

from functools import cache
from math import erf

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.noise.affine import ENDS, Affine
from heatprior.noise.levels import clipping
from heatprior.noise.likelihood import values_at
from heatprior.noise.maps import LocalLevels
from heatprior.noise.stabilisation import PoissonGaussian

# Chosen on validation images with noise of 10, 25 and 50 cut off at 0, and with 1 to 100 counts; not on real ones.
MARGIN = 10.0  # of log-likelihood, by which counts must be likelier
MOST_AT_FLOOR = 0.2  # of the variance in bright parts: what counts may have at the floor
FEW_VALUES = 100  # distinct ones, among which steps are looked for
MOST_PIXELS = 2**18  # about, that are looked at for them
SAME_STEP = 0.15  # relative difference between gain and step, and offset over the square of the step
LEAST_PART = 1e-4  # of the variance before cutting off that is left, at least
OCTAVE_ABOVE = 0.7  # of log sigma: noise before it was cut off is stronger than what is left of it
LEVELS = 80


def holds_counts(image: FloatArray, floor: float, local: LocalLevels, line: Affine | None, repeated: float) -> bool:
    """Whether a lowest value that many pixels have is that of no counts; `local` and `line` were fitted to all patches.

    `repeated` is how often the likelihood counts the same.
    """
    if line is None or line.gain <= 0.0:
        return False
    used = local.blocks.usable
    brightness = local.blocks.means[used]
    bright = line.gain * float(np.quantile(brightness, ENDS[1])) + line.offset
    if line.gain * floor + line.offset > MOST_AT_FLOOR * bright:
        return False

    def likelihood(log_sigma: FloatArray) -> float:
        inside = np.clip(log_sigma, local.log_sigmas[0], local.log_sigmas[-1])
        return float(values_at(local.log_sigmas, local.values[:, used], inside).sum()) / repeated

    levels = np.linspace(local.log_sigmas[0], local.log_sigmas[-1] + OCTAVE_ABOVE, LEVELS)
    cut_off = max(likelihood(log_sigma_at_floor(brightness - floor, float(np.exp(level)))) for level in levels)
    return likelihood(line.log_sigma(brightness)) > cut_off + MARGIN or whole_counts(image, floor, line) is not None


def log_sigma_at_floor(height: FloatArray, sigma: float) -> FloatArray:
    """Of pixels with Gaussian noise of `sigma`, cut off at a floor, whose mean is so high above it."""
    means, variances = _cut_off_normals()
    return np.asarray(np.log(sigma) + 0.5 * np.log(np.interp(height / sigma, means, variances)))


@cache
def _cut_off_normals() -> tuple[FloatArray, FloatArray]:
    """Mean and variance of max(u + n, 0), n standard normal, for some u."""
    u = np.linspace(-6.0, 8.0, 1401)
    density = np.exp(-(u**2) / 2.0) / np.sqrt(2.0 * np.pi)
    above = np.array([0.5 * (1.0 + erf(value / np.sqrt(2.0))) for value in u])
    means = u * above + density
    variances = (u**2 + 1.0) * above + u * density - means**2
    return means, np.maximum(variances, LEAST_PART)


def whole_counts(image: FloatArray, floor: float, line: Affine | None) -> PoissonGaussian | None:
    """Counts without read noise, none of them at the floor, if the gain of the line is the step between values."""
    values = _few_values(image)
    if line is None or len(values) == 0:
        return None
    step = float(np.diff(values).min())
    at_floor = line.gain * floor + line.offset
    if abs(line.gain / step - 1.0) > SAME_STEP or abs(at_floor) > SAME_STEP * step**2:
        return None
    return PoissonGaussian(step, 0.0, floor)


def may_be_whole_counts(image: FloatArray) -> bool:
    """Whether an image has few values, the lowest of them so often that it may be that of no counts."""
    return bool(np.isfinite(clipping(image)[0])) and len(_few_values(image)) > 0


def _few_values(image: FloatArray) -> FloatArray:
    """The values of an image, ascending; none if there are many, or one."""
    some = image.reshape(-1)[:: max(1, image.size // MOST_PIXELS)]
    values = np.unique(some[np.isfinite(some)])
    return values if 1 < len(values) <= FEW_VALUES else values[:0]
