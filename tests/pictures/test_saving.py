"""A PNG has no more colours than a diagram needs, unless it shows somebody's picture."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from heatprior.pictures.figures import save_figure


def figure_of(pixels):
    figure = Figure(figsize=(1.0, 1.0))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.imshow(pixels, interpolation="nearest", cmap="gray", vmin=0, vmax=255)
    axes.set_axis_off()
    return figure


COLOURED = np.random.default_rng(0).integers(0, 256, (100, 100, 3), np.uint8)


@pytest.mark.parametrize(("exact", "mode"), [(False, "P"), (True, "RGB")])
def test_a_diagram_has_256_colours_and_a_picture_has_all(tmp_path, exact, mode):
    save_figure(figure_of(COLOURED), tmp_path / "a.png", dpi=100, exact=exact)
    with Image.open(tmp_path / "a.png") as image:
        assert image.mode == mode
        assert (image.size, round(image.info["dpi"][0])) == ((100, 100), 100)
        assert np.array_equal(np.asarray(image.convert("RGB")), COLOURED) == exact


def test_what_is_grey_is_kept_to_the_bit(tmp_path):
    save_figure(figure_of(COLOURED[..., 0]), tmp_path / "a.png", dpi=100)
    figure_of(COLOURED[..., 0]).savefig(tmp_path / "b.png", dpi=100)
    with Image.open(tmp_path / "a.png") as image, Image.open(tmp_path / "b.png") as by_matplotlib:
        assert image.mode == "L"
        np.testing.assert_array_equal(np.asarray(image.convert("RGB")), np.asarray(by_matplotlib.convert("RGB")))
