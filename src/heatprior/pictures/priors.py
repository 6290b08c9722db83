"""Pictures of priors: filters and potentials of patch priors (section 4 of the paper) and bands, shapes of mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.pictures.figures import COLOURS, Panel, axes_at, name_on, save_figure
from heatprior.priors.bands import image_of
from heatprior.priors.convolutional import ConvolutionalPrior
from heatprior.priors.experts import Experts
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.patch import PatchPrior
from heatprior.priors.wavelet import WaveletPrior

PAPER_SIGMAS = (0.0, 0.025, 0.05, 0.1, 0.2)
PAPER_FILTERS = 112  # how many of the 224 filters of 15×15 pixels the paper shows
POTENTIAL_RANGE = 15.0  # potentials are shown up to this much above the lowest: a density e^−15 of the highest

FILTER, PLOT_WIDTH, PLOT_HEIGHT, PLOT_GAP = 0.72, 0.92, 0.78, 0.08  # inches
BETWEEN_PLOTS = 0.14  # leaves room for the labels of both
CELL_WIDTH, CELL_HEIGHT = 1.04, 1.9
LEFT, RIGHT, TOP, BOTTOM = 0.58, 0.1, 0.58, 0.44
BAND_GRID = 256  # pixels of a side on which the filters of bands are drawn
VISIBLE = 0.1  # of the largest value of such a filter: less is grey, and cut off


def draw_filters(prior: PatchPrior, path: Path, most: int | None = None) -> None:
    """The filters by rising norm, at most `most` (112 if None), each above its potentials at the paper's levels."""
    save_figure(plot_filters(prior, filters_by_norm(prior, _at_least_one(most, "filters") or PAPER_FILTERS)), path)


def filters_by_norm(prior: PatchPrior, most: int = PAPER_FILTERS) -> list[int]:
    """The numbers of the filters by rising norm; of more than `most`, that many, evenly spaced, both ends included."""
    order = np.argsort(prior.filters.norms, kind="stable")
    return [int(j) for j in order[np.linspace(0, len(order) - 1, min(most, len(order))).round().astype(int)]]


def plot_filters(prior: PatchPrior, shown: Sequence[int], below: Sequence[FloatArray] | None = None) -> Figure:
    """The filters of these numbers, each above its potentials, and below those, if given, the curves of images.

    `below` has for each noise level of the paper an array (filters shown, points): −log of the marginals at equally
    spaced responses over the range of the experts, NaN where they are not known.
    """
    count, size = prior.filters.count, prior.filters.size
    which = f"{len(shown)} of {count}" if len(shown) < count else f"{count}"
    title = f"{name_on(prior.card)}: {which} filters of {size}×{size} pixels, by rising norm"
    panels = []
    for j in shown:
        kernel = prior.filters.matrix[j].reshape(size, size)
        black, white = kernel.min(), kernel.max()
        panels.append(Panel(f"[{_format_number(black)}, {_format_number(white)}]", kernel, black, white))
    return _plot_cells(title, panels, prior.experts, prior.filters.norms, shown, below)


def draw_bands(prior: ConvolutionalPrior | WaveletPrior, path: Path, most: int | None = None) -> None:
    """The filters of a prior of whole images, the `most` finest, each above −log psi_j at the levels of the paper."""
    total = prior.bands.count
    shown = range(min(_at_least_one(most, "bands") or total, total))
    which = f"{len(shown)} of {total}" if len(shown) < total else f"{total}"
    panels = []
    for j in shown:
        kernel = _crop_filter(image_of(prior.bands.spectrum(j, (BAND_GRID, BAND_GRID)), (BAND_GRID, BAND_GRID)))
        white = float(np.abs(kernel).max())
        panels.append(Panel(f"{kernel.shape[0]}×{kernel.shape[1]}, ξ {prior.norms[j]:.2g}", kernel, -white, white))
    title = f"{name_on(prior.card)}: {which} bands of whole images, finest first"
    save_figure(_plot_cells(title, panels, prior.experts, prior.norms, shown), path)


