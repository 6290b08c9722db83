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
from heatprior.pictures.figures import COLOURS, axes_at, name_on, save_figure
from heatprior.priors.bands import image_of
from heatprior.priors.convolutional import ConvolutionalPrior
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


def draw_filters(prior: PatchPrior, path: Path, most: int | None = None) -> None:
    """The filters by rising norm, each above its potentials −log psi_j at the noise levels of the paper.

    Above each filter stand the values of its black and its white. Of more than `most` (112 if None),
    that many are shown, evenly spaced in the order of the norms.
    """
    save_figure(plot_filters(prior, filters_by_norm(prior, PAPER_FILTERS if most is None else most)), path)


def filters_by_norm(prior: PatchPrior, most: int = PAPER_FILTERS) -> list[int]:
    """The numbers of the filters by rising norm; of more than `most`, that many, evenly spaced."""
    return _choose(np.argsort(prior.filters.norms, kind="stable"), most)


def plot_filters(prior: PatchPrior, shown: Sequence[int], below: Sequence[FloatArray] | None = None) -> Figure:
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
        image.set_title(f"[{_format_number(kernel.min())}, {_format_number(kernel.max())}]", fontsize=7, pad=3)
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
            plot.set(xlim=(-reach, reach), ylim=limits, xticks=ticks, xticklabels=map(_format_number, ticks))
            plot.yaxis.set_major_locator(MaxNLocator(4, integer=True))
            plot.tick_params(labelsize=7, length=2, width=0.5, color="0.5", pad=2)
            plot.tick_params(labelleft=column == 0, labelbottom=place + columns >= len(shown) and plot is plots[-1])
            plot.grid(visible=True, color="0.9", linewidth=0.5)
        for frame in (frame for axes in (image, *plots) for frame in axes.spines.values()):
            frame.set(linewidth=0.5, color="0.5")
    _label_filters(
        figure, prior, len(shown), "potential −log ψ" + (", and below it −log h of images" if len(curves) > 1 else "")
    )
    return figure


def _label_filters(figure: Figure, prior: PatchPrior, shown: int, axis: str) -> None:
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


def _choose(order: np.ndarray[tuple[int], np.dtype[np.intp]], most: int) -> list[int]:
    """At most `most` entries of `order`, evenly spaced, both ends among them."""
    if most < 1:
        raise InvalidInputError(f"{most} filters to draw; expected at least one")
    places = np.linspace(0, len(order) - 1, min(most, len(order))).round().astype(int)
    return [int(j) for j in order[places]]


def _columns(count: int) -> int:
    """Columns for `count` cells: a landscape page whose last row is as full as can be."""
    return min(count, min(range(8, 17), key=lambda columns: (-count % columns, abs(columns - sqrt(3 * count)))))


def _format_number(value: float) -> str:
    return f"{value:.2g}".replace("-", "−")


# A mixture of Gaussians: its most frequent shapes, each a row of its axes and its contrasts.

SHOWN_SHAPES, SHOWN_AXES = 12, 12  # that are shown
AXIS, AXIS_GAP, NAME, BARS = 0.62, 0.07, 1.15, 1.7  # inches: side of an axis, gap, width of text and of bars
ROW_TOP, ROW_BOTTOM, ROW_LEFT, ROW_RIGHT = 0.72, 0.3, 0.12, 0.15
NARROWEST = 5.5  # inches: room for the titles


def draw_mixture(prior: GaussianMixturePrior, path: Path, most: int | None = None) -> None:
    """The most frequent covariances, 12 if `most` is None, a row each: weight, leading axes, weights of the contrasts.

    Below each axis stands its standard deviation, in grey levels of 255, at the mean contrast of the shape.
    """
    if most is not None and most < 1:
        raise InvalidInputError(f"{most} shapes to draw; expected at least one")
    save_figure(plot_mixture(prior, SHOWN_SHAPES if most is None else most), path)


def plot_mixture(prior: GaussianMixturePrior, shapes: int = SHOWN_SHAPES) -> Figure:
    """As `draw_mixture`, not yet written."""
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
            _draw_axis(panel, prior.axes[k, i].reshape(prior.size, prior.size), _format_level(deviations[i]))
        if several:
            bars = axes_at(figure, left + 0.2, top, BARS, AXIS)
            _draw_contrasts(bars, prior.contrasts, share, last=row == len(frequent) - 1)
    _label_mixture(figure, prior, len(frequent), several=several)
    return figure


def _draw_axis(panel: Axes, axis: FloatArray, note: str) -> None:
    white = np.abs(axis).max()
    panel.imshow(axis, cmap="gray", vmin=-white, vmax=white, interpolation="nearest")
    panel.set(xticks=[], yticks=[])
    panel.set_xlabel(note, fontsize=7, labelpad=2)
    for frame in panel.spines.values():
        frame.set(linewidth=0.5, color="0.5")


def _draw_contrasts(bars: Axes, contrasts: FloatArray, share: FloatArray, *, last: bool) -> None:
    """Bars over the contrast of grey levels, the root of the contrast of variances, each twice the one before."""
    places = np.arange(len(contrasts))
    bars.bar(places, share, color=COLOURS[1], width=0.8)
    labels = [f"{value:.2g}" for value in np.sqrt(contrasts)]
    bars.set(ylim=(0, 1), xticks=places, xticklabels=labels if last else [], yticks=[0, 1], yticklabels=[])
    bars.tick_params(labelsize=7, length=2, width=0.5, color="0.5", pad=2)
    for name, frame in bars.spines.items():
        frame.set(linewidth=0.5, color="0.5", visible=name in ("left", "bottom"))


