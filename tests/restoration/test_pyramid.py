"""Several scales by short filters: a window has the bits of the whole, and the filters are what they should be."""

from dataclasses import replace

import numpy as np
import pytest
from pieces_of_images import noise_in, pieces
from scipy.fft import dctn, idctn

from examples import gaussian_mixture, patch_prior, with_learnt_step
from heatprior.errors import InvalidInputError, PriorFileError
from heatprior.noise_value import Noise
from heatprior.priors import mixture_step
from heatprior.restoration import pyramid
from heatprior.restoration.pipeline import Pipeline, halve_shape
from heatprior.restoration.pyramid import (
    NOISE_FACTOR,
    TAPS,
    Crossover,
    Merging,
    crossover_at,
    crossover_filter,
    crossover_table,
    double,
    halve,
    of_halving,
    sources,
)
from heatprior.zoo import load
from paper.weights.handmade import dct_prior

RNG = np.random.default_rng(0)
SHAPE = (171, 390)
BETWEEN = {"crossover_between": {"sigmas": [0.1], "edges": [0.4], "widths": [0.1], "heights": [0.7]}}


PRIORS = {
    "patch": lambda: patch_prior(3, 8, 5),
    "coarse to fine": lambda: replace(dct_prior(5), card=BETWEEN),
    "mixture": lambda: gaussian_mixture(4, 3, (0.3, 1.5)),
}


def everything(shape):
    return slice(0, shape[0]), slice(0, shape[1])


half_of = halve_shape


def smooth(shape):
    rows, columns = (np.linspace(0, 5, length) for length in shape)
    return (0.5 + 0.2 * np.sin(rows)[:, None] * np.cos(2 * columns)).astype(np.float32)


def noisy(shape):
    image = smooth(shape) + RNG.normal(0, 0.1, shape).astype(np.float32)
    image[20:60, 150:260] = np.nan  # wider than is filled
    image[RNG.random(shape) < 0.01] = np.nan
    return image


def in_pieces(pipeline, image, levels, rows, columns):
    result = np.empty(image.shape, np.float32)
    for wanted in pieces(image.shape, rows, columns):
        here = pipeline.reads(wanted)
        result[wanted] = pipeline.denoise(image[here], noise_in(levels, here), wanted)
    return np.where(np.isnan(image), np.nan, result)


@pytest.fixture
def small_cells(monkeypatch):
    """Cells of a few columns, so that a small image has several."""
    monkeypatch.setattr(mixture_step, "TILE", 24)


@pytest.mark.usefixtures("small_cells")
@pytest.mark.parametrize("kind", PRIORS)
@pytest.mark.parametrize(("scales", "is_map"), [(2, True), (3, False)], ids=["map", "level"])
def test_pieces_have_the_bits_of_the_whole(kind, scales, is_map):
    image, prior = noisy(SHAPE), PRIORS[kind]()
    levels = RNG.uniform(0.05, 0.15, SHAPE).astype(np.float32) if is_map else None
    pipeline = Pipeline(prior, SHAPE, fillings=1, most_scales=scales)
    assert len(pipeline.scales) == scales
    whole = in_pieces(pipeline, image, levels, *SHAPE)
    for block in ((50, 390), (100, 131)):
        found = in_pieces(pipeline, image, levels, *block)
        if kind == "mixture" and is_map:  # the last bit of a few pixels was seen to differ, even from run to run
            np.testing.assert_allclose(found, whole, atol=1e-6)
        else:
            np.testing.assert_array_equal(found, whole)


@pytest.mark.usefixtures("small_cells")
def test_pieces_that_read_a_part_of_the_image_have_the_bits_of_the_whole():
    shape = (601, 903)
    prior = replace(gaussian_mixture(4, 3, (0.3, 1.5)), card=BETWEEN)
    pipeline = Pipeline(with_learnt_step(prior, candidates=2), shape, fillings=0, most_scales=2)
    image = smooth(shape) + RNG.normal(0, 0.1, shape).astype(np.float32)
    whole = pipeline.denoise(image, noise_in(None, everything(shape)), everything(shape))
    for wanted in ((slice(300, 340), slice(400, 460)), (slice(0, 30), slice(860, 903))):
        here = pipeline.reads(wanted)
        assert image[here].size < image.size / 2
        found = pipeline.denoise(image[here], noise_in(None, here), wanted)
        np.testing.assert_array_equal(found, whole[wanted])


