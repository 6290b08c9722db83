"""Hot and dead pixels: found, counted and filled in; and what only looks like them stays."""

import numpy as np
import pytest
from skimage import data

import heatprior as hp
from heatprior.border.entry import enter
from heatprior.noise.defects import NO_DEFECTS, Defects, holds_mosaic, join_mosaic, mend, split_mosaic

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
    photo = as_bytes(0.6 * data.astronaut()[:128, :160] + 8.0 * np.random.default_rng(1).standard_normal((128, 160, 3)))
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


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


@pytest.mark.parametrize("transposed", [False, True])
def test_dead_lines_are_filled_in_from_both_sides(transposed):
    spoilt = NOISY.copy()
    spoilt[:, 30] = 0
    spoilt[:, 120:122] = 255
    entered, defects = mend(enter(spoilt.T if transposed else spoilt))
    assert (defects.rows, defects.columns) == ((3, 0) if transposed else (0, 3))
    mended = (entered.pixels.T if transposed else entered.pixels).astype(float)
    np.testing.assert_allclose(mended[:, 30], (NOISY[:, 29].astype(float) + NOISY[:, 31]) / 2, atol=0.51)
    assert rms(mended[:, 120:122] - CLEAN[:, 120:122]) < 3 * SIGMA
    assert str(Defects(columns=1, rows=2)) == "1 dead column and 2 dead rows"


COLUMNS = np.arange(SHAPE[1])
OFFSETS = np.random.default_rng(3).standard_normal(SHAPE[1])


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("part", [0.5, 1.0])
def test_offsets_of_columns_or_rows_are_removed(part, transposed):
    offsets = part * SIGMA * OFFSETS
    striped = (CLEAN + SIGMA * NOISE + offsets).astype(np.float32)
    entered, defects = mend(enter(striped.T if transposed else striped))
    assert defects == Defects(stripes=1)
    left = (entered.pixels.T if transposed else entered.pixels) - CLEAN - SIGMA * NOISE
    assert rms(left) < 0.6 * rms(offsets)  # what varies slowly from column to column may be the picture's
    result, other = (hp.denoise(striped, SIGMA, quality="fast", keep_outliers=kept) for kept in (False, True))
    assert error(result) < 0.9 * error(other)
    assert defects.describe_mending() == "stripes removed"


def in_noise(pattern, sigma=5.0):
    return (pattern * np.ones((SHAPE[0], 1)) + sigma * np.random.default_rng(4).standard_normal(SHAPE)).astype(
        np.float32
    )


def with_column(image, value):
    spoilt = image.copy()
    spoilt[:, 50] = value
    return spoilt


