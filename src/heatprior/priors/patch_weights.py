"""How much a patch counts where patches overlap: pixels in its middle more than those at its edge, sure ones more.

A plain average counts all alike. A mixture that was tuned for the denoised image may have learnt better on its card:
`"patch_weights": {"window": [[…], …], "confidences": [[…], …], "rival": …}`, one factor for every pixel of a patch, (b,
b), and one for every component of the mixture, (K, G), by which patches count that it explains. Shapes take part in
that, and in the posterior mean of a patch, from how likely they are as a `rival` on, the best being 1; without the
entry it is the best alone. None of this has to do with the density, which stays what it is.
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
    rival: float = 1.0  # how likely another shape must be to take part, the best being 1

    @property
    def parameters(self) -> int:
        """How many numbers were learnt, if any were."""
        return int(sum(x.size for x in (self.window, self.confidences) if (x != x.flat[0]).any()))


def patch_weights_on(card: Mapping[str, Any], pixels: int, components: tuple[int, ...]) -> PatchWeights:
    """What a prior's card says; all alike if it says nothing."""
    entry = card.get(CARD_ENTRY)
    if entry is None:
        return PatchWeights(np.ones(pixels), np.ones(components))
    try:
        window, confidences = (np.array(entry[key], np.float64) for key in ("window", "confidences"))
        found = PatchWeights(window.reshape(-1), confidences, float(entry["rival"]))
    except (KeyError, TypeError, ValueError) as error:
        raise PriorFileError(
            f'"{CARD_ENTRY}" of the prior\'s card needs a window, confidences and a rival: {error}'
        ) from error
    if window.ndim != 2 or found.window.size != pixels or confidences.shape != components:
        raise PriorFileError(
            f'"{CARD_ENTRY}" of the prior\'s card has a window {window.shape} and confidences {confidences.shape}; '
            f"expected {pixels} pixels and {components}"
        )
    if not all(np.isfinite(x).all() and np.all(x > 0) for x in found) or found.rival > 1.0:
        raise PriorFileError(f'"{CARD_ENTRY}" of the prior\'s card must be numbers above 0, "rival" at most 1')
    return found
