"""Pictures of patches: each in its place, every panel with its own contrast."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from drawings import assert_all_text_is_inside_and_apart
from matplotlib.figure import Figure

import heatprior as hp
from heatprior.pictures.figures import draw_patches

NOWHERE = Path("never-written.png")


def patches_of(levels: int, count: int, size: int = 7) -> np.ndarray:
    return np.random.default_rng(0).normal(scale=0.2, size=(levels, count, size, size))


@pytest.mark.parametrize(("levels", "count"), [(1, 1), (2, 3), (5, 36), (7, 100)])
def test_no_text_of_a_picture_of_patches_is_clipped(drawn: list[Figure], levels: int, count: int):
    draw_patches(patches_of(levels, count), [0.025] * levels, NOWHERE)
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


def test_refuses_levels_that_do_not_match(tmp_path: Path):
    with pytest.raises(hp.InvalidInputError, match="give one for each"):
        draw_patches(patches_of(2, 1), [0.1], tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []
