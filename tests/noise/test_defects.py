"""Hot and dead pixels: found, counted and filled in; and what only looks like them stays."""

import numpy as np
import pytest
from skimage import data

import heatprior as hp
from heatprior.border.entry import enter
from heatprior.noise.defects import NO_DEFECTS, Defects, mend

RNG = np.random.default_rng(0)
SHAPE = (192, 256)
CLEAN = data.camera()[100 : 100 + SHAPE[0], 100 : 100 + SHAPE[1]].astype(np.float64)
NOISE = RNG.standard_normal(SHAPE)
PLACES = RNG.choice(np.flatnonzero(CLEAN < 100), 13, replace=False)  # as many as 43 of 160,000, where they show
SIGMA = 10.0


def as_bytes(values):
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


NOISY = as_bytes(CLEAN + SIGMA * NOISE)


def with_hot(image, value=255, places=PLACES):
    spoilt = image.copy()
    spoilt.reshape(-1)[places] = value
    return spoilt


def error(image):
    return float(np.sqrt(np.mean(np.square(image.astype(np.float64) - CLEAN))))


def found_in(image, **known):
    return mend(enter(image, **known))[1]


@pytest.mark.parametrize("sigma", [None, SIGMA])
def test_hot_pixels_hardly_change_the_error_of_the_result(sigma):
    spoilt = with_hot(NOISY)
    without = error(hp.denoise(NOISY, sigma, quality="fast"))
    assert error(hp.denoise(spoilt, sigma, quality="fast")) < 1.03 * without
    assert error(hp.denoise(spoilt, sigma, quality="fast", keep_outliers=True)) > 1.1 * without  # that they do matter


@pytest.mark.parametrize("value", [1e3, 1e5, -1e4])
@pytest.mark.parametrize("known", [{}, {"white": 255.0}])
def test_one_outlier_changes_the_pixel_itself_and_no_neighbour(value, known):
    noisy = CLEAN + SIGMA * NOISE
    spoilt = noisy.copy()
    spoilt[90, 100] = value
    result, other = (hp.denoise(image, SIGMA, quality="fast", **known) for image in (spoilt, noisy))
    np.testing.assert_allclose(result, other, atol=0.6 * SIGMA)  # all that one noisy pixel tells of
    assert np.count_nonzero(np.abs(result - other) > 0.02 * SIGMA) < 200  # nor is full scale another
    kept = hp.denoise(spoilt, SIGMA, quality="fast", white=255.0, keep_outliers=True)
    assert np.abs(kept - other).max() > 5 * SIGMA


@pytest.mark.parametrize(
    "image",
    [
        with_hot(NOISY),
        with_hot(NOISY.astype(np.uint16) * 16, 4095),
        with_hot((NOISY / 255).astype(np.float32), 2.0),
        with_hot(NOISY.astype(np.float64) * 1e-12, 1e-9),
    ],
    ids=["8 bits", "16 bits", "float32", "tiny float64"],
)
def test_types_and_units_do_not_matter(image):
    entered, defects = mend(enter(image))
    assert defects.hot >= 10
    assert defects.dead == 0
    assert entered.pixels.dtype == image.dtype
    changed = np.flatnonzero(entered.pixels != image)
    assert set(changed) <= set(PLACES)
    assert len(changed) == defects.hot


def test_dead_pixels_are_told_from_hot_ones():
    bright = as_bytes(130 + 0.1 * CLEAN + 4 * NOISE)
    spoilt = with_hot(with_hot(bright, 255, PLACES[:4]), 0, PLACES[4:9])
    assert found_in(spoilt) == Defects(hot=4, dead=5)
    assert str(Defects(4, 5)) == "4 hot and 5 dead pixels"
    assert Defects(1).describe_mending() == "1 hot pixel filled in"
    assert str(NO_DEFECTS) == ""
    assert not NO_DEFECTS


