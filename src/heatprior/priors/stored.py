"""A prior that a file holds: what every kind offers beyond its density."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, ClassVar, Protocol

from heatprior.priors.protocol import Prior


class StoredPrior(Prior, Protocol):
    """A prior with a name for its kind (see `heatprior.kinds`) and a file of its own."""

    kind: ClassVar[str]

    @property
    def parameters(self) -> int:
        """How many numbers were learnt."""
        ...

    def save(self, path: str | PathLike[str]) -> None:
        """Write the prior as one safetensors file."""
        ...


def with_card(facts: dict[str, object], card: Mapping[str, Any]) -> dict[str, object]:
    """The facts of a prior, and those of its card that they do not name already."""
    return facts | {key: value for key, value in card.items() if key not in facts}
