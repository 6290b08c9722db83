"""The list of all items, in the order of the page."""

from __future__ import annotations

from heatprior.errors import InvalidInputError
from heatprior.reproduction.checkerboard import BLIND
from heatprior.reproduction.denoising_table import TABLE
from heatprior.reproduction.discrepancy import DISCREPANCY
from heatprior.reproduction.heat_equation import HEAT
from heatprior.reproduction.item import Item
from heatprior.reproduction.noise_surface import NOISE
from heatprior.reproduction.paper_training import PAPER_TRAINING7, PAPER_TRAINING15
from heatprior.reproduction.potentials import FILTERS7, FILTERS15, SINGLE
from heatprior.reproduction.projection import PROJECTION
from heatprior.reproduction.samples import SAMPLES

ITEMS = (
    FILTERS7,
    SAMPLES,
    TABLE,
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
