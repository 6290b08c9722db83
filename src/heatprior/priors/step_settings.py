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
MOST_CANDIDATES = 1000
LEAST_RATIO = 1e-4  # of two factors: single precision must hold their products, and sums of them


class StepSettings(NamedTuple):
    """Of window and of confidences only ratios matter, so the largest of each is one."""

    window: FloatArray  # (a,)
    confidences: FloatArray  # (K, G)
    rival: float = 1.0
    candidates: int = CANDIDATES

    @property
    def parameters(self) -> int:
        """How many numbers were learnt, if any were."""
        return int(sum(x.size for x in (self.window, self.confidences) if (x != x.flat[0]).any()))


def step_settings_on(card: Mapping[str, Any], size: int, components: tuple[int, ...]) -> StepSettings:
    """What a prior's card says, for patches of size×size pixels and components (K, G)."""
    entry = card.get(CARD_ENTRY)
    if entry is None:
        return StepSettings(np.ones(size**2), np.ones(components))
    where = f'"{CARD_ENTRY}" of the prior\'s card'
    try:
        window, confidences = (np.array(entry[key], np.float64) for key in ("window", "confidences"))
        rival, candidates = float(entry["rival"]), entry["candidates"]
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise PriorFileError(f"{where} needs {', '.join(StepSettings._fields)}: {error}") from error
    if window.shape != (size, size) or confidences.shape != components:
        raise PriorFileError(
            f"{where} has a window {window.shape} and confidences {confidences.shape}; "
            f"expected {(size, size)} and {components}"
        )
    for factors in (window, confidences):
        if not (np.isfinite(factors).all() and factors.min() > LEAST_RATIO * factors.max()):
            raise PriorFileError(f"{where}: factors must be above 0, and none beyond {LEAST_RATIO:g} of another")
    if not 0.0 < rival <= 1.0 or type(candidates) is not int or not 1 <= candidates <= MOST_CANDIDATES:
        raise PriorFileError(
            f"{where}: rival must be above 0 and at most 1, candidates a whole number of 1 to {MOST_CANDIDATES}"
        )
    return StepSettings((window / window.max()).reshape(-1), confidences / confidences.max(), rival, candidates)
