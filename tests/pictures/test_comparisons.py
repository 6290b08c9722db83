"""Pictures that put images side by side show what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from heatprior import InvalidInputError
from heatprior.pictures import figures
from heatprior.pictures.figures import (
    GAP,
    LARGEST_PANEL,
    TITLE,
    Panel,
    contrast,
    draw_denoising,
    draw_side_by_side,
)

RNG = np.random.default_rng(0)
NOWHERE = Path("never-written.png")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    found: list[Figure] = []
    monkeypatch.setattr(figures, "save_figure", lambda figure, _, **__: found.append(figure))
    return found


def shown(figure: Figure) -> list[np.ndarray]:
    return [np.asarray(axes.get_images()[0].get_array()) for axes in figure.axes]


@pytest.mark.parametrize("shape", [(300, 400), (300, 400, 3)])
def test_an_image_is_drawn_pixel_for_pixel(tmp_path: Path, shape: tuple[int, ...]):
    pixels = RNG.integers(0, 256, shape, dtype=np.uint8)
    draw_side_by_side([Panel("a", pixels, 0, 255), Panel("b", pixels[::-1], 0, 255)], tmp_path / "new.png")
    with Image.open(tmp_path / "new.png") as picture:
        page = np.asarray(picture.convert("RGB")).astype(int)
    expected = pixels if pixels.ndim == 3 else np.dstack([pixels] * 3)
    for left, panel in ((GAP, expected), (2 * GAP + 400, expected[::-1])):
        part = page[TITLE : TITLE + 300, left : left + 400]
        assert np.abs(part - panel).max() <= 1


def test_removed_is_the_difference_about_mid_grey(drawn: list[Figure]):
    clean = np.full((50, 60), 100, np.uint8)
    noisy = clean.copy()
    noisy[10, 20], noisy[30, 40] = 130, 70
    draw_denoising(noisy, clean, NOWHERE)
    _, _, removed = shown(drawn[0])
    assert removed[10, 20] > 0.5 > removed[30, 40]
    assert removed[0, 0] == 0.5
    assert [axes.get_title() for axes in drawn[0].axes][:2] == ["noisy", "denoised"]


def test_nothing_removed_is_grey_and_missing_pixels_are_too(drawn: list[Figure]):
    image = RNG.random((20, 20)).astype(np.float32)
    image[3, 4] = np.nan
    draw_denoising(image, image, NOWHERE)
    assert (shown(drawn[0])[2] == 0.5).all()
    assert shown(drawn[0])[0][3, 4] == 0.5
    draw_denoising(np.full((9, 9), np.nan), np.full((9, 9), np.nan), NOWHERE)


def test_large_images_are_shrunk_and_their_middle_is_shown(drawn: list[Figure]):
    pixels = RNG.integers(0, 256, (1500, 700), dtype=np.uint8)
    draw_side_by_side([Panel("a", pixels, 0, 255), Panel("b", pixels, 0, 255)], NOWHERE)
    small, _, middle, _ = shown(drawn[0])
    assert [axes.get_title() for axes in drawn[0].axes] == ["a, 1 : 3", "b, 1 : 3", "1 : 1", "1 : 1"]
    means = pixels[:, :699].reshape(500, 3, 233, 3).mean(axis=(1, 3)) / 255
    np.testing.assert_allclose(small, means, atol=1e-6)
    np.testing.assert_allclose(middle, pixels[430 : 430 + LARGEST_PANEL, 30 : 30 + LARGEST_PANEL] / 255, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (7, 7), (1, 2000), (2000, 1), (9, 8, 3), (641, 640, 3), (3, 5000, 3)])
def test_every_shape_can_be_drawn(tmp_path: Path, shape: tuple[int, ...]):
    pixels = RNG.integers(0, 65536, shape, dtype=np.uint16)
    draw_denoising(pixels, pixels, tmp_path / "new.png")
    with Image.open(tmp_path / "new.png") as picture:
        assert picture.width < 3 * (LARGEST_PANEL + GAP) + 2 * GAP
        assert picture.height < 2 * (LARGEST_PANEL + TITLE) + 2 * GAP


def test_contrast_is_that_of_the_type_or_of_what_occurs():
    assert contrast(np.array([[3, 9]], np.uint8)) == (0, 255)
    low, high = contrast(np.linspace(100, 4000, 10001).astype(np.uint16))
    assert 100 <= low < 110
    assert 3990 < high <= 4000
    assert contrast(np.full((3, 3), np.nan)) == (0, 1)


def test_images_of_different_sizes_are_refused():
    with pytest.raises(InvalidInputError, match="different sizes"):
        draw_side_by_side([Panel("a", np.zeros((3, 3)), 0, 1), Panel("b", np.zeros((3, 4)), 0, 1)], NOWHERE)