@pytest.mark.usefixtures("small_cells")
@pytest.mark.parametrize("is_map", [False, True], ids=["level", "map"])
def test_pieces_of_a_colour_have_the_bits_of_the_whole(is_map):
    """Differences are denoised beside the brightness, which has to be right wherever they look at it."""
    shape = (201, 643)
    prior = with_learnt_step(replace(gaussian_mixture(4, 3, (0.3, 1.5)), card=BETWEEN), candidates=2)
    pipeline = Pipeline(prior, shape, most_scales=2, in_colour=True)
    planes = [smooth(shape) + RNG.normal(0, 0.1, shape).astype(np.float32) for _ in range(3)]
    levels = RNG.uniform(0.05, 0.15, shape).astype(np.float32) if is_map else None
    whole = pipeline.denoise_planes(planes, [noise_in(levels, everything(shape))] * 3)
    for wanted in ((slice(150, 170), slice(20, 50)), (slice(0, 30), slice(600, 643))):
        here = pipeline.reads(wanted)
        assert planes[0][here].size < planes[0].size
        found = pipeline.denoise_planes([plane[here] for plane in planes], [noise_in(levels, here)] * 3, wanted=wanted)
        for one, other in zip(found, whole, strict=True):
            np.testing.assert_allclose(one, other[wanted], atol=1e-6 if is_map else 0.0)  # as above
    alone = pipeline.denoise(planes[1], noise_in(levels, everything(shape)))
    assert np.abs(alone - whole[1]).max() > 1e-3  # without the brightness


def test_a_height_of_nothing_merges_nothing():
    prior = replace(dct_prior(5), card={"crossover_between": {**BETWEEN["crossover_between"], "heights": [0.0]}})
    image = noisy(SHAPE)
    one, other = (
        in_pieces(Pipeline(each, SHAPE, fillings=1, most_scales=2), image, None, *SHAPE)
        for each in (prior, replace(prior, card={}))
    )
    inside = (slice(20, -20),) * 2  # at the edges it is mirrored anew
    np.testing.assert_allclose(one[inside], other[inside], atol=1e-6)


def test_between_the_steps_the_coarse_scale_changes_the_result():
    image = noisy(SHAPE)
    ways = [Pipeline(prior, SHAPE, fillings=1, most_scales=2) for prior in (dct_prior(5), PRIORS["coarse to fine"]())]
    one, other = (in_pieces(pipeline, image, None, *SHAPE) for pipeline in ways)
    assert np.nanmax(np.abs(one - other)) > 1e-3


def test_no_more_is_read_than_the_scales_reach():
    shape, wanted = (60000, 60000), (slice(30000, 31000), slice(30000, 46000))
    reads = [Pipeline(load("fast7"), shape, fillings=0, most_scales=scales).reads(wanted) for scales in (1, 2, 3)]
    margins = [max(30000 - rows.start, rows.stop - 31000) for rows, _ in reads]
    assert margins[0] < margins[1] < margins[2] < 600


def test_a_piece_that_takes_itself_for_the_whole_differs():
    image, prior = smooth(SHAPE) + RNG.normal(0, 0.1, SHAPE).astype(np.float32), PRIORS["patch"]()
    whole = in_pieces(Pipeline(prior, SHAPE, fillings=0, most_scales=2), image, None, *SHAPE)
    alone = in_pieces(Pipeline(prior, (171, 96), fillings=0, most_scales=2), image[:, :96], None, 171, 96)
    assert not np.array_equal(alone, whole[:, :96])


def test_as_many_scales_as_an_image_holds():
    prior = PRIORS["patch"]()  # of 3×3 pixels
    assert len(Pipeline(prior, (20, 500), most_scales=3).scales) == 1
    assert len(Pipeline(prior, (48, 500), fillings=0, most_scales=9).scales) == 3