def _format_level(deviation: float) -> str:
    return f"{deviation:.0f}" if deviation >= 10 else f"{deviation:.2g}"


def _label_mixture(figure: Figure, prior: GaussianMixturePrior, shown: int, *, several: bool) -> None:
    width, height = figure.get_size_inches()
    count, size = len(prior.covariances), prior.size
    which = f"{shown} of {count} shapes" if shown < count else f"{count} shapes" if count > 1 else "1 shape"
    _write(
        figure,
        ROW_LEFT,
        0.22,
        f"{name_on(prior.card)}: {which} on {size}×{size} pixels, most frequent first",
        size=10,
    )
    _write(
        figure,
        ROW_LEFT + NAME,
        0.52,
        "axes by falling variance; below: standard deviation in grey levels of 255",
    )
    if several:
        right = width - ROW_RIGHT - BARS / 2
        figure.text(right / width, 1 - 0.52 / height, "part of each contrast", fontsize=8, ha="center", va="center")
        figure.text(right / width, 0.14 / height, "contrast of grey levels", fontsize=8, ha="center", va="center")


def _write(figure: Figure, left: float, top: float, text: str, *, size: float = 8) -> None:
    width, height = figure.get_size_inches()
    figure.text(left / width, 1 - top / height, text, fontsize=size, va="center", parse_math=False)


# Priors of whole images: the filter of every band above the potentials of its expert.

BAND_COLUMNS = 9
BAND_CELL_WIDTH, BAND_CELL_HEIGHT = 1.1, 1.9  # inches
BAND_GRID = 256  # pixels of a side on which filters are drawn
VISIBLE = 0.1  # of the largest value of a filter: less is grey, and cut off


def draw_bands(prior: ConvolutionalPrior | WaveletPrior, path: Path, most: int | None = None) -> None:
    """The filters, finest first, each as large as it is, above −log psi_j at the noise levels of the paper.

    Of more than `most` bands, if given, the finest are shown.
    """
    if most is not None and most < 1:
        raise InvalidInputError(f"{most} bands to draw; expected at least one")
    total = prior.bands.count
    count = total if most is None else min(most, total)
    columns = min(BAND_COLUMNS, count)
    rows = ceil(count / columns)
    figure = Figure(figsize=(max(columns * BAND_CELL_WIDTH, 5.2), rows * BAND_CELL_HEIGHT + 0.8), layout="constrained")
    which = f"{count} of {total}" if count < total else f"{count}"
    figure.suptitle(
        f"{name_on(prior.card)}: {which} bands of whole images, finest first", fontsize=10, parse_math=False
    )
    panels = figure.subplots(2 * rows, columns, squeeze=False)
    for panel in panels.flat:
        panel.set_axis_off()
    reach = prior.experts.reach
    u = np.repeat(np.linspace(-reach, reach, 201)[:, None], total, axis=1)
    potentials = [-prior.experts.log_density(u, sigma * prior.norms) for sigma in PAPER_SIGMAS]
    lowest, highest = min(p.min() for p in potentials), max(p.max() for p in potentials)
    for j in range(count):
        row, column = divmod(j, columns)
        _draw_band(panels[2 * row, column], prior, j)
        plot = panels[2 * row + 1, column]
        plot.set_axis_on()
        lines = [
            plot.plot(u[:, 0], potential[:, j], color=colour, linewidth=1.0)[0]
            for potential, colour in zip(potentials, COLOURS, strict=True)
        ]
        plot.set(xlim=(-reach, reach), ylim=(lowest - 0.5, min(highest, lowest + POTENTIAL_RANGE) + 0.5))
        plot.tick_params(labelsize=6, length=2, width=0.5, labelleft=column == 0)
    names = [f"σ = {sigma:g}" for sigma in PAPER_SIGMAS]
    figure.legend(lines, names, loc="outside lower center", ncols=len(names), fontsize=8, frameon=False)
    save_figure(figure, path)


def _draw_band(panel: Axes, prior: ConvolutionalPrior | WaveletPrior, band: int) -> None:
    kernel = _crop_filter(image_of(prior.bands.spectrum(band, (BAND_GRID, BAND_GRID)), (BAND_GRID, BAND_GRID)))
    white = float(np.abs(kernel).max())
    panel.imshow(kernel, cmap="gray", vmin=-white, vmax=white, interpolation="nearest")
    panel.set_axis_on()
    panel.set(xticks=[], yticks=[])
    panel.set_title(f"{kernel.shape[0]}×{kernel.shape[1]}, ξ {prior.norms[band]:.2g}", fontsize=7, pad=3)


def _crop_filter(kernel: FloatArray) -> FloatArray:
    """The part of a cyclic filter that can be seen, as a square around its middle."""
    middle = np.roll(kernel, (BAND_GRID // 2, BAND_GRID // 2), axis=(0, 1))
    seen = np.argwhere(np.abs(middle) > VISIBLE * np.abs(middle).max())
    low, high = int(seen.min()), int(seen.max()) + 1
    return middle[low:high, low:high]
