"""What every picture shares: colours, file formats, axes placed in inches, and files written whole or not at all.

Figures are made as objects, without pyplot, so that drawing leaves no state behind and needs no display.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heatprior.errors import InvalidInputError
from heatprior.files import replacing

SUFFIXES = (".png", ".pdf", ".svg")
COLOURS = ("#000000", "#0072B2", "#009E73", "#E69F00", "#D55E00")  # Okabe–Ito: distinct for the colour-blind
DOTS_PER_INCH = 200
LONGEST_NAME = 20  # letters of a prior's name that fit into a title


def save_figure(figure: Figure, path: Path, *, dpi: int = DOTS_PER_INCH) -> None:
    """Write a figure, in the format that the name says, whole or not at all."""
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInputError(f"cannot draw {path}: pictures end in {', '.join(SUFFIXES)}; choose one of these")
    with replacing(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:].lower(), dpi=dpi)


def axes_at(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes placed in inches from the top left corner of the figure."""
    across, down = figure.get_size_inches()
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def name_on(card: Mapping[str, Any]) -> str:
    """The name on the card of a prior, in the letters that the font has and no more of them than fit into a title."""
    letters = str(card.get("name", "prior"))[:LONGEST_NAME]
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in letters)
