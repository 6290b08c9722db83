"""The pipeline at one scale, as the paper has it: what tests of single steps and schedules share."""

import numpy as np

from heatprior.priors.protocol import complete
from heatprior.restoration.pipeline import ONE_STEP, Pipeline


def half_quadratic_splitting(image, sigma, *, prior, schedule=None, scales=1):
    image = np.asarray(image)
    return Pipeline(complete(prior), image.shape, schedule, most_scales=scales).denoise(image, sigma)


def empirical_bayes(image, sigma, *, prior):
    image = np.asarray(image)
    return Pipeline(complete(prior), image.shape, ONE_STEP, most_scales=1, margin=0).denoise(image, sigma)
