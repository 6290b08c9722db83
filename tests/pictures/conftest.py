"""Figures that are looked at instead of being written."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from heatprior.pictures import patch_panels, patch_priors, training_logs


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that would have been saved."""
    figures: list[Figure] = []
    for module in (patch_priors, patch_panels, training_logs):
        monkeypatch.setattr(module, "save_figure", lambda figure, _: figures.append(figure))
    return figures
