"""Noise is everywhere, texture is not: whether the flattest patches of an image hold as much as noise would leave them.

The energy of a patch of nothing but noise is χ² with as many degrees of freedom as directions are looked at, and what
the image adds only raises it. So if there is noise, the lowest energies lie as close together as those of χ² do, even
if few patches are flat. Texture that passes for noise is weaker in some patches and absent in others: they scatter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from heatprior.arrays import FloatArray, IntArray
from heatprior.noise.blocks import CLEAR, Clipped
from heatprior.priors.filters import FilterBank

SIZE = 8  # pixels along the side of a patch
MOST_PATCHES = 70_000
FEWEST_PATCHES = 1000  # with fewer, the lowest energies tell nothing
FLATTEST = (0.001, 0.03)  # quantiles of the energies that are compared
DEVIATES = (-3.0902, -1.8808)  # of a normal variable, the same quantiles
FINEST = 9  # half periods in a patch, down and across together, at least: what tells white noise from image
# By how much sigma of the flattest patches may differ. White noise of 5 grey levels or more in 12 validation images,
# saved as JPEG too: up to 1.35; clean ones whose texture passes for white noise: 2.2 to 5.3 (one, all grass: 1.13).
MOST_SCATTER_OF_WHITE = 1.45


class FlatPatches(NamedTuple):
    """Patches (n, b²) from anywhere in an image, and the rows and columns of their middles."""

    pixels: FloatArray
    rows: IntArray
    columns: IntArray


def patches_on_grid(image: FloatArray, usable: NDArray[np.bool_]) -> FlatPatches:
    """Patches of a grey image (H, W) two pixels apart or more; those that are one grey value are drawn, not taken."""
    stride = max(2, int(np.ceil(np.sqrt(image.size / MOST_PATCHES))))
    windows = sliding_window_view(image, (SIZE, SIZE))[::stride, ::stride]
    whole = sliding_window_view(usable, (SIZE, SIZE))[::stride, ::stride].all(axis=(2, 3))
    rows, columns = np.nonzero(whole)
    patches = windows[rows, columns].reshape(-1, SIZE**2)
    varied = np.ptp(patches, axis=1) > 0 if len(patches) else np.zeros(0, bool)
    middles = (stride * places[varied] + SIZE // 2 for places in (rows, columns))
    return FlatPatches(patches[varied], *middles)


def levels_of_flattest(energies: FloatArray, directions: int) -> FloatArray:
    """Two noise levels, as the lowest mean squares (n,) over so many directions have them if they are noise alone."""
    part = 2.0 / (9.0 * directions)
    of_noise = (1.0 - part + np.array(DEVIATES) * np.sqrt(part)) ** 3  # quantiles of χ² by Wilson and Hilferty
    return np.asarray(np.sqrt(np.quantile(energies, FLATTEST) / of_noise))


def scatter(levels: FloatArray) -> float:
    """The higher level over the lower one: one for noise."""
    return float(levels[1] / levels[0]) if levels[0] > 0 else np.inf


def flattest_of_white(image: FloatArray, sigma: float | FloatArray, clipped: Clipped) -> FloatArray | None:
    """The two levels, over `sigma`, in the finest cosines of an image (H, W); None if too few patches tell.

    Near values at which pixels are cut off noise is weaker, so patches there do not count.
    """
    usable = np.isfinite(image) & (image != clipped[0]) & (image != clipped[1])
    found = patches_on_grid(image, usable)
    level = np.broadcast_to(np.asarray(sigma, np.float32), image.shape)[found.rows, found.columns]
    means, room = found.pixels.mean(axis=1), CLEAR[0] * level
    clear = (means > clipped[0] + room) & (means < clipped[1] - room)
    if np.count_nonzero(clear) < FEWEST_PATCHES:
        return None
    down, across = np.divmod(np.arange(1, SIZE**2), SIZE)
    finest = FilterBank.dct(SIZE).matrix[down + across >= FINEST].astype(np.float32)
    energies = np.square(found.pixels[clear] @ finest.T).mean(axis=1) / level[clear] ** 2
    return levels_of_flattest(energies, len(finest))
