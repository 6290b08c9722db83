"""The parts of noise estimation by themselves: levels of independent patches, and around every pixel."""

from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.border.entry import enter
from heatprior.border.pixels import in_unit_range
from heatprior.noise import levels
from heatprior.noise.levels import WINDOW, clipping, likelihood_of, local_levels, noise_level, to_pixels, without_gaps
from heatprior.zoo import as_prior


class LocalNoise(NamedTuple):
    sigma: FloatArray
    stderr: FloatArray


class Independent:
    """A likelihood of an image that is a row of independent patches: each is a block by itself."""

    block = 1

    def __init__(self, likelihood):
        self._likelihood = likelihood
        self.stride = likelihood.size

    def __getattr__(self, name):
        return getattr(self._likelihood, name)


def level_of_patches(patches, likelihood):
    """The noise level of independent patches (n, b²)."""
    size, parts_of = likelihood.size, levels.parts_of
    mosaic = patches.reshape(-1, size, size).swapaxes(0, 1).reshape(size, -1)
    with patch.object(levels, "parts_of", lambda blocks, _: parts_of(blocks, 1)):  # their scores are independent
        return noise_level(mosaic, Independent(likelihood))


def noise_map(image, prior="patch7", window=WINDOW):
    """Levels and their errors at every pixel of a grey image (H, W), in its units."""
    entered = enter(image)
    grey = in_unit_range(entered.pixels, entered.full)
    local = local_levels(likelihood_of(as_prior(prior)), grey, without_gaps(grey), clipping(grey), window)
    sigma = np.exp(to_pixels(local, local.log_sigma, grey.shape)) * entered.full
    return LocalNoise(sigma, to_pixels(local, local.error, grey.shape) * sigma)
