"""The list of all items, in the order of the page."""

from __future__ import annotations

from heatprior.errors import InvalidInputError
from paper.claims.checkerboard import BLIND
from paper.claims.denoising_table import TABLE
from paper.claims.discrepancy import DISCREPANCY
from paper.claims.field_of_experts import FIELD
from paper.claims.heat_equation import HEAT
from paper.claims.item import Item
from paper.claims.noise_surface import NOISE
from paper.claims.paper_training import PAPER_TRAINING7, PAPER_TRAINING15
from paper.claims.potentials import FILTERS7, FILTERS15, SINGLE
from paper.claims.projection import PROJECTION
from paper.claims.samples import SAMPLES

ITEMS = (
    FILTERS7,
    SAMPLES,
    TABLE,
    FIELD,
    BLIND,
    NOISE,
    PROJECTION,
    HEAT,
    SINGLE,
    DISCREPANCY,
    FILTERS15,
    PAPER_TRAINING7,
    PAPER_TRAINING15,
)


def chosen(names: list[str]) -> list[Item]:
    """The items of these names, in the order of the page; all if there are none."""
    known = {item.name: item for item in ITEMS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InvalidInputError(f"nothing in the paper is called {unknown[0]!r} here; there are {', '.join(known)}")
    return [item for item in ITEMS if not names or item.name in names]