def test_priors_of_whole_images_are_refused():
    with pytest.raises(InvalidInputError, match="whole image at once"):
        Pipeline(load("wavelet-density"), (64, 64), fillings=0, most_scales=2).reads((slice(0, 8), slice(0, 8)))


def test_noise_stays_white_when_it_is_halve():
    for lag in (2, 4, 6, 8):
        assert abs(TAPS[lag:] @ TAPS[:-lag]) < 3e-3 * NOISE_FACTOR  # what the ends that are cut off would add
    noise = RNG.standard_normal((600, 500)).astype(np.float32)
    small = halve(noise, everything(noise.shape), everything((300, 250)), noise.shape)
    assert small.std() == pytest.approx(NOISE_FACTOR, rel=0.02)  # 75,000 pixels: 0.3 %
    assert abs(NOISE_FACTOR - 0.5) < 0.01  # that of the exact halving


def test_doubling_is_the_transpose_of_halving():
    shape = (40, 46)
    half = half_of(shape)
    fine = np.zeros(shape, np.float32)
    fine[14:26, 14:32] = RNG.normal(size=(12, 18))  # nothing is mirrored
    coarse = np.zeros(half, np.float32)
    coarse[8:12, 8:14] = RNG.normal(size=(4, 6))
    one = float((halve(fine, everything(shape), everything(half), shape) * coarse).sum())
    two = float((fine * double(coarse, everything(half), everything(shape), half)).sum()) / 4.0
    assert one == pytest.approx(two, rel=1e-4)


@pytest.mark.parametrize("shape", [(60, 80), (61, 83)])
def test_constants_stay_as_they_are(shape):
    half = half_of(shape)
    fine = np.full(shape, 0.7, np.float32)
    coarse = halve(fine, everything(shape), everything(half), shape)
    np.testing.assert_allclose(coarse, 0.7, rtol=1e-6)
    np.testing.assert_allclose(double(coarse, everything(half), everything(shape), half), 0.7, rtol=1e-6)


def test_the_crossover_is_cut_off_where_hardly_anything_is_left():
    for crossover in (Crossover(), Crossover(0.48, 0.088), Crossover(0.9, 0.22)):
        weights = crossover_filter(crossover)
        assert np.abs(weights[0]).sum() < 2e-3 * np.abs(weights).sum()
        assert weights.sum() == pytest.approx(1.0 / (1.0 + np.exp(-crossover.edge / crossover.width)))


def exact_half(image):
    """By cropping the cosine transform, which keeps low frequencies and white noise as they are."""
    height, width = half_of(image.shape)
    low = dctn(image, norm="ortho")[:height, :width]
    return idctn(low, norm="ortho") * np.sqrt(height * width / image.size)


def test_halving_is_nearly_that_by_exact_transforms_on_smooth_images():
    shape = (120, 160)
    image = smooth(shape)
    small = halve(image, everything(shape), everything(half_of(shape)), shape)
    np.testing.assert_allclose(small, exact_half(image), atol=1e-3)
    means = image.reshape(60, 2, 80, 2).mean(axis=(1, 3))
    assert np.abs(means - exact_half(image)).max() > np.abs(small - exact_half(image)).max()


def test_low_frequencies_are_those_of_the_coarse_image_and_high_ones_of_the_fine_one():
    shape = (128, 192)
    fine, other = (RNG.standard_normal(shape).astype(np.float32) for _ in range(2))
    half, here = half_of(shape), everything(shape)
    coarse = halve(other, here, everything(half), shape)
    merged = Merging(shape, half, Crossover(), coarse, everything(half)).merge(fine, here, here)
    spectrum, expected, mine = (dctn(x, norm="ortho") for x in (merged, other, fine))
    frequency = np.hypot((np.arange(shape[0]) / half[0])[:, None], np.arange(shape[1]) / half[1])
    low, high = frequency < 0.15, frequency > 1.2
    assert np.abs(spectrum - expected)[low].mean() < 0.1 * np.abs(mine - expected)[low].mean()
    assert np.abs(spectrum - mine)[high].mean() < 0.02 * np.abs(expected - mine)[high].mean()