def test_a_hot_pixel_of_one_colour_leaves_the_others_as_they_are():
    photo = as_bytes(data.astronaut()[:128, :160] + 8.0 * np.random.default_rng(1).standard_normal((128, 160, 3)))
    spoilt = photo.copy()
    spoilt[40, 130, 1] = spoilt[80, 20, 2] = 255
    before = found_in(photo, channel_axis=-1)
    entered, after = mend(enter(spoilt, channel_axis=-1))
    assert (before.hot, after.hot) == (0, 2)
    assert set(zip(*np.nonzero(entered.pixels != spoilt), strict=True)) == {(40, 130, 1), (80, 20, 2)}


def test_every_image_of_a_stack_is_mended_and_gaps_stay_gaps():
    stack = np.stack([NOISY, with_hot(NOISY)]).astype(np.float32)
    stack[:, 20:30, 20:30] = np.nan
    entered, defects = mend(enter(stack))
    assert defects.hot >= 9
    np.testing.assert_array_equal(entered.pixels[0], stack[0])
    np.testing.assert_array_equal(np.isnan(entered.pixels), np.isnan(stack))
    assert np.isnan(hp.denoise(stack, SIGMA, quality="fast")[:, 25, 25]).all()


def test_the_report_and_the_result_tell_of_the_same_pixels():
    spoilt = with_hot(NOISY)
    report = hp.estimate_noise(spoilt)
    assert report.defects == found_in(spoilt)
    assert str(report).endswith(f"; {report.defects.hot} hot pixels")
    assert not hp.estimate_noise(spoilt, keep_outliers=True).defects
    with_error = hp.denoise(spoilt, SIGMA, quality="fast", return_error=True)
    assert with_error.defects == report.defects
    np.testing.assert_allclose(hp.estimate_sigma(spoilt).sigma, hp.estimate_sigma(NOISY).sigma, rtol=0.01)


def stars(width, rng):
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
    sky = 100.0 + 5.0 * rng.standard_normal(SHAPE)
    for _ in range(60):
        row, column = rng.uniform(5, SHAPE[0] - 5), rng.uniform(5, SHAPE[1] - 5)
        distance = (rows - row) ** 2 + (columns - column) ** 2
        sky += rng.uniform(100, 3000) * np.exp(-distance / (2 * width**2))
    return sky.astype(np.float32)


def checkerboard(side):
    rows, columns = np.indices(SHAPE) // side
    return np.where((rows + columns) % 2, 200.0, 50.0)


NOT_DEFECTS = {
    "photograph": data.camera()[:256, :256],
    "photograph in noise": NOISY,
    "colours": data.astronaut()[:256, :256],
    "text": data.page(),
    "letters": data.text(),
    "white noise": RNG.standard_normal(SHAPE),
    "strong noise": as_bytes(CLEAN + 50 * NOISE),
    "one value": np.full(SHAPE, 7, np.uint8),
    "one dot": np.pad(np.full((1, 1), 255, np.uint8), 40),
    "checkerboard": as_bytes(checkerboard(1)),
    "noisy checkerboard": as_bytes(checkerboard(1) + 5 * NOISE),
    "larger checkerboard": as_bytes(checkerboard(8) + 5 * NOISE),
    "sharp stars": stars(0.65, RNG),
    "stars": stars(1.2, RNG),
    "missing": np.full((20, 20), np.nan, np.float32),
    "tiny": np.ones((3, 3), np.uint8),
    **{f"{peak} photons": RNG.poisson(CLEAN / 255 * peak).astype(np.uint16) for peak in (0.1, 1, 2, 5, 20)},
    **{f"{peak} photons read": RNG.poisson(CLEAN / 255 * peak) * 10 + 2 * NOISE for peak in (0.3, 1, 3)},
}


@pytest.mark.parametrize("name", NOT_DEFECTS)
def test_what_is_no_defect_stays(name):
    image = NOT_DEFECTS[name]
    assert found_in(image, channel_axis=-1 if image.ndim == 3 else None) == NO_DEFECTS


def test_a_star_of_one_pixel_is_kept_if_asked_for():
    sky = (100.0 + 5.0 * NOISE).astype(np.float32)
    sky[60, 70] = 3000.0
    assert hp.denoise(sky, 5.0, quality="fast")[60, 70] < 130.0
    assert hp.denoise(sky, 5.0, quality="fast", keep_outliers=True)[60, 70] > 200.0
