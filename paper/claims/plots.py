"""How the plots of all items look: one grid, one font size, colours that are distinct for the colour-blind."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heatprior.pictures.figures import COLOURS

DPI = 130
BLACK, BLUE, GREEN, ORANGE, RED = COLOURS
GREY = "0.45"


def panels(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """A figure of this size in inches and its axes, row by row, with room for all labels."""
    figure = Figure(figsize=size, dpi=DPI, layout="constrained")
    axes = [axis for row in figure.subplots(rows, columns, squeeze=False) for axis in row]
    for axis in axes:
        axis.grid(visible=True, color="0.9", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=9, length=3, color="0.5")
        for frame in axis.spines.values():
            frame.set(linewidth=0.6, color="0.5")
    return figure, axes
