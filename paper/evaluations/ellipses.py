"""Images of random ellipses, as in phantoms of tomography, and a prior that is trained on them."""

from __future__ import annotations

import numpy as np

import heatprior as hp


def random_ellipses(side: int, rng: np.random.Generator) -> np.ndarray:
    """An image of a few overlapping ellipses, grey levels 0 to 1."""
    rows, columns = (2.0 * axis / (side - 1) - 1.0 for axis in np.indices((side, side)))
    image = np.zeros((side, side))
    for _ in range(10):
        centre, axes = rng.uniform(-0.5, 0.5, 2), rng.uniform(0.05, 0.6, 2)
        angle, grey = rng.uniform(0, np.pi), rng.uniform(-0.4, 0.6)
        along = (rows - centre[0]) * np.cos(angle) + (columns - centre[1]) * np.sin(angle)
        across = (columns - centre[1]) * np.cos(angle) - (rows - centre[0]) * np.sin(angle)
        image[(along / axes[0]) ** 2 + (across / axes[1]) ** 2 < 1] += grey
    return np.clip(image, 0, 1)


def own_prior(side: int) -> hp.DiffusedPrior:
    """A mixture trained on the user's own kind of image, as `heatprior train --kind mixture` does."""
    rng = np.random.default_rng(1)
    images = [random_ellipses(side, rng).astype(np.float32) for _ in range(40)]
    return hp.train(images, hp.MixtureConfig(shapes=20, contrasts=3, batch=5000, steps=60))
