"""The picture of a patch prior: filters by norm above their potentials, and all that it says can be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from drawings import assert_all_text_is_inside_and_apart
from matplotlib.figure import Figure

import heatprior as hp
from heatprior.pictures.priors import draw_filters, plot_filters
from paper.weights.handmade import dct_prior

NOWHERE = Path("never-written.png")


@pytest.mark.parametrize("size", [2, 3, 5, 7, 15])
def test_no_text_of_a_picture_of_a_prior_is_clipped(drawn: list[Figure], size: int):
    draw_filters(dct_prior(size), NOWHERE)
    assert_all_text_is_inside_and_apart(drawn[0])


def test_filters_rise_in_norm_and_state_their_range(drawn: list[Figure]):
    prior = dct_prior(3)
    draw_filters(prior, NOWHERE)
    shown = [np.asarray(axes.get_images()[0].get_array()) for axes in drawn[0].axes[::2]]
    norms = [np.linalg.norm(kernel) for kernel in shown]
    assert norms == sorted(norms)
    np.testing.assert_allclose(norms, np.sort(prior.filters.norms))
    for axes, kernel in zip(drawn[0].axes[::2], shown, strict=True):
        low, high = axes.get_title().strip("[]").replace("−", "-").split(", ")
        assert float(low) == pytest.approx(kernel.min(), rel=0.05)
        assert float(high) == pytest.approx(kernel.max(), rel=0.05)


def test_below_each_filter_stand_its_potentials(drawn: list[Figure]):
    prior = dct_prior(3)
    draw_filters(prior, NOWHERE)
    order = np.argsort(prior.filters.norms, kind="stable")
    for axes, j in zip(drawn[0].axes[1::2], order, strict=True):
        lines = axes.get_lines()
        assert len({line.get_color() for line in lines}) == 5
        for line, sigma in zip(lines, (0.0, 0.025, 0.05, 0.1, 0.2), strict=True):
            u = np.repeat(np.asarray(line.get_xdata())[:, None], prior.filters.count, axis=1)
            expected = -prior.experts.log_density(u, sigma * prior.filters.norms)[:, j]
            np.testing.assert_allclose(line.get_ydata(), expected)


def test_curves_of_images_stand_below_the_potentials():
    prior = dct_prior(3)
    below = np.random.default_rng(0).random((5, 2, 31))
    figure = plot_filters(prior, [4, 1], below)
    for place in range(2):
        _, potentials, images = figure.axes[3 * place : 3 * place + 3]
        assert len(potentials.get_lines()) == len(images.get_lines()) == 5
        assert images.get_position().y1 < potentials.get_position().y0
        for line, values in zip(images.get_lines(), below[:, place], strict=True):
            np.testing.assert_array_equal(line.get_ydata(), values)


@pytest.mark.parametrize(("most", "shown"), [(1, 1), (3, 3), (8, 8), (100, 8)])
def test_of_many_filters_so_many_are_drawn_both_ends_among_them(drawn: list[Figure], most: int, shown: int):
    prior = dct_prior(3)
    draw_filters(prior, NOWHERE, most=most)
    norms = [np.linalg.norm(axes.get_images()[0].get_array()) for axes in drawn[0].axes[::2]]
    assert len(norms) == shown
    assert norms[0] == pytest.approx(prior.filters.norms.min())
    if most > 1:
        assert norms[-1] == pytest.approx(prior.filters.norms.max())


def test_a_name_of_dollars_is_no_formula(drawn: list[Figure]):
    prior = dct_prior(2)
    draw_filters(hp.PatchPrior(prior.filters, prior.experts, {"name": r"$\frac{$" * 9}), NOWHERE)
    assert_all_text_is_inside_and_apart(drawn[0])


def test_refuses_what_it_cannot_draw(tmp_path: Path):
    with pytest.raises(hp.InvalidInputError, match="at least one"):
        draw_filters(dct_prior(2), tmp_path / "a.png", most=0)
    with pytest.raises(hp.InvalidInputError, match=r"\.png, \.pdf, \.svg"):
        draw_filters(dct_prior(2), tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []
