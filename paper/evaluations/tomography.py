"""Parallel-beam tomography as a sparse matrix: projections of an image, whose transpose is the exact adjoint.

scikit-image's `radon` turns the image and adds up columns, and `iradon` is not its transpose. Here the weight of a
pixel in a ray is linear between the two detector bins nearest to its centre.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array


def projection_matrix(side: int, angles: np.ndarray) -> csr_array:
    """(views · bins, side²): for each angle in degrees, `bins` sums along parallel lines one pixel apart."""
    bins = int(np.ceil(np.sqrt(2.0) * side)) + 1
    rows, columns = (axis.reshape(-1) - (side - 1) / 2.0 for axis in np.indices((side, side)))
    pixels = np.arange(side**2)
    rays, places, weights = [], [], []
    for view, angle in enumerate(np.deg2rad(angles)):
        position = columns * np.cos(angle) + rows * np.sin(angle) + (bins - 1) / 2.0
        left = np.floor(position).astype(np.int64)
        part = position - left
        for bin_, share in ((left, 1.0 - part), (left + 1, part)):
            rays.append(view * bins + bin_)
            places.append(pixels)
            weights.append(share)
    shape = (len(angles) * bins, side**2)
    return csr_array((np.concatenate(weights), (np.concatenate(rays), np.concatenate(places))), shape=shape)
