"""How the plots of all items look: one grid, one font size, colours that are distinct for the colour-blind."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from heatprior.files import replacing
from heatprior.pictures.figures import COLOURS, DOTS_PER_INCH

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


def save_diagram(figure: Figure, path: Path, *, dpi: int = DOTS_PER_INCH) -> None:
    """Write a figure as a PNG of 256 colours at most, which makes it a quarter of the size."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    image = Image.open(drawn).convert("RGB")  # figures are opaque
    pixels = np.asarray(image)
    is_grey = (pixels == pixels[..., :1]).all()
    small = image.convert("L") if is_grey else image.quantize(256, dither=Image.Dither.NONE)
    with replacing(path) as temporary:
        small.save(temporary, "PNG", dpi=(dpi, dpi), optimize=True)
