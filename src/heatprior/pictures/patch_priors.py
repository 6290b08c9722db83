"""A picture of a patch prior: its filters above their potentials, as in section 4 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.pictures.figures import COLOURS, axes_at, name_on, save_figure
from heatprior.priors.patch import PatchPrior

PAPER_SIGMAS = (0.0, 0.025, 0.05, 0.1, 0.2)
PAPER_FILTERS = 112  # how many of the 224 filters of 15×15 pixels the paper shows
POTENTIAL_RANGE = 15.0  # potentials are shown up to this much above the lowest: a density e^−15 of the highest

FILTER, PLOT_WIDTH, PLOT_HEIGHT, PLOT_GAP = 0.72, 0.92, 0.78, 0.08  # inches
BETWEEN_PLOTS = 0.14  # leaves room for the labels of both
CELL_WIDTH, CELL_HEIGHT = 1.04, 1.9
LEFT, RIGHT, TOP, BOTTOM = 0.58, 0.1, 0.58, 0.44


def draw_prior(prior: PatchPrior, path: Path, most: int | None = None) -> None:
    """The filters by rising norm, each above its potentials −log psi_j at the noise levels of the paper.

    Above each filter stand the values of its black and its white. Of more than `most` (112 if None),
    that many are shown, evenly spaced in the order of the norms.
    """
    save_figure(prior_figure(prior, by_norm(prior, PAPER_FILTERS if most is None else most)), path)


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
    limits = (lowest - 0.5, min(highest, lowest + POTENTIAL_RANGE) + 0.5)

    columns = _columns(len(shown))
    rows = ceil(len(shown) / columns)
    cell_height = CELL_HEIGHT + (PLOT_HEIGHT + BETWEEN_PLOTS if below is not None else 0.0)
    figure = Figure(figsize=(max(LEFT + columns * CELL_WIDTH + RIGHT, 5.2), TOP + rows * cell_height + BOTTOM))
    for place, j in enumerate(shown):
        row, column = divmod(place, columns)
        left, top = LEFT + column * CELL_WIDTH, TOP + row * cell_height
        kernel = prior.filters.matrix[j].reshape(size, size)
        image = axes_at(figure, left + (PLOT_WIDTH - FILTER) / 2, top, FILTER, FILTER)
        image.imshow(kernel, cmap="gray", interpolation="nearest")
        image.set(xticks=[], yticks=[])
        image.set_title(f"[{_number(kernel.min())}, {_number(kernel.max())}]", fontsize=7, pad=3)
        curves = [[potential[:, place] for potential in potentials]]
        curves += [[marginal[place] for marginal in below]] if below is not None else []
        plots = [
            axes_at(
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


def _label(figure: Figure, prior: PatchPrior, shown: int, axis: str) -> None:
    """Title, names of the axes and the one legend."""
    width, height = figure.get_size_inches()
    count, size = prior.filters.count, prior.filters.size
    which = f"{shown} of {count}" if shown < count else f"{count}"
    title = f"{name_on(prior.card)}: {which} filters of {size}×{size} pixels, by rising norm"
    figure.text(LEFT / width, 1 - 0.12 / height, title, fontsize=10, va="top", parse_math=False)
    figure.text(0.1 / width, 0.5, axis, fontsize=8, rotation="vertical", va="center")
    figure.text(0.5, 0.42 / height, "response", fontsize=8, ha="center", va="center")
    lines = figure.axes[1].get_lines()
    names = [f"σ = {sigma:g}" for sigma in PAPER_SIGMAS]
    figure.legend(lines, names, loc="lower center", ncols=len(names), fontsize=8, frameon=False)


def _spread(order: np.ndarray[tuple[int], np.dtype[np.intp]], most: int) -> list[int]:
    """At most `most` entries of `order`, evenly spaced, both ends among them."""
    if most < 1:
        raise InvalidInputError(f"{most} filters to draw; expected at least one")
    places = np.linspace(0, len(order) - 1, min(most, len(order))).round().astype(int)
    return [int(j) for j in order[places]]


def _columns(count: int) -> int:
    """Columns for `count` cells: a landscape page whose last row is as full as can be."""
    return min(count, min(range(8, 17), key=lambda columns: (-count % columns, abs(columns - sqrt(3 * count)))))


def _number(value: float) -> str:
    return f"{value:.2g}".replace("-", "−")
