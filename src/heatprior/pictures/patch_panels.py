"""Patches or images side by side, a panel for each noise level: what a prior draws, as in section 4 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.pictures.figures import axes_at, save_figure

PANELS_PER_ROW = 5
PANEL, PANEL_GAP, PANEL_TITLE, PANEL_NOTE = 2.2, 0.14, 0.3, 0.26  # inches
GREY_QUANTILE = 0.995  # of the grey levels of a panel that its contrast shows; the rest is clipped


def draw_patches(patches: FloatArray, sigmas: Sequence[float], path: Path) -> None:
    """One panel for each noise level: patches (levels, count, b, b), side by side, mid-grey standing for zero.

    Each panel has its own contrast, written below it, since noise would drown the others.
    """
    if len(patches) != len(sigmas):
        raise InvalidInputError(
            f"{len(patches)} levels of patches but {len(sigmas)} values of sigma; give one for each"
        )
    titles = [f"σ = {sigma:g}" for sigma in sigmas]
    save_figure(patches_figure(patches, titles, [contrast_of(level) for level in patches]), path)


def contrast_of(patches: FloatArray) -> float:
    """The grey level shown as white, −1 times as black: nearly all that occurs lies between."""
    return float(np.quantile(np.abs(patches), GREY_QUANTILE)) or 1.0


def patches_figure(patches: FloatArray, titles: Sequence[str], contrasts: Sequence[float]) -> Figure:
    """Panels of patches or images (panels, count, H, W), with a title above and the grey level of white below."""
    columns = min(len(titles), PANELS_PER_ROW)
    rows = ceil(len(titles) / columns)
    across = ceil(sqrt(patches.shape[1]))
    panel_height = PANEL * ceil(patches.shape[1] / across) / across * patches.shape[-2] / patches.shape[-1]
    step_across, step_down = PANEL + PANEL_GAP, PANEL_TITLE + panel_height + PANEL_NOTE
    figure = Figure(figsize=(columns * step_across + PANEL_GAP, rows * step_down))
    for number, (title, contrast, drawn) in enumerate(zip(titles, contrasts, patches, strict=True)):
        row, column = divmod(number, columns)
        axes = axes_at(figure, PANEL_GAP + column * step_across, PANEL_TITLE + row * step_down, PANEL, panel_height)
        axes.imshow(_mosaic(drawn, across), cmap="gray", vmin=-contrast, vmax=contrast, interpolation="nearest")
        axes.set_axis_off()
        axes.set_title(title, fontsize=11, pad=5)
        note = f"black −{contrast:.2g}, white {contrast:.2g}"
        axes.annotate(note, (0.5, 0), (0, -4), "axes fraction", "offset points", ha="center", va="top", fontsize=7.5)
    return figure


def _mosaic(patches: FloatArray, across: int) -> FloatArray:
    """Patches (count, H, W) in rows of `across`, one pixel apart; the gaps are NaN and stay empty."""
    count, height, width = patches.shape
    down = ceil(count / across)
    padded = np.full((down * across, height + 1, width + 1), np.nan)
    padded[:count, :height, :width] = patches
    sheet = padded.reshape(down, across, height + 1, width + 1).swapaxes(1, 2)
    return sheet.reshape(down * (height + 1), across * (width + 1))[:-1, :-1]
