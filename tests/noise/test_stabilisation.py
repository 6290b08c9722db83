"""Stabilised counts have noise of one, and the inverse takes their mean to the counts: exactly, not asymptotically."""

from math import erf

import numpy as np
import pytest

from heatprior.errors import InvalidInputError
from heatprior.noise.stabilisation import SHIFT, PoissonGaussian, split_line

RATES = (0.05, 0.2, 1.0, 3.0, 10.0, 100.0, 390.0, 410.0, 1e3, 1e4)
CAMERAS = tuple(PoissonGaussian(*camera) for camera in ((1.0,), (2.0, 0.6), (0.5, 0.5, 7.0), (3.0, 30.0, -40.0)))
READ_BINS = 4001


def moments_of_stabilised(counts, rate):
    """Mean and variance of f by brute force: every count, and read noise in thousands of bins."""
    numbers = np.arange(max(0, int(rate - 12 * np.sqrt(rate) - 20)), int(rate + 12 * np.sqrt(rate) + 60))
    log_factorials = np.cumsum(np.log(np.maximum(np.arange(numbers[-1] + 1), 1.0)))[numbers]
    poisson = np.exp(numbers * np.log(rate) - rate - log_factorials)
    read, weights = np.zeros(1), np.ones(1)
    if counts.read_noise:
        edges = np.linspace(-8.0, 8.0, READ_BINS + 1)
        weights = np.diff([0.5 * (1.0 + erf(edge / np.sqrt(2.0))) for edge in edges])
        read = counts.read_noise * (edges[1:] + edges[:-1]) / 2.0
    first = second = 0.0
    for number, chance in zip(numbers, poisson, strict=True):
        f = counts.stabilise(counts.black + counts.gain * number + read)
        first, second = first + chance * (f @ weights), second + chance * (f**2 @ weights)
    return first, second - first**2


@pytest.mark.parametrize("counts", CAMERAS)
@pytest.mark.parametrize("rate", RATES)
def test_the_inverse_of_the_mean_is_the_rate(counts, rate):
    mean, _ = moments_of_stabilised(counts, rate)
    found = (float(counts.unstabilise(mean)) - counts.black) / counts.gain
    assert found == pytest.approx(rate, rel=1e-4, abs=1e-3)  # linear between nodes of the table


@pytest.mark.parametrize(("rate", "least"), [(0.2, 0.2), (1.0, 0.15), (3.0, 0.05)])
def test_the_algebraic_inverse_is_biased_at_few_counts(rate, least):
    mean, _ = moments_of_stabilised(PoissonGaussian(1.0), rate)
    assert (mean / 2.0) ** 2 - SHIFT < (1.0 - least) * rate


@pytest.mark.parametrize("counts", CAMERAS)
def test_noise_is_one_from_a_few_counts_on(counts):
    for rate in (rate for rate in RATES if rate >= 10.0):
        assert moments_of_stabilised(counts, rate)[1] == pytest.approx(1.0, abs=0.02)


def test_raw_counts_have_no_such_variance():
    rng = np.random.default_rng(0)
    assert [round(float(rng.poisson(rate, 100_000).var())) for rate in (10, 100)] == [10, 100]


@pytest.mark.parametrize("counts", CAMERAS)
@pytest.mark.parametrize("rate", RATES)
def test_the_noise_of_few_counts_is_known(counts, rate):
    sigma = float(counts.stabilised_sigma(counts.black + counts.gain * rate))
    assert sigma == pytest.approx(np.sqrt(moments_of_stabilised(counts, rate)[1]), abs=2e-3)


def test_the_noise_of_few_counts_is_not_one():
    assert float(PoissonGaussian(1.0).stabilised_sigma(np.array(0.2))) < 0.5


def test_the_transform_and_its_inverse_follow_the_units():
    image = np.array([3.0, 10.0, 40.0])
    one, other = PoissonGaussian(2.0, 1.0, 3.0), PoissonGaussian(20.0, 10.0, 35.0)
    np.testing.assert_allclose(one.stabilise(image), other.stabilise(10.0 * image + 5.0))
    np.testing.assert_allclose(10.0 * one.unstabilise(image) + 5.0, other.unstabilise(image))


def test_below_no_counts_the_inverse_goes_on():
    counts = PoissonGaussian(1.0)
    lowest = float(counts.stabilise(np.array(0.0)))
    below, at = counts.unstabilise(np.array([lowest - 0.1, lowest]))
    assert below < at == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("read_noise", "black"), [(0.0, 0.0), (0.5, 0.0), (1.5, 10.0)])
def test_the_dark_tells_black_level_and_read_noise_apart(read_noise, black):
    rng = np.random.default_rng(0)
    rate = np.tile(np.linspace(0.02, 8.0, 256), (256, 1))
    image = black + rng.poisson(rate) + read_noise * rng.standard_normal(rate.shape)
    found = split_line(1.0, read_noise**2 - black, image)
    assert found.read_noise == pytest.approx(read_noise, abs=0.25)
    assert found.black == pytest.approx(black, abs=0.25)
    np.testing.assert_allclose(found.stabilise(image), PoissonGaussian(1.0, read_noise, black).stabilise(image))


def test_without_dark_parts_any_black_level_will_do():
    rng = np.random.default_rng(0)
    rate = np.tile(np.linspace(50.0, 80.0, 128), (128, 1))
    image = rng.poisson(rate).astype(np.float64)
    found = split_line(1.0, 0.0, image)
    assert found.sigma_of_stabilised(image) == pytest.approx(np.ones_like(image), abs=0.01)


@pytest.mark.parametrize("camera", [(0.0,), (-1.0,), (1.0, -1.0), (np.nan,), (1.0, 0.0, np.inf)])
def test_what_no_camera_can_have_is_refused(camera):
    with pytest.raises(InvalidInputError, match="expected a gain above 0"):
        PoissonGaussian(*camera)