NO_LINES = {
    "drawn line": with_column(np.full(SHAPE, 200, np.uint8), 0),
    "line in noise": as_bytes(with_column(np.full(SHAPE, 200.0), 20.0) + 5 * NOISE),
    "frame": np.pad(NOISY[1:-1, 1:-1], 1),
    "letterbox": np.pad(NOISY[:, 20:-20], ((0, 0), (20, 20))),
    "wide bar": as_bytes(np.where(np.abs(COLUMNS - 90) < 3, 0, NOISY)),
    "short line": np.where((COLUMNS == 90) & (np.arange(SHAPE[0]) < 150)[:, None], 0, NOISY).astype(np.uint8),
    "edge": in_noise(np.where(COLUMNS < 100, 50, 150)),
    "blinds": in_noise(np.where(COLUMNS // 7 % 2, 50, 150)),
    "weak blinds": in_noise(np.where(COLUMNS // 7 % 2, 100, 105)),
    "lines": in_noise(np.where(np.isin(COLUMNS, [20, 77, 78, 130, 201]), 180, 100)),
    "grating": in_noise(100 + 10 * np.sin(2 * np.pi * COLUMNS / 9.3)),
    "fine grating": in_noise(100 + 5 * np.sin(2 * np.pi * COLUMNS / 2.7)),
    "slow grating": in_noise(100 + 10 * np.sin(2 * np.pi * COLUMNS / 40)),
    "bricks": data.brick()[:192, :256],
    "bar code": in_noise(np.where(OFFSETS > 0, 200, 50)),
}


@pytest.mark.parametrize("name", NO_LINES)
def test_lines_of_the_picture_stay(name):
    for image in (NO_LINES[name], NO_LINES[name].T):
        assert found_in(image)[2:] == (0, 0, 0, 0)


COLOURS = data.astronaut()[:161, :181].astype(np.float64)
PATTERNS = {"RGGB": (0, 1, 1, 2), "BGGR": (2, 1, 1, 0), "GRBG": (1, 0, 2, 1), "GBRG": (1, 2, 0, 1)}


def mosaic_of(colours, pattern):
    found = np.empty(colours.shape[:2])
    for place, colour in enumerate(PATTERNS[pattern]):
        phase = (slice(place // 2, None, 2), slice(place % 2, None, 2))
        found[phase] = colours[(*phase, colour)]
    return found


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_mosaic_is_recognised_and_halves_come_back_as_they_were(pattern):
    clean = mosaic_of(COLOURS, pattern)
    noisy = as_bytes(clean + SIGMA * np.random.default_rng(5).standard_normal(clean.shape))
    assert holds_mosaic(enter(noisy))
    np.testing.assert_array_equal(join_mosaic(split_mosaic(noisy), noisy.shape), noisy)
    gappy = noisy.astype(np.float32)
    gappy[50:80, 60:90] = np.nan
    assert holds_mosaic(enter(gappy))
    gappy[::7] = np.nan
    assert not holds_mosaic(enter(gappy))  # nothing is left to tell it from
    grey = as_bytes(COLOURS.mean(axis=-1) + SIGMA * np.random.default_rng(5).standard_normal(clean.shape))
    assert not holds_mosaic(enter(grey))


@pytest.mark.parametrize("sigma", [None, SIGMA, "map"])
def test_a_mosaic_is_denoised_colour_by_colour(sigma):
    clean = mosaic_of(COLOURS, "RGGB")
    noisy = as_bytes(clean + SIGMA * np.random.default_rng(5).standard_normal(clean.shape))
    level = np.full(clean.shape, SIGMA) if sigma == "map" else sigma
    result = hp.denoise(noisy, level, quality="fast")
    assert result.shape == noisy.shape
    assert rms(result - clean) < 0.85 * rms(noisy - clean)
    if sigma == SIGMA:
        found = hp.denoise(noisy, level, quality="fast", return_error=True)
        np.testing.assert_array_equal(found.pixels, result)
        assert found.error.shape == noisy.shape
    if sigma is None:
        report = hp.estimate_noise(noisy)
        assert (report.defects.mosaic, report.sigma.shape, len(report.channels)) == (1, noisy.shape, 1)
        assert str(report).endswith("Bayer mosaic")


@pytest.mark.parametrize("name", ["checkerboard", "noisy checkerboard", "photograph", "white noise", "text", "stars"])
def test_other_images_are_no_mosaics(name):
    assert not holds_mosaic(enter(NOT_DEFECTS[name]))


@pytest.mark.parametrize("name", ["brick", "grass", "gravel"])
def test_fine_textures_are_no_mosaics(name):
    assert not holds_mosaic(enter(getattr(data, name)()))


ALONG = np.add.outer(np.arange(96.0), np.arange(128.0))
SLOPES = {
    "plane": ALONG,
    "falling": ALONG[::-1],
    "bytes": as_bytes(ALONG),
    "noisy": ALONG + 0.3 * np.random.default_rng(6).standard_normal(ALONG.shape),
    "wave": np.sin(ALONG / 9),
    "steps": np.rint(ALONG / 7),
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_are_no_mosaics_but_a_mosaic_on_a_slope_is_one(name):
    """From pixel to pixel they change alike along rows and columns, as a mosaic does, but nothing alternates."""
    slope = SLOPES[name].astype(np.float64)
    assert not holds_mosaic(enter(slope))
    red_less_blue = np.tile([[1.0, 0.0], [0.0, -1.0]], (48, 64))
    assert holds_mosaic(enter(slope + np.ptp(slope) / 20 * red_less_blue))
