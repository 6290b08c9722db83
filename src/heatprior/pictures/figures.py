"""What all figures share (colours, formats, axes placed in inches, whole files), and the log of a training.

Figures are made as objects, without pyplot, so that drawing leaves no state behind and needs no display.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heatprior.errors import InvalidInputError
from heatprior.files import replacing
from heatprior.pictures import SUFFIXES

COLOURS = ("#000000", "#0072B2", "#009E73", "#E69F00", "#D55E00")  # Okabe–Ito: distinct for the colour-blind
DOTS_PER_INCH = 200
PSNR = "psnr"  # prefix of the columns of the validation
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
    """The prior's name from its card, in letters that the font has, cut to fit into a title."""
    letters = str(card.get("name", "prior"))[:LONGEST_NAME]
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in letters)


def draw_log(rows: Sequence[Mapping[str, float]], path: Path) -> None:
    """The loss over the steps and, where there is any, the PSNR of each noise level below it.

    The rows of a log have `step` and `loss`, and may have `psnr15`, `psnr25`, … and `log_likelihood`, the negative loss
    on held-out patches. Values of NaN are left out; points of the same level are joined.
    """
    steps, losses = ([row[name] for row in rows] for name in ("step", "loss"))
    held_out = [-row.get("log_likelihood", np.nan) for row in rows]
    levels = [name for name in rows[0] if name.startswith(PSNR)]
    psnr = {name.removeprefix(PSNR): [row[name] for row in rows] for name in levels}
    validated = {name: np.isfinite(values) for name, values in psnr.items() if np.isfinite(values).any()}
    figure = Figure(figsize=(7.0, 5.6 if validated else 3.2), layout="constrained")
    panels = figure.subplots(2 if validated else 1, sharex=True, squeeze=False)[:, 0]
    panels[0].plot(steps, losses, color=COLOURS[1], linewidth=1.0)
    panels[0].set(ylabel="loss", title="loss, mean over each interval")
    known = np.isfinite(held_out)
    if known.any():
        others = np.asarray(steps)[known], np.asarray(held_out)[known]
        panels[0].plot(*others, color=COLOURS[4], marker=".", linewidth=1.0, label="held out")
        panels[0].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    for (name, valid), colour in zip(validated.items(), COLOURS[1:], strict=False):
        panels[-1].plot(
            np.asarray(steps)[valid], np.asarray(psnr[name])[valid], color=colour, marker=".", linewidth=1.0, label=name
        )
    if validated:
        panels[-1].set(ylabel="PSNR in dB", title="validation: one step of empirical Bayes")
        panels[-1].legend(title="255σ", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    panels[-1].set_xlabel("step")
    for panel in panels:
        panel.grid(visible=True, color="0.9", linewidth=0.5)
    save_figure(figure, path)
