"""A picture to try the page with: one of scikit-image's own, with noise that is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np

SIGMA = 22.0  # of 255
SEED = 22


def write_sample(path: Path) -> None:
    """The astronaut, in colour and 8 bits, with white noise."""
    from PIL import Image  # noqa: PLC0415 (slow to import)
    from skimage import data  # noqa: PLC0415

    clean = np.asarray(cast(Any, data).astronaut())
    noisy = clean + SIGMA * np.random.default_rng(SEED).standard_normal(clean.shape)
    Image.fromarray(np.clip(np.rint(noisy), 0, 255).astype(np.uint8)).save(path)
