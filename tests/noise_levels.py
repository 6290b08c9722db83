"""The parts of noise estimation by themselves: levels of independent patches, and around every pixel."""

from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.border.entry import enter
from heatprior.border.pixels import in_unit_range
from heatprior.noise.levels import clipping, likelihood_of, search, without_gaps
from heatprior.noise.likelihood import block_densities
from heatprior.noise.maps import WINDOW, local_levels, to_pixels
from heatprior.zoo import as_prior


class LocalNoise(NamedTuple):
    sigma: FloatArray
    stderr: FloatArray


def level_of_patches(patches, likelihood):
    """The noise level of independent patches (n, b²)."""
    size = likelihood.size
    mosaic = patches.reshape(-1, size, size).swapaxes(0, 1).reshape(size, -1)
    usable = np.ones((1, len(patches)), bool)

    def densities(log_sigmas, chosen):
        return block_densities(likelihood, mosaic, log_sigmas, chosen, usable, size, 1)

    return search(likelihood, densities, size, 1)


def noise_map(image, prior="patch7", window=WINDOW):
    """Levels and their errors at every pixel of a grey image (H, W), in its units."""
    entered = enter(image)
    grey = in_unit_range(entered.pixels, entered.full)
    local = local_levels(likelihood_of(as_prior(prior)), grey, without_gaps(grey), clipping(grey), window)
    sigma = np.exp(to_pixels(local, local.log_sigma, grey.shape)) * entered.full
    return LocalNoise(sigma, to_pixels(local, local.error, grey.shape) * sigma)