def test_an_image_merged_with_its_own_half_stays():
    shape = (61, 90)
    image, half = RNG.standard_normal(shape).astype(np.float32), half_of(shape)
    coarse = halve(image, everything(shape), everything(half), shape)
    merging = Merging(shape, half, Crossover(), coarse, everything(half))
    np.testing.assert_allclose(merging.merge(image, everything(shape), everything(shape)), image, atol=1e-5)
    other = merging._replace(coarse=1.1 * coarse)
    assert np.abs(other.merge(image, everything(shape), everything(shape)) - image).max() > 0.01


def test_against_strong_noise_two_scales_help_small_patches():
    clean = smooth((96, 120))
    image = clean + RNG.normal(0, 0.3, clean.shape).astype(np.float32)
    one, two = (Pipeline(dct_prior(5), clean.shape, most_scales=n).denoise(image, 0.3) for n in (1, 2))
    assert np.std(two - clean) < np.std(one - clean)


@pytest.mark.parametrize(
    "entry",
    [
        {"sigmas": [0.1]},
        {"sigmas": [0.1], "edges": [0.5], "widths": [0.0], "heights": [1]},
        {"sigmas": [0.0], "edges": [0.5], "widths": [0.1], "heights": [1]},
        {"sigmas": [0.2, 0.1], "edges": [0.5, 0.5], "widths": [0.1, 0.1], "heights": [1, 1]},
        {"sigmas": [10**400], "edges": [0.5], "widths": [0.1], "heights": [1]},
    ],
)
def test_a_bad_crossover_is_refused(entry):
    prior = replace(dct_prior(5), card={"crossover_between": entry})
    with pytest.raises(PriorFileError, match="crossover_between"):
        Pipeline(prior, SHAPE).denoise(smooth(SHAPE), 0.1)


def test_the_card_says_where_one_scale_takes_over_from_the_next():
    entry = {"sigmas": [0.05, 0.2], "edges": [0.3, 0.7], "widths": [0.1, 0.2]}
    assert crossover_at(crossover_table({"crossover": entry}), Noise.constant(0.1)) == pytest.approx((0.5, 0.15, 1.0))
    image = smooth(SHAPE) + RNG.normal(0, 0.1, SHAPE).astype(np.float32)
    one, other = (
        Pipeline(replace(dct_prior(5), card=card), SHAPE).denoise(image, 0.1) for card in ({}, {"crossover": entry})
    )
    assert np.abs(one - other).max() > 1e-4


def test_priors_of_whole_images_are_denoised_at_one_scale():
    assert len(Pipeline(load("wavelet-density"), (256, 256)).scales) == 1  # which sees every scale already


def test_what_is_read_for_halving_is_what_it_takes():
    rows, columns = sources((slice(10, 20), slice(0, 5)), of_halving, (100, 100))
    assert (rows.start, rows.stop) == (21 - pyramid.HALF, 39 + pyramid.HALF)
    assert (columns.start, columns.stop) == (0, 9 + pyramid.HALF)


@pytest.mark.parametrize(
    ("rows", "columns"), [((0, 40), (0, 46)), ((7, 8), (3, 30)), ((9, 39), (12, 13)), ((38, 40), (45, 46))]
)
def test_windows_of_any_parity_are_cut_out_of_the_whole(monkeypatch, rows, columns):
    monkeypatch.setattr(pyramid, "ROWS_AT_ONCE", 3)
    shape, half, wanted = (80, 92), (40, 46), (slice(*rows), slice(*columns))
    fine, coarse = (RNG.normal(size=size).astype(np.float32) for size in (shape, half))
    small = halve(fine, everything(shape), everything(half), shape)
    np.testing.assert_array_equal(halve(fine, everything(shape), wanted, shape), small[wanted])
    large = double(coarse, everything(half), everything(shape), half)
    np.testing.assert_array_equal(double(coarse, everything(half), wanted, half), large[wanted])
    monkeypatch.undo()
    np.testing.assert_array_equal(double(coarse, everything(half), everything(shape), half), large)
