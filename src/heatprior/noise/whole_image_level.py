"""How much noise is in an image, by a prior of whole images: the noise level at which the image fits it best.

The misfit is −log f where the density is normalised, so the level is a maximum-likelihood estimate; else the score of
Hyvärinen (2005), which needs no normaliser. Both are least at the true level, on average over images of the prior. The
standard error is the sandwich: the spread of the slope of the misfit over pieces of the image, over its curvature.
"""

from __future__ import annotations

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.noise.likelihood import OCTAVES, check_in_range, find_peak
from heatprior.priors.protocol import ImagePrior

PHOTOGRAPH_ERROR = (7.0 / 255, 0.022)  # as of a `NoiseLikelihood`; by `wavelet-density`, eight images, 255σ 5 to 50
LOG_SIGMA_STEP = np.log(2.0) / 8.0  # in the second look
STEPS_TO_EITHER_SIDE = 5
MOST_LOOKS = 4
SLOPE_STEP = 0.05  # of log sigma


def whole_image_level(image: FloatArray, prior: ImagePrior) -> tuple[float, float]:
    """The noise level of a grey image (H, W) scaled to [0, 1], without gaps, and its standard error; 0 for none."""
    unit = prior.unit
    if min(image.shape) < unit:
        raise InvalidInputError(
            f"the image is {image.shape[0]}×{image.shape[1]} pixels but this prior needs {unit}×{unit} to estimate the "
            "noise; give a larger image, or a prior on patches"
        )
    log_sigmas = np.log(OCTAVES)
    peak = find_peak(log_sigmas, _fits(image, prior, log_sigmas)[:, None])
    for _ in range(MOST_LOOKS):
        centre = float(np.clip(peak.log_sigma[0], np.log(OCTAVES[0]), np.log(OCTAVES[-1])))
        log_sigmas = centre + LOG_SIGMA_STEP * np.arange(-STEPS_TO_EITHER_SIDE, STEPS_TO_EITHER_SIDE + 1)
        peak = find_peak(log_sigmas, _fits(image, prior, log_sigmas)[:, None])
        if not (peak.at_bottom[0] or peak.at_top[0]):
            break
    log_sigma = float(peak.log_sigma[0])
    check_in_range(log_sigma)
    if log_sigma <= np.log(OCTAVES[0]):
        return 0.0, float(OCTAVES[0])
    rows, columns = (range(0, length - unit + 1, unit) for length in image.shape)
    pieces = [image[i : i + unit, j : j + unit] for i in rows for j in columns]
    ends = log_sigma + SLOPE_STEP * np.array([-1.0, 1.0])
    slopes = [float(np.diff(_fits(piece, prior, ends))[0]) / (2.0 * SLOPE_STEP) for piece in pieces]
    spread = np.std(slopes, ddof=1) * np.sqrt(len(slopes)) if len(slopes) > 1 else np.sqrt(peak.curvature[0])
    whole = image.size / (len(pieces) * unit**2)  # what the pieces leave out counts as well
    sigma = float(np.exp(log_sigma))
    return sigma, sigma * float(spread * np.sqrt(whole) / peak.curvature[0])


def _fits(image: FloatArray, prior: ImagePrior, log_sigmas: FloatArray) -> FloatArray:
    return np.array([-prior.misfit(image, float(np.exp(log_sigma))) for log_sigma in log_sigmas])
