"""Training patches: uniform over all positions of all images, drawn when needed, never all in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import cut_patches


class PatchSource:
    """Grey images scaled to [0, 1], from which random patches are cut.

    The images stay as they came (8 bit, 16 bit or float): 400 images of 481×321 take 62 MB.
    """

    def __init__(self, images: Sequence[NDArray[Any]], size: int) -> None:
        usable = [image for image in images if min(image.shape) >= size]
        if not usable:
            raise InvalidInputError(f"none of {len(images)} images is as large as a patch of {size}×{size} pixels")
        self.size = size
        self.images = len(usable)
        self._scale = _full_scale(usable[0].dtype)
        self._buffer = np.concatenate([image.ravel() for image in usable])
        heights, widths = np.array([image.shape for image in usable], dtype=np.int64).T
        self._widths = widths
        self._begins = np.concatenate([[0], np.cumsum(heights * widths)[:-1]])
        self._columns = widths - size + 1
        self._ends = np.cumsum((heights - size + 1) * self._columns)  # positions up to and with each image

    @property
    def positions(self) -> int:
        """How many patches there are to draw from, symmetries not counted."""
        return int(self._ends[-1])

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Patches as columns, (size², count): position and one of eight symmetries uniform."""
        position = rng.integers(self.positions, size=count)
        image = np.searchsorted(self._ends, position, side="right")
        local = position - np.where(image > 0, self._ends[image - 1], 0)
        row, column = np.divmod(local, self._columns[image])
        widths = self._widths[image]
        corners = self._begins[image] + row * widths + column
        return cut_patches(self._buffer, corners, widths, rng.integers(8, size=count), self.size) * self._scale


def _full_scale(dtype: np.dtype[Any]) -> float:
    return 1.0 / np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1.0