def _crop_filter(kernel: FloatArray) -> FloatArray:
    """The part of a cyclic filter that can be seen, as a square around its middle."""
    middle = np.roll(kernel, (BAND_GRID // 2, BAND_GRID // 2), axis=(0, 1))
    seen = np.argwhere(np.abs(middle) > VISIBLE * np.abs(middle).max())
    low, high = int(seen.min()), int(seen.max()) + 1
    return middle[low:high, low:high]


def _plot_cells(
    title: str, panels: Sequence[Panel], experts: Experts, norms: FloatArray, shown: Sequence[int],
    below: Sequence[FloatArray] | None = None,
) -> Figure:  # fmt: skip
    """Filters, each above the potentials of its expert, one of those `shown`, and these above what is `below`."""
    reach = experts.reach
    responses = np.linspace(-reach, reach, 401)
    grid = np.repeat(responses[:, None], len(norms), axis=1)
    potentials = [-experts.log_density(grid, sigma * norms)[:, shown] for sigma in PAPER_SIGMAS]
    lowest, highest = min(p.min() for p in potentials), max(p.max() for p in potentials)
    limits = (lowest - 0.5, min(highest, lowest + POTENTIAL_RANGE) + 0.5)
    columns = min(len(shown), min(range(8, 17), key=lambda n: (-len(shown) % n, abs(n - sqrt(3 * len(shown))))))
    rows = ceil(len(shown) / columns)  # a landscape page, whose last row is as full as can be
    cell_height = CELL_HEIGHT + (PLOT_HEIGHT + BETWEEN_PLOTS if below is not None else 0.0)
    width, height = max(LEFT + columns * CELL_WIDTH + RIGHT, 5.2), TOP + rows * cell_height + BOTTOM
    figure = Figure(figsize=(width, height))
    for place, panel in enumerate(panels):
        row, column = divmod(place, columns)
        left, top = LEFT + column * CELL_WIDTH, TOP + row * cell_height
        image = axes_at(figure, left + (PLOT_WIDTH - FILTER) / 2, top, FILTER, FILTER)
        image.imshow(panel.pixels, cmap="gray", vmin=panel.black, vmax=panel.white, interpolation="nearest")
        image.set(xticks=[], yticks=[])
        image.set_title(panel.title, fontsize=7, pad=3)
        curves = [[potential[:, place] for potential in potentials]]
        curves += [[marginal[place] for marginal in below]] if below is not None else []
        tops = [top + FILTER + PLOT_GAP + number * (PLOT_HEIGHT + BETWEEN_PLOTS) for number in range(len(curves))]
        plots = [axes_at(figure, left, start, PLOT_WIDTH, PLOT_HEIGHT) for start in tops]
        ticks = (-reach / 2, 0.0, reach / 2)
        for plot, lines in zip(plots, curves, strict=True):
            for line, colour in zip(lines, COLOURS, strict=True):
                plot.plot(np.linspace(-reach, reach, len(line)), line, color=colour, linewidth=1.0)
            plot.set(xlim=(-reach, reach), ylim=limits, xticks=ticks, xticklabels=map(_format_number, ticks))
            plot.yaxis.set_major_locator(MaxNLocator(4, integer=True))
            plot.tick_params(labelsize=7, length=2, width=0.5, color="0.5", pad=2)
            plot.tick_params(labelleft=column == 0, labelbottom=place + columns >= len(shown) and plot is plots[-1])
            plot.grid(visible=True, color="0.9", linewidth=0.5)
        for frame in (frame for axes in (image, *plots) for frame in axes.spines.values()):
            frame.set(linewidth=0.5, color="0.5")
    axis = "potential −log ψ" + (", and below it −log h of images" if below is not None else "")
    figure.text(LEFT / width, 1 - 0.12 / height, title, fontsize=10, va="top", parse_math=False)
    figure.text(0.1 / width, 0.5, axis, fontsize=8, rotation="vertical", va="center")
    figure.text(0.5, 0.42 / height, "response", fontsize=8, ha="center", va="center")
    names = [f"σ = {sigma:g}" for sigma in PAPER_SIGMAS]
    figure.legend(figure.axes[1].get_lines(), names, loc="lower center", ncols=len(names), fontsize=8, frameon=False)
    return figure


def _at_least_one(most: int | None, what: str) -> int | None:
    if most is not None and most < 1:
        raise InvalidInputError(f"{most} {what} to draw; expected at least one")
    return most


def _format_number(value: float) -> str:
    return f"{value:.2g}".replace("-", "−")


# A mixture of Gaussians: its most frequent shapes, each a row of its axes and its contrasts.

SHOWN_SHAPES, SHOWN_AXES = 12, 12  # that are shown
AXIS, AXIS_GAP, NAME, BARS = 0.62, 0.07, 1.15, 1.7  # inches: side of an axis, gap, width of text and of bars
ROW_TOP, ROW_BOTTOM, ROW_LEFT, ROW_RIGHT = 0.72, 0.3, 0.12, 0.15
NARROWEST = 5.5  # inches: room for the titles


def draw_mixture(prior: GaussianMixturePrior, path: Path, most: int | None = None) -> None:
    """The most frequent shapes, 12 if `most` is None, a row each: weight, leading axes, weights of the contrasts."""
    save_figure(plot_mixture(prior, _at_least_one(most, "shapes") or SHOWN_SHAPES), path)


def plot_mixture(prior: GaussianMixturePrior, shapes: int = SHOWN_SHAPES) -> Figure:
    """Plot what `draw_mixture` writes."""
    weights = np.exp(prior.log_weights)  # (K, G)
    frequent = np.argsort(-weights.sum(axis=1), kind="stable")[:shapes]
    across, several = min(SHOWN_AXES, len(prior.basis)), len(prior.contrasts) > 1
    row_height = AXIS + 0.22
    left = max(ROW_LEFT + NAME + across * (AXIS + AXIS_GAP), NARROWEST)
    width = left + (0.2 + BARS + ROW_RIGHT if several else ROW_RIGHT)
    figure = Figure(figsize=(width, ROW_TOP + len(frequent) * row_height + (ROW_BOTTOM if several else 0.1)))
    for row, k in enumerate(frequent):
        top, share = ROW_TOP + row * row_height, weights[k] / weights[k].sum()
        _write(figure, ROW_LEFT, top + AXIS / 2, f"shape {k + 1}\n{100 * weights[k].sum():.2g} % of patches")
        deviations = 255.0 * np.sqrt(prior.variances[k] * (share @ prior.contrasts))
        for i in range(across):
            panel = axes_at(figure, ROW_LEFT + NAME + i * (AXIS + AXIS_GAP), top, AXIS, AXIS)
            axis, deviation = prior.axes[k, i].reshape(prior.size, prior.size), deviations[i]
            white = np.abs(axis).max()
            panel.imshow(axis, cmap="gray", vmin=-white, vmax=white, interpolation="nearest")
            panel.set(xticks=[], yticks=[])
            note = f"{deviation:.0f}" if deviation >= 10 else f"{deviation:.2g}"
            panel.set_xlabel(note, fontsize=7, labelpad=2)
            for frame in panel.spines.values():
                frame.set(linewidth=0.5, color="0.5")
        if several:
            bars = axes_at(figure, left + 0.2, top, BARS, AXIS)
            _draw_contrasts(bars, prior.contrasts, share, last=row == len(frequent) - 1)
    _label_mixture(figure, prior, len(frequent), several=several)
    return figure


def _draw_contrasts(bars: Axes, contrasts: FloatArray, share: FloatArray, *, last: bool) -> None:
    """Bars over the contrast of grey levels, the root of the contrast of variances, each twice the one before."""
    places = np.arange(len(contrasts))
    bars.bar(places, share, color=COLOURS[1], width=0.8)
    labels = [f"{value:.2g}" for value in np.sqrt(contrasts)]
    bars.set(ylim=(0, 1), xticks=places, xticklabels=labels if last else [], yticks=[0, 1], yticklabels=[])
    bars.tick_params(labelsize=7, length=2, width=0.5, color="0.5", pad=2)
    for name, frame in bars.spines.items():
        frame.set(linewidth=0.5, color="0.5", visible=name in ("left", "bottom"))


def _label_mixture(figure: Figure, prior: GaussianMixturePrior, shown: int, *, several: bool) -> None:
    width, height = figure.get_size_inches()
    count, size = len(prior.covariances), prior.size
    which = f"{shown} of {count} shapes" if shown < count else f"{count} shapes" if count > 1 else "1 shape"
    title = f"{name_on(prior.card)}: {which} on {size}×{size} pixels, most frequent first"
    _write(figure, ROW_LEFT, 0.22, title, size=10)
    note = "axes by falling variance; below: standard deviation in grey levels of 255"
    _write(figure, ROW_LEFT + NAME, 0.52, note)
    if several:
        right = width - ROW_RIGHT - BARS / 2
        figure.text(right / width, 1 - 0.52 / height, "part of each contrast", fontsize=8, ha="center", va="center")
        figure.text(right / width, 0.14 / height, "contrast of grey levels", fontsize=8, ha="center", va="center")


def _write(figure: Figure, left: float, top: float, text: str, *, size: float = 8) -> None:
    width, height = figure.get_size_inches()
    figure.text(left / width, 1 - top / height, text, fontsize=size, va="center", parse_math=False)
