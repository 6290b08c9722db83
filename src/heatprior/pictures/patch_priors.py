"""Pictures of a prior and of what it draws, as in section 4 of the paper; written whole or not at all.

Figures are made as objects, without pyplot, so that drawing leaves no state behind and needs no display.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, sqrt
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.files import replacing
from heatprior.priors.patch import PatchPrior

SUFFIXES = (".png", ".pdf", ".svg")
PAPER_SIGMAS = (0.0, 0.025, 0.05, 0.1, 0.2)
PAPER_FILTERS = 112  # how many of the 224 filters of 15×15 pixels the paper shows
COLOURS = ("#000000", "#0072B2", "#009E73", "#E69F00", "#D55E00")  # Okabe–Ito: distinct for the colour-blind
DOTS_PER_INCH = 200

PANELS_PER_ROW = 5
PANEL, PANEL_GAP, PANEL_TITLE, PANEL_NOTE = 2.2, 0.14, 0.3, 0.26  # inches
GREY_QUANTILE = 0.995  # of the grey levels of a panel that its contrast shows; the rest is clipped

FILTER, PLOT_WIDTH, PLOT_HEIGHT, PLOT_GAP = 0.72, 0.92, 0.78, 0.08  # inches
BETWEEN_PLOTS = 0.14  # leaves room for the labels of both
CELL_WIDTH, CELL_HEIGHT = 1.04, 1.9
LEFT, RIGHT, TOP, BOTTOM = 0.58, 0.1, 0.58, 0.44
LONGEST_NAME = 20  # letters of the prior's name that fit into the title
HIGHEST = 15.0  # potentials are shown up to this much above the lowest: a density e^−15 of the highest


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
        axes = _axes(figure, PANEL_GAP + column * step_across, PANEL_TITLE + row * step_down, PANEL, panel_height)
        axes.imshow(_mosaic(drawn, across), cmap="gray", vmin=-contrast, vmax=contrast, interpolation="nearest")
        axes.set_axis_off()
        axes.set_title(title, fontsize=11, pad=5)
        note = f"black −{contrast:.2g}, white {contrast:.2g}"
        axes.annotate(note, (0.5, 0), (0, -4), "axes fraction", "offset points", ha="center", va="top", fontsize=7.5)
    return figure


def draw_prior(prior: PatchPrior, path: Path, *, filters: int = PAPER_FILTERS) -> None:
    """The filters by rising norm, each above its potentials −log psi_j at the noise levels of the paper.

    Above each filter stand the values of its black and its white. Of more than `filters`, that many are shown, evenly
    spaced in the order of the norms.
    """
    save_figure(prior_figure(prior, by_norm(prior, filters)), path)


def by_norm(prior: PatchPrior, most: int = PAPER_FILTERS) -> list[int]:
    """The numbers of the filters by rising norm; of more than `most`, that many, evenly spaced."""
    return _spread(np.argsort(prior.filters.norms, kind="stable"), most)


def prior_figure(prior: PatchPrior, shown: Sequence[int], below: Sequence[FloatArray] | None = None) -> Figure:
    """The filters of these numbers, each above its potentials, and below those, if given, the curves of images.

    `below` has for each noise level of the paper an array (filters shown, points): −log of the marginals at equally
    spaced responses over the range of the experts, NaN where they are not known.
    """
    reach, size = prior.experts.reach, prior.filters.size
    responses = np.linspace(-reach, reach, 401)
    grid = np.repeat(responses[:, None], prior.filters.count, axis=1)
    potentials = [-prior.experts.log_density(grid, sigma * prior.filters.norms)[:, shown] for sigma in PAPER_SIGMAS]
    lowest, highest = min(p.min() for p in potentials), max(p.max() for p in potentials)
    limits = (lowest - 0.5, min(highest, lowest + HIGHEST) + 0.5)

    columns = _columns(len(shown))
    rows = ceil(len(shown) / columns)
    cell_height = CELL_HEIGHT + (PLOT_HEIGHT + BETWEEN_PLOTS if below is not None else 0.0)
    figure = Figure(figsize=(max(LEFT + columns * CELL_WIDTH + RIGHT, 5.2), TOP + rows * cell_height + BOTTOM))
    for place, j in enumerate(shown):
        row, column = divmod(place, columns)
        left, top = LEFT + column * CELL_WIDTH, TOP + row * cell_height
        kernel = prior.filters.matrix[j].reshape(size, size)
        image = _axes(figure, left + (PLOT_WIDTH - FILTER) / 2, top, FILTER, FILTER)
        image.imshow(kernel, cmap="gray", interpolation="nearest")
        image.set(xticks=[], yticks=[])
        image.set_title(f"[{_number(kernel.min())}, {_number(kernel.max())}]", fontsize=7, pad=3)
        curves = [[potential[:, place] for potential in potentials]]
        curves += [[marginal[place] for marginal in below]] if below is not None else []
        plots = [
            _axes(
                figure, left, top + FILTER + PLOT_GAP + number * (PLOT_HEIGHT + BETWEEN_PLOTS), PLOT_WIDTH, PLOT_HEIGHT
            )
            for number in range(len(curves))
        ]
        ticks = (-reach / 2, 0.0, reach / 2)
        for plot, lines in zip(plots, curves, strict=True):
            for line, colour in zip(lines, COLOURS, strict=True):
                plot.plot(np.linspace(-reach, reach, len(line)), line, color=colour, linewidth=1.0)
            plot.set(xlim=(-reach, reach), ylim=limits, xticks=ticks, xticklabels=map(_number, ticks))
            plot.yaxis.set_major_locator(MaxNLocator(4, integer=True))
            plot.tick_params(labelsize=7, length=2, width=0.5, color="0.5", pad=2)
            plot.tick_params(labelleft=column == 0, labelbottom=place + columns >= len(shown) and plot is plots[-1])
            plot.grid(visible=True, color="0.9", linewidth=0.5)
        for frame in (frame for axes in (image, *plots) for frame in axes.spines.values()):
            frame.set(linewidth=0.5, color="0.5")
    _label(
        figure, prior, len(shown), "potential −log ψ" + (", and below it −log h of images" if len(curves) > 1 else "")
    )
    return figure


def draw_log(
    steps: Sequence[float],
    losses: Sequence[float],
    psnr: Mapping[str, Sequence[float]],
    path: Path,
    *,
    held_out: Sequence[float] = (),
) -> None:
    """How a training went: the loss over the steps and, where there is any, the PSNR of each noise level below it.

    `held_out` is the loss on other images, where it is known. Values of NaN are left out; points of the same level are
    joined.
    """
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


def _label(figure: Figure, prior: PatchPrior, shown: int, axis: str) -> None:
    """Title, names of the axes and the one legend."""
    width, height = figure.get_size_inches()
    count, size = prior.filters.count, prior.filters.size
    which = f"{shown} of {count}" if shown < count else f"{count}"
    name = str(prior.card.get("name", "prior"))[:LONGEST_NAME]
    name = "".join(
        letter if letter.isascii() and letter.isprintable() else "?" for letter in name
    )  # the font's letters
    title = f"{name}: {which} filters of {size}×{size} pixels, by rising norm"
    figure.text(LEFT / width, 1 - 0.12 / height, title, fontsize=10, va="top", parse_math=False)
    figure.text(0.1 / width, 0.5, axis, fontsize=8, rotation="vertical", va="center")
    figure.text(0.5, 0.42 / height, "response", fontsize=8, ha="center", va="center")
    lines = figure.axes[1].get_lines()
    names = [f"σ = {sigma:g}" for sigma in PAPER_SIGMAS]
    figure.legend(lines, names, loc="lower center", ncols=len(names), fontsize=8, frameon=False)


def _axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes placed in inches from the top left corner of the figure."""
    across, down = figure.get_size_inches()
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def _mosaic(patches: FloatArray, across: int) -> FloatArray:
    """Patches (count, H, W) in rows of `across`, one pixel apart; the gaps are NaN and stay empty."""
    count, height, width = patches.shape
    down = ceil(count / across)
    padded = np.full((down * across, height + 1, width + 1), np.nan)
    padded[:count, :height, :width] = patches
    sheet = padded.reshape(down, across, height + 1, width + 1).swapaxes(1, 2)
    return sheet.reshape(down * (height + 1), across * (width + 1))[:-1, :-1]


def _spread(order: np.ndarray[tuple[int], np.dtype[np.intp]], most: int) -> list[int]:
    """At most `most` entries of `order`, evenly spaced, both ends among them."""
    if most < 1:
        raise InvalidInputError(f"filters is {most}; expected at least one to draw")
    places = np.linspace(0, len(order) - 1, min(most, len(order))).round().astype(int)
    return [int(j) for j in order[places]]


def _columns(count: int) -> int:
    """Columns for `count` cells: a landscape page whose last row is as full as can be."""
    return min(count, min(range(8, 17), key=lambda columns: (-count % columns, abs(columns - sqrt(3 * count)))))


def _number(value: float) -> str:
    return f"{value:.2g}".replace("-", "−")


def save_figure(figure: Figure, path: Path, *, dpi: int = DOTS_PER_INCH) -> None:
    """Write a figure, in the format that the name says, whole or not at all."""
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInputError(f"cannot draw {path}: pictures end in {', '.join(SUFFIXES)}; choose one of these")
    with replacing(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:].lower(), dpi=dpi)
