"""The scale of grey levels: found from the range where the type does not tell it, and left alone where it does."""

import numpy as np
import pytest
from skimage import data
from synthetic import landscape

import heatprior as hp
from heatprior.border.scale import full_scale
from heatprior.data.trials import psnr

RNG = np.random.default_rng(0)
CLEAN = landscape((72, 80), RNG)
SIGMA = 0.1
NOISY = CLEAN + SIGMA * RNG.standard_normal(CLEAN.shape)


def photograph():
    """Of 96×96 pixels, and the same with noise: a draw in which no two shapes explain a patch equally well.

    Rounding would tip the choice between them, as it did for seeds 2 and 3.
    """
    clean = data.camera()[100:196, 180:276] / 255.0
    return clean, clean + SIGMA * np.random.default_rng(4).standard_normal(clean.shape)


@pytest.mark.parametrize("told", [True, False])
def test_a_factor_changes_nothing_but_the_units(told):
    clean, noisy = photograph()
    usual = psnr(hp.denoise(noisy, SIGMA if told else None), clean)
    at_100 = hp.denoise(100.0 * noisy, 100.0 * SIGMA if told else None) / 100.0
    for factor in (1e-6, 0.8, 1.3, 7.0, 1e5):
        found = hp.denoise(factor * noisy, factor * SIGMA if told else None) / factor
        assert abs(psnr(found, clean) - usual) < (0.05 if told else 0.1)  # the estimate depends on the scale, too
        if abs(np.log(factor)) > 1.0:  # beyond where the full scale of the type stays
            np.testing.assert_allclose(found, at_100, atol=2e-5)  # of float32, twice rounded
    wrong = hp.denoise(noisy, SIGMA if told else None, white=30.0)
    assert psnr(wrong, clean) < usual - 0.3  # the control


@pytest.mark.parametrize(("kind", "peak"), [("uint16", 60000), ("uint16", 700), ("int16", 700), ("uint32", 10**6)])
def test_integers_of_any_type_and_brightness_are_denoised_alike(kind, peak):
    clean, noisy = photograph()
    noisy = noisy.clip(0, 1.2)
    image = np.rint(peak * noisy / 1.2).astype(kind)
    found = psnr(hp.denoise(image, SIGMA * peak / 1.2) * 1.2 / peak, clean)
    assert abs(found - psnr(hp.denoise(noisy, SIGMA), clean)) < 0.05  # rounding included
    assert full_scale(None, image, None) == pytest.approx(peak / 1.2, rel=0.5)


def test_dim_images_of_8_bits_are_scaled_and_bright_ones_keep_255():
    dim, bright = ((NOISY.clip(0, 1) * peak).astype(np.uint8) for peak in (60, 255))
    assert full_scale(None, bright, None) == 255.0
    assert full_scale(None, dim, None) == pytest.approx(60.0, rel=0.5)
    assert full_scale(3.0, NOISY, None) == 3.0
    sixteen = (NOISY.clip(0, 1) * 65535).astype(np.uint16)
    assert (full_scale(None, NOISY, None), full_scale(None, sixteen, None)) == (1.0, 65535.0)


def test_the_scale_does_not_depend_on_what_is_told_of_the_noise():
    scales = {full_scale(None, 10.0 * NOISY, None, told) for told in (0.0, 1.0, 0.2)}
    assert len(scales) == 1
    assert scales.pop() != 1.0
    assert full_scale(None, NOISY, None, 25.0) == 1.0  # of 8 bits, by mistake: as the type says, and refused
    with pytest.raises(hp.InvalidInputError, match="give sigma in the units of the image"):
        hp.denoise(NOISY, 25.0)


def test_nothing_but_noise_has_a_scale_and_one_value_too():
    flat = 500.0 + 5.0 * RNG.standard_normal((72, 80))
    assert 5.0 < full_scale(None, flat, None) < 100.0
    assert np.std(hp.denoise(flat, prior="patch7", steps=1)) < 2.0
    assert full_scale(None, np.full((72, 80), 500.0), None) == 500.0
    assert full_scale(None, np.full((72, 80), 0.5), None) == 1.0


def test_transparency_does_not_count():
    colours = np.repeat(300.0 * NOISY[..., None], 3, axis=-1)
    alpha = np.where(np.arange(80) < 70, 65535.0, 0.0) * np.ones((72, 1))
    found = full_scale(None, np.concatenate([colours, alpha[..., None]], axis=-1), -1)
    assert found == full_scale(None, colours, -1)
    assert found < 1000.0


def test_a_stand_in_for_missing_pixels_is_refused():
    image = 1000.0 * NOISY
    image[3, 4] = 1e20
    with pytest.raises(hp.InvalidInputError, match="set values that stand for missing pixels to NaN"):
        hp.denoise(image, 100.0)


def test_an_image_with_less_in_it_than_the_noise_that_is_told_keeps_the_scale_of_its_type():
    flat = (0.5 + 0.01 * CLEAN).astype(np.float32)  # no noise at all
    assert full_scale(None, flat, None, SIGMA) == 1.0
    assert full_scale(None, flat, None, 1e-4) < 0.1  # the control: told what it has, its scale is found


@pytest.mark.parametrize("period", [2, 4])
def test_a_fine_pattern_has_the_range_of_its_pixels(period):
    """Means over cells see nothing of a checkerboard, which was refused for noise beyond full scale."""
    rows, columns = np.indices((72, 80)) // (period // 2)
    board = ((rows + columns) % 2).astype(float)
    noisy = board + 0.02 * RNG.standard_normal(board.shape)
    assert full_scale(None, noisy, None) == 1.0
    assert np.std(hp.denoise(noisy, 0.02) - board) < 0.05  # a prior of photographs knows no such pattern: 0.046
    assert np.std(hp.denoise(noisy, 0.02, quality="best") - board) < 0.02  # fitted to it, the prior does


def test_one_missing_pixel_changes_nothing():
    counts = 700.0 * NOISY
    holed = counts.copy()
    holed[5, 6] = np.nan
    assert full_scale(None, holed, None) == pytest.approx(full_scale(None, counts, None), rel=0.02)
