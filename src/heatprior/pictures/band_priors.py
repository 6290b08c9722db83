"""A picture of a prior of whole images: the filter of every band above the potentials of its expert."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.pictures.figures import COLOURS, name_on, save_figure
from heatprior.pictures.patch_priors import PAPER_SIGMAS, POTENTIAL_RANGE
from heatprior.priors.bands import image_of
from heatprior.priors.convolutional import ConvolutionalPrior
from heatprior.priors.wavelet import WaveletPrior

COLUMNS = 9
CELL_WIDTH, CELL_HEIGHT = 1.1, 1.9  # inches
GRID = 256  # pixels of a side on which filters are drawn
VISIBLE = 0.1  # of the largest value of a filter: less is grey, and cut off


def draw_bands(prior: ConvolutionalPrior | WaveletPrior, path: Path, most: int | None = None) -> None:
    """The filters, finest first, each as large as it is, above −log psi_j at the noise levels of the paper.

    Of more than `most` bands, if given, the finest are shown.
    """
    if most is not None and most < 1:
        raise InvalidInputError(f"{most} bands to draw; expected at least one")
    total = prior.bands.count
    count = total if most is None else min(most, total)
    columns = min(COLUMNS, count)
    rows = ceil(count / columns)
    figure = Figure(figsize=(max(columns * CELL_WIDTH, 5.2), rows * CELL_HEIGHT + 0.8), layout="constrained")
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
        _draw_filter(panels[2 * row, column], prior, j)
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


def _draw_filter(panel: Axes, prior: ConvolutionalPrior | WaveletPrior, band: int) -> None:
    kernel = cut_out(image_of(prior.bands.spectrum(band, (GRID, GRID)), (GRID, GRID)))
    white = float(np.abs(kernel).max())
    panel.imshow(kernel, cmap="gray", vmin=-white, vmax=white, interpolation="nearest")
    panel.set_axis_on()
    panel.set(xticks=[], yticks=[])
    panel.set_title(f"{kernel.shape[0]}×{kernel.shape[1]}, ξ {prior.norms[band]:.2g}", fontsize=7, pad=3)


def cut_out(kernel: FloatArray) -> FloatArray:
    """The part of a cyclic filter that can be seen, as a square around its middle."""
    middle = np.roll(kernel, (GRID // 2, GRID // 2), axis=(0, 1))
    seen = np.argwhere(np.abs(middle) > VISIBLE * np.abs(middle).max())
    low, high = int(seen.min()), int(seen.max()) + 1
    return middle[low:high, low:high]
