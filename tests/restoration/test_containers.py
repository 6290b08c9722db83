"""Images come in lists, masked arrays and pictures of Pillow, and results go as they came."""

import numpy as np
import pytest
from PIL import Image

import heatprior as hp

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(np.tile(np.linspace(20, 120, 40), (32, 1)))  # int64
BYTES = np.clip(COUNTS, 0, 255).astype(np.uint8)
SETTINGS = {"quality": "fast"}
EXPECTED = hp.denoise(BYTES, 8, **SETTINGS)


def test_counts_of_python_and_of_64_bits_are_denoised_as_those_of_32():
    expected = hp.denoise(COUNTS.astype(np.int32), 8, **SETTINGS)
    for image in (COUNTS, COUNTS.tolist(), COUNTS.astype(np.uint64)):
        result = hp.denoise(image, 8, **SETTINGS)
        assert result.dtype == np.asarray(image).dtype
        np.testing.assert_array_equal(result, expected)
    with pytest.raises(hp.InvalidInputError, match="to 1099511627776; convert it to float64"):
        hp.denoise(np.where(COUNTS.max() == COUNTS, 2**40, COUNTS + 20), 8)


def test_floats_come_out_of_counts_on_request():
    floats = hp.denoise(COUNTS, 8, dtype=np.float32, **SETTINGS)
    whole = hp.denoise(COUNTS, 8, **SETTINGS)
    assert floats.dtype == np.float32
    assert not np.array_equal(floats, np.rint(floats))
    np.testing.assert_array_equal(np.rint(floats), whole)
    found = hp.denoise(BYTES, 8, dtype="float64", return_error=True, **SETTINGS)
    assert found.pixels.dtype == np.float64
    with pytest.raises(hp.InvalidInputError, match="dtype is 'colour'; expected uint8"):
        hp.denoise(BYTES, 8, dtype="colour")


def test_masked_pixels_have_no_influence_and_are_masked_again():
    mask = np.zeros(BYTES.shape, bool)
    mask[10:13, 20:24] = True
    spoilt = np.ma.array(np.where(mask, 255, BYTES).astype(np.uint8), mask=mask)
    result = hp.denoise(spoilt, 8, **SETTINGS)
    assert isinstance(result, np.ma.MaskedArray)
    assert result.dtype == np.uint8
    np.testing.assert_array_equal(result.mask, mask)
    other = np.ma.array(np.where(mask, 0, BYTES).astype(np.uint8), mask=mask)
    np.testing.assert_array_equal(result.compressed(), hp.denoise(other, 8, **SETTINGS).compressed())


def test_pictures_of_pillow_come_back_as_such_colours_found():
    grey = hp.denoise(Image.fromarray(BYTES), 8, **SETTINGS)
    assert isinstance(grey, Image.Image)
    np.testing.assert_array_equal(np.asarray(grey), EXPECTED)
    colours = np.dstack([BYTES, BYTES[::-1], BYTES[:, ::-1]])
    result = hp.denoise(Image.fromarray(colours), 8, **SETTINGS)
    assert result.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(result), hp.denoise(colours, 8, channel_axis=-1, **SETTINGS))
    assert hp.estimate_noise(Image.fromarray(colours)).sigma.shape == colours.shape
    with pytest.raises(hp.InvalidInputError, match=r"of mode 'P'; convert it, as by image\.convert"):
        hp.denoise(Image.fromarray(BYTES).convert("P"), 8)


@pytest.mark.parametrize("function", [hp.estimate_noise, hp.estimate_sigma, lambda path: hp.surprise(path, 8)])
def test_a_path_is_told_what_to_do_everywhere(function):
    with pytest.raises(hp.InvalidInputError, match=r"is a path, 'photo\.png'; read it first"):
        function("photo.png")


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64])
def test_floats_become_integers_on_request_but_missing_ones_cannot(dtype):
    floats = BYTES.astype(np.float64) * 1.001
    result = hp.denoise(floats, 8, white=255.0, dtype=dtype, **SETTINGS)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, np.rint(hp.denoise(floats, 8, white=255.0, **SETTINGS)))
    floats[3, 4] = np.nan
    with pytest.raises(hp.InvalidInputError, match="pixels are missing, which "):
        hp.denoise(floats, 8, dtype=dtype, **SETTINGS)


@pytest.mark.parametrize("image", [COUNTS, COUNTS.astype(np.int8), BYTES])
@pytest.mark.parametrize("dtype", [None, np.uint8, np.float16])
def test_errors_come_with_integers_of_any_length_and_their_probe_is_not_rounded(image, dtype):
    found = hp.denoise(image, 8, return_error=True, white=255.0, dtype=dtype, **SETTINGS)
    assert found.pixels.dtype == (image.dtype if dtype is None else dtype)
    exact = hp.denoise(image, 8, return_error=True, white=255.0, dtype=np.float32, **SETTINGS)
    np.testing.assert_array_equal(found.error, exact.error)


@pytest.mark.filterwarnings("ignore:no noise found")
def test_what_is_unchanged_is_clipped_to_the_type_that_is_asked_for():
    ramp = np.tile(np.linspace(-500, 900, 64).round().astype(np.int32), (64, 1))
    np.testing.assert_array_equal(hp.denoise(ramp, dtype=np.uint8), ramp.clip(0, 255))
    rgba = np.dstack([ramp.clip(0)] * 3 + [np.full_like(ramp, 65535)])
    assert (hp.denoise(rgba, dtype=np.uint8, channel_axis=-1)[..., 3] == 255).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.float64])
@pytest.mark.filterwarnings("ignore:no noise found")
def test_masked_pixels_keep_their_values_and_a_masked_result_the_type_that_is_asked_for(dtype):
    ramp = np.tile(np.linspace(20, 220, 64).round(), (64, 1)).astype(dtype)
    masked = np.ma.array(ramp, mask=ramp > 200)
    found = hp.denoise(masked)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.data, ramp)
    floats = hp.denoise(masked, 8, dtype=np.float32, **SETTINGS)
    assert floats.dtype == np.float32
    np.testing.assert_array_equal(floats.mask, masked.mask)


def test_masks_in_a_list_count():
    mask = BYTES.mean() < BYTES
    slices = [np.ma.array(BYTES, mask=mask)] * 2
    np.testing.assert_array_equal(hp.denoise(slices, 8, **SETTINGS).mask, [mask, mask])


def test_a_picture_has_no_other_type():
    with pytest.raises(hp.InvalidInputError, match=r"give np\.asarray\(picture\)"):
        hp.denoise(Image.fromarray(np.dstack([BYTES] * 3)), 8, dtype=np.float32)
