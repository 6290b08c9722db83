from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import heatprior as hp
from heatprior.pictures import patch_priors as pictures
from heatprior.pictures.patch_priors import draw_log, draw_patches, draw_prior, prior_figure
from heatprior.priors.handmade import dct_prior

NOWHERE = Path("never-written.png")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that would have been saved."""
    figures: list[Figure] = []
    monkeypatch.setattr(pictures, "save_figure", lambda figure, _: figures.append(figure))
    return figures


def patches_of(levels: int, count: int, size: int = 7) -> np.ndarray:
    return np.random.default_rng(0).normal(scale=0.2, size=(levels, count, size, size))


def assert_all_text_is_inside_and_apart(figure: Figure) -> None:
    figure.draw_without_rendering()
    page = figure.bbox.padded(-1)
    extents = []
    for axes in figure.axes:
        ticks = [*axes.get_xticklabels(), *axes.get_yticklabels()] if axes.axison else []
        labels = [axes.title, *axes.texts, *ticks]
        extents += [label.get_window_extent() for label in labels if label.get_text() and label.get_visible()]
    extents += [text.get_window_extent() for text in figure.texts]
    extents += [legend.get_window_extent() for legend in figure.legends]
    for place, extent in enumerate(extents):
        assert page.x0 <= extent.x0
        assert page.y0 <= extent.y0
        assert extent.x1 <= page.x1
        assert extent.y1 <= page.y1
        assert extent.count_overlaps(extents[:place]) == 0


@pytest.mark.parametrize(("levels", "count"), [(1, 1), (2, 3), (5, 36), (7, 100)])
def test_no_text_of_a_picture_of_patches_is_clipped(drawn: list[Figure], levels: int, count: int):
    draw_patches(patches_of(levels, count), [0.025] * levels, NOWHERE)
    assert_all_text_is_inside_and_apart(drawn[0])


@pytest.mark.parametrize("size", [2, 3, 5, 7, 15])
def test_no_text_of_a_picture_of_a_prior_is_clipped(drawn: list[Figure], size: int):
    draw_prior(dct_prior(size), NOWHERE)
    assert_all_text_is_inside_and_apart(drawn[0])


def test_every_patch_is_shown_in_its_place_with_one_contrast_per_level(drawn: list[Figure]):
    patches = patches_of(1, 5, 4) * np.array([1, 10])[:, None, None, None]
    draw_patches(patches, [0.0, 0.5], NOWHERE)
    assert [axes.get_title() for axes in drawn[0].axes] == ["σ = 0", "σ = 0.5"]
    contrasts = []
    for axes, level in zip(drawn[0].axes, patches, strict=True):
        (image,) = axes.get_images()
        sheet = np.ma.filled(image.get_array(), np.nan)
        for place, patch in enumerate(level):
            row, column = divmod(place, 3)
            np.testing.assert_array_equal(sheet[5 * row : 5 * row + 4, 5 * column : 5 * column + 4], patch)
        darkest, brightest = image.get_clim()
        assert darkest == -brightest
        contrasts.append(brightest)
    assert contrasts[1] == pytest.approx(10 * contrasts[0])


def test_patches_without_any_contrast_are_grey(drawn: list[Figure]):
    draw_patches(np.zeros((1, 4, 3, 3)), [0.0], NOWHERE)
    assert drawn[0].axes[0].get_images()[0].get_clim() == (-1, 1)


def test_filters_rise_in_norm_and_state_their_range(drawn: list[Figure]):
    prior = dct_prior(3)
    draw_prior(prior, NOWHERE)
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
    draw_prior(prior, NOWHERE)
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
    figure = prior_figure(prior, [4, 1], below)
    for place in range(2):
        _, potentials, images = figure.axes[3 * place : 3 * place + 3]
        assert len(potentials.get_lines()) == len(images.get_lines()) == 5
        assert images.get_position().y1 < potentials.get_position().y0
        for line, values in zip(images.get_lines(), below[:, place], strict=True):
            np.testing.assert_array_equal(line.get_ydata(), values)


@pytest.mark.parametrize(("most", "shown"), [(1, 1), (3, 3), (8, 8), (100, 8)])
def test_of_many_filters_so_many_are_drawn_both_ends_among_them(drawn: list[Figure], most: int, shown: int):
    prior = dct_prior(3)
    draw_prior(prior, NOWHERE, filters=most)
    norms = [np.linalg.norm(axes.get_images()[0].get_array()) for axes in drawn[0].axes[::2]]
    assert len(norms) == shown
    assert norms[0] == pytest.approx(prior.filters.norms.min())
    if most > 1:
        assert norms[-1] == pytest.approx(prior.filters.norms.max())


def test_a_name_of_dollars_is_no_formula(drawn: list[Figure]):
    prior = dct_prior(2)
    draw_prior(hp.PatchPrior(prior.filters, prior.experts, {"name": r"$\frac{$" * 9}), NOWHERE)
    assert_all_text_is_inside_and_apart(drawn[0])


@pytest.mark.parametrize("validated", [True, False])
def test_a_log_shows_losses_and_validations(drawn: list[Figure], validated: bool):
    steps, losses = [10.0, 20.0, 30.0], [3.0, 2.0, 1.5]
    psnr = {"15": [np.nan, 28.0, 29.0] if validated else [np.nan] * 3, "25": [np.nan, 26.0, np.nan]}
    draw_log(steps, losses, psnr if validated else {"15": psnr["15"]}, NOWHERE)
    axes = drawn[0].axes
    assert len(axes) == (2 if validated else 1)
    np.testing.assert_array_equal(axes[0].get_lines()[0].get_xydata(), np.transpose([steps, losses]))
    if validated:
        first, second = axes[1].get_lines()
        np.testing.assert_array_equal(first.get_xydata(), [[20.0, 28.0], [30.0, 29.0]])
        np.testing.assert_array_equal(second.get_xydata(), [[20.0, 26.0]])
        assert [text.get_text() for text in axes[1].get_legend().get_texts()] == ["15", "25"]


def test_refuses_what_it_cannot_draw(tmp_path: Path):
    with pytest.raises(hp.InvalidInputError, match="give one for each"):
        draw_patches(patches_of(2, 1), [0.1], tmp_path / "a.png")
    with pytest.raises(hp.InvalidInputError, match="at least one"):
        draw_prior(dct_prior(2), tmp_path / "a.png", filters=0)
    with pytest.raises(hp.InvalidInputError, match=r"\.png, \.pdf, \.svg"):
        draw_prior(dct_prior(2), tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []
