"""Figures as files: images side by side, patches that a prior draws, the log of a training; and what all figures share.

Figures are made as objects, without pyplot, so that drawing leaves no state behind and needs no display.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.display import contrast, mosaic
from heatprior.errors import InvalidInputError
from heatprior.files import replacing
from heatprior.pictures import SUFFIXES

COLOURS = ("#000000", "#0072B2", "#009E73", "#E69F00", "#D55E00")  # Okabe–Ito: distinct for the colour-blind
DOTS_PER_INCH = 200
PSNR = "psnr"  # prefix of the columns of the validation
LONGEST_NAME = 20  # letters of a prior's name that fit into a title
DPI = 100
SMALLEST_PANEL, LARGEST_PANEL = 240, 640  # pixels: smaller images are enlarged, larger ones shrunk
GAP, TITLE = 12, 26  # pixels
DEVIATIONS_SHOWN = 3.0  # standard deviations of what was removed that its panel shows
MID_GREY = 0.5


def save_figure(figure: Figure, path: Path, *, dpi: int = DOTS_PER_INCH) -> None:
    """Write a figure, in the format that the name says, whole or not at all."""
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInputError(f"cannot draw {path}: pictures end in {', '.join(SUFFIXES)}; choose one of these")
    with replacing(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:].lower(), dpi=dpi)


def axes_at(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Place axes, in inches from the top left corner of the figure."""
    across, down = figure.get_size_inches()
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def name_on(card: Mapping[str, Any]) -> str:
    """The prior's name from its card, in letters that the font has, cut to fit into a title."""
    letters = str(card.get("name", "prior"))[:LONGEST_NAME]
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in letters)


@dataclass(frozen=True)
class Panel:
    """An image (H, W) or (H, W, 3), the values shown as black and white, and what stands above it."""

    title: str
    pixels: NDArray[Any]
    black: float
    white: float

    def levels(self) -> FloatArray:
        """Grey levels or colours from 0 to 1; missing pixels are mid-grey."""
        span = (self.white - self.black) or 1.0
        levels = (np.asarray(self.pixels, np.float32) - np.float32(self.black)) / np.float32(span)
        return np.asarray(np.nan_to_num(np.clip(levels, 0.0, 1.0), nan=MID_GREY))


def draw_denoising(
    noisy: NDArray[Any],
    denoised: NDArray[Any],
    path: Path,
    *,
    error: NDArray[Any] | None = None,
    likeness: NDArray[Any] | None = None,
) -> None:
    """Noisy, denoised and their difference, in the same units; beside them errors and p-values, if known."""
    black, white = contrast(denoised)
    removed = np.asarray(noisy, np.float32) - np.asarray(denoised, np.float32)
    spread = DEVIATIONS_SHOWN * float(np.nanstd(removed)) if np.isfinite(removed).any() else 0.0
    panels = [
        Panel("noisy", noisy, black, white),
        Panel("denoised", denoised, black, white),
        Panel(f"removed, ±{spread:.3g}", removed, -(spread or 1.0), spread or 1.0),
    ]
    if error is not None:
        most = contrast(error)[1] or 1.0
        panels.append(Panel(f"standard error, 0 to {most:.3g}", error, 0.0, most))
    if likeness is not None:
        panels.append(Panel("like photographs: p, 0 to 1", likeness, 0.0, 1.0))
    draw_side_by_side(panels, path)


def draw_side_by_side(panels: Sequence[Panel], path: Path) -> None:
    """Panels of one size in a row; if they are large, shrunk, and below them their middle as it is."""
    height, width = panels[0].pixels.shape[:2]
    if any(panel.pixels.shape[:2] != (height, width) for panel in panels):
        raise InvalidInputError("the images are of different sizes; give images of one size to compare")
    shrink = ceil(max(height, width) / LARGEST_PANEL)
    rows = [[replace(panel, pixels=_shrink(panel.pixels, shrink)) for panel in panels]]
    if shrink > 1:
        rows[0] = [replace(panel, title=f"{panel.title}, 1 : {shrink}") for panel in rows[0]]
        starts = (max(0, side - LARGEST_PANEL) // 2 for side in (height, width))
        middle = tuple(slice(start, start + LARGEST_PANEL) for start in starts)
        rows.append([replace(panel, title="1 : 1", pixels=panel.pixels[middle]) for panel in panels])
    sizes = [_size(row[0].pixels) for row in rows]
    across = len(panels) * (max(size[1] for size in sizes) + GAP) + GAP
    down = sum(size[0] + TITLE for size in sizes) + GAP
    figure = Figure(figsize=(across / DPI, down / DPI), dpi=DPI)
    top = 0
    for row, (panel_height, panel_width) in zip(rows, sizes, strict=True):
        for column, panel in enumerate(row):
            left = GAP + column * (across - GAP) // len(panels)
            place = (left / across, 1 - (top + TITLE + panel_height) / down, panel_width / across, panel_height / down)
            axes = figure.add_axes(place)
            axes.imshow(panel.levels(), cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest", aspect="auto")
            axes.set_axis_off()
            axes.set_title(panel.title, fontsize=9, pad=4, parse_math=False)
        top += panel_height + TITLE
    save_figure(figure, path, dpi=DPI)


def _size(pixels: NDArray[Any]) -> tuple[int, int]:
    """Height and width of a panel: small images are enlarged by a whole number."""
    height, width = pixels.shape[:2]
    factor = max(1, min(ceil(SMALLEST_PANEL / width), LARGEST_PANEL // max(height, width)))
    return height * factor, max(width * factor, SMALLEST_PANEL // 2)


def _shrink(pixels: NDArray[Any], factor: int) -> NDArray[Any]:
    """Means over factor×factor pixels; what is left at the right and lower edge is cut off."""
    if factor == 1:
        return pixels
    height, width = (side // factor or 1 for side in pixels.shape[:2])
    # Row by row of the small image, so that a large one is not copied as a whole.
    wanted = pixels[: height * factor, : width * factor]
    across = min(factor, pixels.shape[1])
    bands = (wanted[row * factor : (row + 1) * factor].mean(axis=0, dtype=np.float64) for row in range(height))
    return np.stack([band.reshape(width, across, *pixels.shape[2:]).mean(axis=1) for band in bands])


# Patches or images drawn from a prior, a panel for each noise level, as in section 4 of the paper.

PANELS_PER_ROW = 5
PANEL, PANEL_GAP, PANEL_TITLE, PANEL_NOTE = 2.2, 0.14, 0.3, 0.26  # inches
GREY_QUANTILE = 0.995  # of the grey levels of a panel that its contrast shows; the rest is clipped


def draw_patches(patches: FloatArray, sigmas: Sequence[float], path: Path) -> None:
    """A panel for each noise level of patches (levels, count, b, b), with its own contrast, mid-grey being zero."""
    if len(patches) != len(sigmas):
        raise InvalidInputError(
            f"{len(patches)} levels of patches but {len(sigmas)} values of sigma; give one for each"
        )
    titles = [f"σ = {sigma:g}" for sigma in sigmas]
    save_figure(plot_patches(patches, titles, [symmetric_contrast(level) for level in patches]), path)


def symmetric_contrast(patches: FloatArray) -> float:
    """The grey level shown as white, −1 times as black: nearly all that occurs lies between."""
    return float(np.quantile(np.abs(patches), GREY_QUANTILE)) or 1.0


def plot_patches(patches: FloatArray, titles: Sequence[str], contrasts: Sequence[float]) -> Figure:
    """Panels of patches or images (panels, count, H, W), with a title above and the grey level of white below."""
    columns = min(len(titles), PANELS_PER_ROW)
    rows = ceil(len(titles) / columns)
    across = ceil(sqrt(patches.shape[1]))
    panel_height = PANEL * ceil(patches.shape[1] / across) / across * patches.shape[-2] / patches.shape[-1]
    step_across, step_down = PANEL + PANEL_GAP, PANEL_TITLE + panel_height + PANEL_NOTE
    figure = Figure(figsize=(columns * step_across + PANEL_GAP, rows * step_down))
    for number, (title, white, drawn) in enumerate(zip(titles, contrasts, patches, strict=True)):
        row, column = divmod(number, columns)
        axes = axes_at(figure, PANEL_GAP + column * step_across, PANEL_TITLE + row * step_down, PANEL, panel_height)
        sheet = mosaic(np.asarray(drawn, np.float64), across, filling=np.nan)  # which stays empty
        axes.imshow(sheet, cmap="gray", vmin=-white, vmax=white, interpolation="nearest")
        axes.set_axis_off()
        axes.set_title(title, fontsize=11, pad=5)
        note = f"black −{white:.2g}, white {white:.2g}"
        axes.annotate(note, (0.5, 0), (0, -4), "axes fraction", "offset points", ha="center", va="top", fontsize=7.5)
    return figure


def draw_log(rows: Sequence[Mapping[str, float]], path: Path) -> None:
    """The loss over the steps of a log, that on held-out patches, and the PSNR of each noise level, where known."""
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
