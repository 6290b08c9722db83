"""The one list of the kinds of priors: what a file calls a kind, its class, how it is trained and how it is drawn.

A new kind is its own files and one entry here. Classes and functions are named as "module:name" and imported when first
used, so that this list costs nothing and every part of the package may read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Kind:
    """A kind of prior, and where its parts are: "module:name"."""

    name: str
    prior: str  # its class, with `from_file`
    training: str | None  # the class of its settings, with `training(source)`; None if it is not learnt from patches
    picture: str  # a function of the prior, the path, and the most parts to draw (None: as many as fit well)

    def find(self, part: str) -> Any:
        """Import its `prior`, `training` (of the kinds in `trainable`) or `picture`."""
        if (place := getattr(self, part)) is None:
            raise LookupError(f"priors of kind {self.name} are not learnt from patches")
        module, _, attribute = place.partition(":")
        return getattr(import_module(module), attribute)


PICTURES = "heatprior.pictures.priors"
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "patch", prior="heatprior.priors.patch:PatchPrior",
            training="heatprior.learning.patch_training:TrainingConfig", picture=f"{PICTURES}:draw_filters",
        ),
        Kind(
            "mixture", prior="heatprior.priors.gaussian_mixture:GaussianMixturePrior",
            training="heatprior.learning.mixture_training:MixtureConfig", picture=f"{PICTURES}:draw_mixture",
        ),
        Kind(
            "convolutional", prior="heatprior.priors.convolutional:ConvolutionalPrior",
            training=None, picture=f"{PICTURES}:draw_bands",
        ),
        Kind(
            "wavelet", prior="heatprior.priors.wavelet:WaveletPrior",
            training=None, picture=f"{PICTURES}:draw_bands",
        ),
    )
}  # fmt: skip


def trainable() -> list[str]:
    """The names of the kinds that are learnt from patches."""
    return [kind.name for kind in KINDS.values() if kind.training]
