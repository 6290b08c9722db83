"""A prior that a file holds: what every kind offers beyond its density."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, ClassVar, Protocol

from heatprior.priors.protocol import DiffusedPrior


class StoredPrior(DiffusedPrior, Protocol):
    """A prior with a name for its kind (see `heatprior.kinds`), a card that says how it was made, and a file."""

    kind: ClassVar[str]

    @property
    def card(self) -> Mapping[str, Any]:
        """Name, origin and settings, as far as they are known."""
        ...

    @property
    def parameters(self) -> int:
        """How many numbers were learnt."""
        ...

    def save(self, path: str | PathLike[str]) -> None:
        """Write the prior as one safetensors file."""
        ...
