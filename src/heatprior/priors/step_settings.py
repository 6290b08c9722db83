"""How a mixture's step takes patches and averages them, where a plain average of the best guesses can be bettered.

A mixture that was tuned for the denoised image may have learnt on its card, as `"step"`,

- `"window"`, (b, b): how much each pixel of a patch counts where patches overlap;
- `"confidences"`, (K, G): how much a patch does that this component explains; of several the mean, by probability;
- `"rival"`: how likely another shape must be, the best being 1, to take part in the posterior mean of a patch;
- `"candidates"`: how many shapes a patch on the grid hands on to its neighbours (kernels/candidates.py).

Without the entry all count alike, and the best shape stands alone. None of this has to do with the density.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import PriorFileError
from heatprior.kernels.candidates import CANDIDATES

CARD_ENTRY = "step"


class StepSettings(NamedTuple):
    """All above zero; of window and of confidences only ratios matter."""

    window: FloatArray  # (a,)
    confidences: FloatArray  # (K, G)
    rival: float = 1.0
    candidates: int = CANDIDATES

    @property
    def parameters(self) -> int:
        """How many numbers were learnt, if any were."""
        return int(sum(x.size for x in (self.window, self.confidences) if (x != x.flat[0]).any()))


def step_settings_on(card: Mapping[str, Any], pixels: int, components: tuple[int, ...]) -> StepSettings:
    """What a prior's card says, for patches of so many pixels and components (K, G)."""
    entry = card.get(CARD_ENTRY)
    if entry is None:
        return StepSettings(np.ones(pixels), np.ones(components))
    try:
        window, confidences = (np.array(entry[key], np.float64) for key in ("window", "confidences"))
        found = StepSettings(window.reshape(-1), confidences, float(entry["rival"]), int(entry["candidates"]))
    except (KeyError, TypeError, ValueError) as error:
        needed = ", ".join(StepSettings._fields)
        raise PriorFileError(f'"{CARD_ENTRY}" of the prior\'s card needs {needed}: {error}') from error
    if window.ndim != 2 or found.window.size != pixels or confidences.shape != components:
        raise PriorFileError(
            f'"{CARD_ENTRY}" of the prior\'s card has a window {window.shape} and confidences {confidences.shape}; '
            f"expected {pixels} pixels and {components}"
        )
    if not all(np.isfinite(x).all() and np.all(x > 0) for x in found) or found.rival > 1.0:
        raise PriorFileError(f'"{CARD_ENTRY}" of the prior\'s card must be numbers above 0, "rival" at most 1')
    return found
