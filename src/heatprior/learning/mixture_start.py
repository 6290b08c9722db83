"""Initial covariances of a mixture: patches clustered by direction, like k-means on lines through the origin.

Patches of one shape are multiples of each other, up to noise, so their directions are clustered: a centre is a line
through the origin, and a patch belongs to the line with which it makes the smallest angle.
"""

from __future__ import annotations

import numpy as np

from heatprior.arrays import FloatArray, IntArray

FLAT_FRACTION = 0.2  # of the patches, those of least contrast, have no usable direction
CLUSTERING_ROUNDS = 5
SHRINKAGE = 0.3  # of every covariance towards the one of all patches, so that none starts out narrow
LEAST_VARIANCE = 1e-6  # added to every variance, over grey levels squared


def first_covariances(u: FloatArray, shapes: int, sigma: float, *, alike: bool, rng: np.random.Generator) -> FloatArray:
    """Covariances (K, d, d) for patches u (n, d) without brightness, with noise of standard deviation `sigma`.

    `alike` makes every patch count with the same contrast: for mixtures whose contrasts are apart from their shapes.
    """
    variances, axes = np.linalg.eigh(u.T @ u / len(u))
    signal = np.maximum(variances - sigma**2, 0.0) + LEAST_VARIANCE
    overall = (axes * signal) @ axes.T
    x = u @ ((axes * (signal / (signal + sigma**2))) @ axes.T)  # freed from noise by the one Gaussian of all patches
    norms = np.linalg.norm(x, axis=1)
    textured = norms > np.quantile(norms, FLAT_FRACTION)
    if not textured.any():
        return np.repeat(overall[None], shapes, axis=0)
    x, norms = x[textured], norms[textured, None]
    labels = nearest_lines(x / norms, shapes, rng=rng)
    members = x * (np.sqrt(np.trace(overall)) / norms) if alike else x
    covariances = np.empty((shapes, *overall.shape))
    for k in range(shapes):
        of_shape = members[labels == k]
        own = of_shape.T @ of_shape / len(of_shape) if len(of_shape) else overall
        covariances[k] = (1.0 - SHRINKAGE) * own + SHRINKAGE * overall
    return covariances


def nearest_lines(z: FloatArray, count: int, *, rng: np.random.Generator) -> IntArray:
    """Which of `count` lines each unit vector of z (n, d) is nearest to, after some rounds of looking for the lines."""
    lines = z[rng.integers(len(z), size=count)]
    labels: IntArray = np.abs(z @ lines.T).argmax(axis=1)
    for _ in range(CLUSTERING_ROUNDS):
        for k in range(count):
            members = z[labels == k]
            few = len(members) <= z.shape[1]  # then it is restarted from a random vector
            lines[k] = z[rng.integers(len(z))] if few else np.linalg.eigh(members.T @ members)[1][:, -1]
        labels = np.abs(z @ lines.T).argmax(axis=1)
    return labels
