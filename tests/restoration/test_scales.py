"""Half the size by cropping the cosine transform, and the low frequencies put back."""

import numpy as np
import pytest
from scipy.fft import dctn, idctn
from scipy.stats import chi2

from heatprior.noise_model import NoiseMap, as_noise
from heatprior.restoration.scales import Crossover, merged, noise_of_reduced, reduced

every_shape = pytest.mark.parametrize("shape", [(32, 48), (33, 48), (32, 47), (31, 33), (1, 9)])


def half(shape):
    return tuple(-(-length // 2) for length in shape)


def cosine(shape, row, column):
    """Of these frequencies, sampled at the middles of pixels."""
    angles = [np.pi * f * (np.arange(n) + 0.5) / n for f, n in zip((row, column), shape, strict=True)]
    return np.cos(angles[0])[:, None] * np.cos(angles[1])


def white_noise(shape, sigma=1.0, seed=0):
    return (sigma * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


@every_shape
def test_a_constant_stays(shape):
    small = reduced(np.full(shape, 0.7, np.float32))
    assert small.shape == half(shape)
    np.testing.assert_allclose(small, 0.7, rtol=1e-6)


@every_shape
def test_low_frequencies_stay_and_high_ones_go(shape):
    for row, column in [(0, 1), (0, 4), *([(3, 2), (13, 5)] if shape[0] > 1 else [])]:
        small = reduced(cosine(shape, row, column).astype(np.float32))
        np.testing.assert_allclose(small, cosine(half(shape), row, column), atol=1e-6)
    np.testing.assert_allclose(reduced(cosine(shape, 0, half(shape)[1]).astype(np.float32)), 0.0, atol=1e-6)


def test_means_of_two_by_two_pixels_would_not_do():
    image = cosine((32, 48), 13, 5)
    means = image.reshape(16, 2, 24, 2).mean(axis=(1, 3))
    assert np.abs(means - cosine((16, 24), 13, 5)).max() > 0.1


@pytest.mark.parametrize("shape", [(200, 300), (201, 299)])
def test_white_noise_is_white_noise_of_half_the_standard_deviation(shape):
    small = reduced(white_noise(shape, 0.2))
    sigma = noise_of_reduced(as_noise(0.2), shape).lowest
    assert sigma == pytest.approx(0.1, rel=0.01)
    for values in (small, dctn(small, norm="ortho")[:, :20], dctn(small, norm="ortho")[-20:, :]):
        total = float(np.sum((values / sigma) ** 2))
        assert chi2.ppf(1e-4, values.size) < total < chi2.ppf(1 - 1e-4, values.size)
    for neighbour in (np.roll(small, 1, 0), np.roll(small, 1, 1)):
        assert abs(np.corrcoef(small.ravel(), neighbour.ravel())[0, 1]) < 4 / np.sqrt(small.size)
    assert not chi2.ppf(1e-4, small.size) < np.sum((small / (1.03 * sigma)) ** 2) < chi2.ppf(1 - 1e-4, small.size)


@every_shape
def test_an_image_merged_with_itself_stays(shape):
    image = white_noise(shape)
    np.testing.assert_allclose(merged(image, reduced(image)), image, atol=1e-5)
    assert np.abs(merged(image, reduced(1.1 * image)) - image).max() > 0.01


@pytest.mark.parametrize("shape", [(64, 96), (63, 95)])
def test_low_frequencies_are_those_of_the_coarse_image_and_high_ones_of_the_fine_one(shape):
    fine, other = white_noise(shape), white_noise(shape, seed=1)
    spectrum, expected, mine = (dctn(x, norm="ortho") for x in (merged(fine, reduced(other)), other, fine))
    height, width = half(shape)
    frequency = np.hypot((np.arange(shape[0]) / height)[:, None], np.arange(shape[1]) / width)
    low, high = frequency < Crossover().edge - 0.45, frequency > 1.0
    assert np.abs(spectrum - expected)[low].max() < 0.05 < np.abs(mine - expected)[low].max()
    np.testing.assert_allclose(spectrum[height:], mine[height:], atol=1e-5)
    np.testing.assert_allclose(spectrum[:, width:], mine[:, width:], atol=1e-5)
    assert np.abs(spectrum - mine)[high].max() < 0.05 < np.abs(expected - mine)[high].max()


@pytest.mark.parametrize("shape", [(32, 48), (33, 47)])
def test_a_map_of_noise_is_reduced_like_the_noise(shape):
    """The mean over many draws of white noise under a map that is smooth."""
    sigma = 0.1 + 0.05 * cosine(shape, 1, 2)
    less = noise_of_reduced(NoiseMap(sigma.__getitem__, 0.05, 0.15), shape)
    rows = less.rows(slice(0, half(shape)[0]))
    assert rows.shape == half(shape)
    rng = np.random.default_rng(0)
    squares = np.mean([reduced(sigma * rng.standard_normal(shape)) ** 2 for _ in range(4000)], axis=0)
    np.testing.assert_allclose(rows, np.sqrt(squares), rtol=0.12)  # 4000 draws: 1.1 % standard error, and edges
    assert np.sqrt(np.mean((rows / np.sqrt(squares) - 1.0) ** 2)) < 0.03
    assert (less.lowest, less.highest) == pytest.approx((0.025, 0.075), rel=0.04)


@every_shape
def test_a_constant_map_of_noise_is_a_number(shape):
    constant = NoiseMap(np.full(shape, 0.2).__getitem__, 0.2, 0.2)
    less = noise_of_reduced(constant, shape)
    np.testing.assert_allclose(
        less.rows(slice(0, half(shape)[0])), noise_of_reduced(as_noise(0.2), shape).lowest, rtol=1e-6
    )
    assert as_noise(less).lowest == pytest.approx(noise_of_reduced(as_noise(0.2), shape).lowest)
    assert as_noise(less).is_constant


def test_rows_of_a_map_can_be_asked_for_by_number():
    sigma = np.random.default_rng(0).uniform(0.1, 0.2, (9, 12))
    less = noise_of_reduced(NoiseMap(sigma.__getitem__, 0.1, 0.2), (9, 12))
    whole = less.rows(slice(0, 5))
    np.testing.assert_array_equal(less.rows(np.array([4, 0, 0, 2])), whole[[4, 0, 0, 2]])
    np.testing.assert_array_equal(less.rows(slice(2, 4)), whole[2:4])
    expected = np.sqrt(np.mean(sigma[2:4, 4:6] ** 2)) * np.sqrt(5 * 6 / (9 * 12))
    assert whole[1, 2] == pytest.approx(expected)


def test_the_cosine_transform_is_cropped_at_its_low_end():
    spectrum = np.zeros((8, 8))
    spectrum[1, 3] = 1.0
    np.testing.assert_allclose(
        reduced(idctn(spectrum, norm="ortho")), idctn(spectrum[:4, :4], norm="ortho") / 2, atol=1e-7
    )
