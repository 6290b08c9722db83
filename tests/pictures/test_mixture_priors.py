"""The picture of a mixture shows its most frequent shapes in order, and all that it says can be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from drawings import assert_all_text_is_inside_and_apart

from examples import gaussian_mixture
from heatprior import GaussianMixturePrior, InvalidInputError
from heatprior.pictures.priors import draw_mixture, plot_mixture


@pytest.mark.parametrize(
    ("size", "shapes", "contrasts"),
    [(2, 1, (1.0,)), (2, 3, (0.25, 1.0, 4.0)), (3, 2, (1.0,)), (8, 20, tuple(4.0 ** (np.arange(6) - 2.5)))],
)
def test_no_text_is_clipped(size: int, shapes: int, contrasts: tuple[float, ...]):
    prior = gaussian_mixture(size, shapes, contrasts)
    named = GaussianMixturePrior(prior.covariances, prior.log_weights, prior.contrasts, {"name": "$x_1$" * 9})
    assert_all_text_is_inside_and_apart(plot_mixture(named))


def test_the_most_frequent_shapes_come_first_with_their_leading_axes():
    prior = gaussian_mixture(3, 5, (0.5, 2.0), seed=1)
    figure = plot_mixture(prior, 2)
    shares = np.exp(prior.log_weights).sum(axis=1)
    first, second = np.argsort(-shares)[:2]
    images = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    assert len(images) == 2 * 8
    for row, k in enumerate((first, second)):
        for i in range(8):
            np.testing.assert_array_equal(images[8 * row + i], prior.axes[k, i].reshape(3, 3))
    words = [text.get_text() for text in figure.texts]
    assert words[0] == f"shape {first + 1}\n{100 * shares[first]:.2g} % of patches"
    bars = [[bar.get_height() for bar in axes.patches] for axes in figure.axes if not axes.images]
    np.testing.assert_allclose(bars[0], np.exp(prior.log_weights[first]) / shares[first])


def test_with_one_contrast_there_is_nothing_to_weigh():
    assert all(axes.images for axes in plot_mixture(gaussian_mixture(2, 2)).axes)


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_it_is_written_in_the_format_of_its_name(tmp_path: Path, suffix: str):
    draw_mixture(gaussian_mixture(2, 2), tmp_path / f"picture{suffix}")
    begins = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}[suffix]
    assert (tmp_path / f"picture{suffix}").read_bytes().startswith(begins)


def test_no_shapes_are_refused(tmp_path: Path):
    with pytest.raises(InvalidInputError, match="at least one"):
        draw_mixture(gaussian_mixture(2, 2), tmp_path / "picture.png", most=0)
