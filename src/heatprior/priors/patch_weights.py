"""How much a patch counts where patches overlap: pixels in its middle more than those at its edge, sure ones more.

A plain average counts all alike. A prior that was tuned for the denoised image may have learnt better on its card:
`"patch_weights": {"window": [[…], …], "confidences": [[…], …]}`, one factor for every pixel of a patch, (b, b), and one
for every component of a mixture, (K, G), by which patches count that it explains. Of a patch with several the mean, by
their probabilities, is taken. None of this has to do with the density, which stays what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.errors import PriorFileError

CARD_ENTRY = "patch_weights"


class PatchWeights(NamedTuple):
    """Factors above zero; only their ratios matter."""

    window: FloatArray  # of the pixels of a patch, (a,)
    confidences: FloatArray  # of the components of a mixture, (K, G)

    @property
    def parameters(self) -> int:
        """How many numbers were learnt, if any were."""
        return int(sum(factors.size for factors in self if (factors != factors.flat[0]).any()))


def patch_weights_on(card: Mapping[str, Any], pixels: int, components: tuple[int, ...]) -> PatchWeights:
    """What a prior's card says; all alike if it says nothing."""
    entry = card.get(CARD_ENTRY)
    if entry is None:
        return PatchWeights(np.ones(pixels), np.ones(components))
    try:
        window, confidences = (np.array(entry[key], np.float64) for key in ("window", "confidences"))
    except (KeyError, TypeError, ValueError) as error:
        raise PriorFileError(f'"{CARD_ENTRY}" of the prior\'s card needs a window and confidences: {error}') from error
    found = PatchWeights(window.reshape(-1), confidences)
    if window.ndim != 2 or found.window.size != pixels or confidences.shape != components:
        raise PriorFileError(
            f'"{CARD_ENTRY}" of the prior\'s card has a window {window.shape} and confidences {confidences.shape}; '
            f"expected {pixels} pixels and {components}"
        )
    if not all(np.isfinite(factors).all() and (factors > 0).all() for factors in found):
        raise PriorFileError(f'"{CARD_ENTRY}" of the prior\'s card must be numbers above 0')
    return found
