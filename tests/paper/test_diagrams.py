"""A diagram has no more colours than it needs; what a user has drawn has all."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from heatprior.pictures.figures import save_figure
from paper.claims.plots import save_diagram


def figure_of(pixels):
    figure = Figure(figsize=(1.0, 1.0))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.imshow(pixels, interpolation="nearest", cmap="gray", vmin=0, vmax=255)
    axes.set_axis_off()
    return figure


COLOURED = np.random.default_rng(0).integers(0, 256, (100, 100, 3), np.uint8)


@pytest.mark.parametrize(("save", "mode", "exact"), [(save_diagram, "P", False), (save_figure, "RGBA", True)])
def test_a_diagram_has_256_colours_and_a_picture_has_all(tmp_path, save, mode, exact):
    save(figure_of(COLOURED), tmp_path / "a.png", dpi=100)
    with Image.open(tmp_path / "a.png") as image:
        assert image.mode == mode
        assert (image.size, round(image.info["dpi"][0])) == ((100, 100), 100)
        assert np.array_equal(np.asarray(image.convert("RGB")), COLOURED) == exact


def test_what_is_grey_is_kept_to_the_bit(tmp_path):
    save_diagram(figure_of(COLOURED[..., 0]), tmp_path / "a.png", dpi=100)
    figure_of(COLOURED[..., 0]).savefig(tmp_path / "b.png", dpi=100)
    with Image.open(tmp_path / "a.png") as image, Image.open(tmp_path / "b.png") as by_matplotlib:
        assert image.mode == "L"
        np.testing.assert_array_equal(np.asarray(image.convert("RGB")), np.asarray(by_matplotlib.convert("RGB")))
