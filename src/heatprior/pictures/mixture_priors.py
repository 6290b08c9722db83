"""A picture of a mixture of Gaussians: its most frequent shapes, each a row of its axes and its contrasts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.pictures.figures import COLOURS, axes_at, name_on, save_figure
from heatprior.priors.gaussian_mixture import GaussianMixturePrior

SHAPES, AXES = 12, 12  # that are shown
CELL, GAP, NAME, BARS = 0.62, 0.07, 1.15, 1.7  # inches: side of an axis, space between, room for text and for contrasts
TOP, BOTTOM, LEFT, RIGHT = 0.72, 0.3, 0.12, 0.15
NARROWEST = 5.5  # inches: room for the titles


def draw_mixture(prior: GaussianMixturePrior, path: Path, most: int | None = None) -> None:
    """The most frequent covariances, 12 if `most` is None, a row each: weight, leading axes, weights of the contrasts.

    Below each axis stands its standard deviation, in grey levels of 255, at the mean contrast of the shape.
    """
    if most is not None and most < 1:
        raise InvalidInputError(f"{most} shapes to draw; expected at least one")
    save_figure(mixture_figure(prior, SHAPES if most is None else most), path)


def mixture_figure(prior: GaussianMixturePrior, shapes: int = SHAPES) -> Figure:
    """As `draw_mixture`, not yet written."""
    weights = np.exp(prior.log_weights)  # (K, G)
    frequent = np.argsort(-weights.sum(axis=1), kind="stable")[:shapes]
    across, several = min(AXES, len(prior.basis)), len(prior.contrasts) > 1
    row_height = CELL + 0.22
    left = max(LEFT + NAME + across * (CELL + GAP), NARROWEST)
    width = left + (0.2 + BARS + RIGHT if several else RIGHT)
    figure = Figure(figsize=(width, TOP + len(frequent) * row_height + (BOTTOM if several else 0.1)))
    for row, k in enumerate(frequent):
        top, share = TOP + row * row_height, weights[k] / weights[k].sum()
        _text(figure, LEFT, top + CELL / 2, f"shape {k + 1}\n{100 * weights[k].sum():.2g} % of patches")
        deviations = 255.0 * np.sqrt(prior.variances[k] * (share @ prior.contrasts))
        for i in range(across):
            panel = axes_at(figure, LEFT + NAME + i * (CELL + GAP), top, CELL, CELL)
            _draw_axis(panel, prior.axes[k, i].reshape(prior.size, prior.size), _grey(deviations[i]))
        if several:
            bars = axes_at(figure, left + 0.2, top, BARS, CELL)
            _draw_contrasts(bars, prior.contrasts, share, last=row == len(frequent) - 1)
    _title(figure, prior, len(frequent), several=several)
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


def _grey(deviation: float) -> str:
    return f"{deviation:.0f}" if deviation >= 10 else f"{deviation:.2g}"


def _title(figure: Figure, prior: GaussianMixturePrior, shown: int, *, several: bool) -> None:
    width, height = figure.get_size_inches()
    count, size = len(prior.covariances), prior.size
    which = f"{shown} of {count} shapes" if shown < count else f"{count} shapes" if count > 1 else "1 shape"
    _text(figure, LEFT, 0.22, f"{name_on(prior.card)}: {which} on {size}×{size} pixels, most frequent first", size=10)
    _text(figure, LEFT + NAME, 0.52, "axes by falling variance; below: standard deviation in grey levels of 255")
    if several:
        right = width - RIGHT - BARS / 2
        figure.text(right / width, 1 - 0.52 / height, "part of each contrast", fontsize=8, ha="center", va="center")
        figure.text(right / width, 0.14 / height, "contrast of grey levels", fontsize=8, ha="center", va="center")


def _text(figure: Figure, left: float, top: float, text: str, *, size: float = 8) -> None:
    width, height = figure.get_size_inches()
    figure.text(left / width, 1 - top / height, text, fontsize=size, va="center", parse_math=False)
