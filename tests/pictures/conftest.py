"""Figures that are looked at instead of being written."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from heatprior.pictures import figures, priors


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that would have been saved."""
    found: list[Figure] = []
    for module in (priors, figures):
        monkeypatch.setattr(module, "save_figure", lambda figure, _: found.append(figure))
    return found
