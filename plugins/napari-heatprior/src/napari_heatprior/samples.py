"""Pictures to try: scikit-image's own, with noise of a known level."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage import data

LayerData = tuple[NDArray[Any], dict[str, Any], str]


def noisy_photograph() -> list[LayerData]:
    """The astronaut in grey, σ = 25 of 255."""
    grey = data.astronaut()[..., 1]
    return [(_noisy(grey, 25.0, 0), {"name": "noisy photograph"}, "image")]


def noisy_stack() -> list[LayerData]:
    """Five planes of coins that fade, σ = 12 of 255, with spacings in µm."""
    coins = data.coins()
    planes = np.stack([_noisy(coins * (1.0 - 0.15 * plane), 12.0, plane) for plane in range(5)])
    attributes = {"name": "noisy stack", "scale": (2.0, 0.5, 0.5), "units": ("µm", "µm", "µm")}
    return [(planes, attributes | {"axis_labels": ("z", "y", "x")}, "image")]


def _noisy(clean: NDArray[Any], sigma: float, seed: int) -> NDArray[np.uint8]:
    noisy = clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape)
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
