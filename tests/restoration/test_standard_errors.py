"""Errors of a denoised image without the truth: exact where the denoiser is a posterior mean that is known."""

import numpy as np
import pytest

from heatprior.errors import PriorFileError
from heatprior.restoration.error_bars import (
    Calibration,
    estimate_variance,
    probe,
    read_calibration,
)

SHAPE = (120, 130)
SIGMA = 0.1
SIGNAL = np.where(np.arange(SHAPE[1]) < SHAPE[1] // 2, 0.02, 0.2)  # standard deviation of the clean image, by column


def wiener(noisy):
    """The posterior mean of independent Gaussian pixels of mean zero."""
    return noisy * SIGNAL**2 / (SIGNAL**2 + SIGMA**2)


def trial(seed, denoiser=wiener, sigma=SIGMA):
    rng = np.random.default_rng(seed)
    clean = SIGNAL * rng.standard_normal(SHAPE)
    noisy = clean + sigma * rng.standard_normal(SHAPE)
    denoised = denoiser(noisy)
    return clean, noisy, denoised, probe(denoiser, noisy, denoised, SIGMA * rng.choice([-1.0, 1.0], SHAPE))


def test_the_estimate_variance_of_a_posterior_mean_is_the_posterior_variance():
    variance = estimate_variance(trial(0)[3])
    expected = SIGNAL**2 * SIGMA**2 / (SIGNAL**2 + SIGMA**2)
    inside = np.abs(np.arange(SHAPE[1]) - SHAPE[1] / 2) > 16  # where neighbours are alike
    np.testing.assert_allclose(variance[:, inside], np.broadcast_to(expected, SHAPE)[:, inside], rtol=1e-5)


def test_intervals_cover_what_they_say():
    clean, _, denoised, found = trial(1)
    inside = np.abs(clean - denoised) < 1.645 * np.sqrt(estimate_variance(found))
    assert 0.88 < inside.mean() < 0.92


def test_intervals_of_a_denoiser_that_does_too_little_do_not():
    clean, _, denoised, found = trial(1, lambda noisy: 0.5 * noisy)
    inside = np.abs(clean - denoised) < 1.645 * np.sqrt(estimate_variance(found))
    assert not 0.85 < inside.mean() < 0.95


def test_missing_pixels_have_no_error_and_no_influence():
    found = trial(0)[3]
    with_gap = found._replace(answer=np.where(np.arange(SHAPE[1]) == 3, np.nan, found.answer))
    variance = estimate_variance(with_gap)
    assert np.isnan(variance[:, 3]).all()
    np.testing.assert_allclose(variance[:, 4:60], estimate_variance(found)[:, 4:60], rtol=1e-4)


def test_a_calibration_is_straight_in_log_sigma():
    table = Calibration((0.01, 0.1), (0.5, 0.5), (0.1, 0.4), (1.0, 4.0))
    level = np.sqrt(0.001)
    middle = table.variance(np.array([0.5, 0.25]) * level**2, np.array(level))
    np.testing.assert_allclose(middle, [0.2 * level**2, 0.2 * 0.5**2 * level**2])


def test_one_level_broadcast_is_a_map_of_it():
    table, probed = (
        Calibration((0.01, 0.1), (0.5, 0.4), (1.0, 0.4), (1.0, 3.0)),
        np.random.default_rng(0).random((5, 6)) * 1e-3,
    )
    one = np.broadcast_to(np.array(0.03), (5, 6))
    np.testing.assert_allclose(table.variance(probed, one), table.variance(probed, np.array(one)), rtol=1e-12)


@pytest.mark.parametrize(
    "entry",
    [
        3,
        {"hqs": {"sigmas": [1.0]}},
        {"hqs": {"sigmas": [0.1, 0.05], "probed": [1, 1], "actual": [1, 1], "powers": [1, 1]}},
        {"hqs": {"sigmas": [1.0], "probed": [1], "actual": [0.0], "powers": [1]}},
        {"hqs": {"sigmas": [], "probed": [], "actual": [], "powers": []}},
    ],
)
def test_a_card_that_makes_no_sense_is_refused(entry):
    with pytest.raises(PriorFileError, match="standard_errors"):
        read_calibration({"standard_errors": entry}, "hqs")


def test_a_card_without_the_method_leaves_variances_as_they_are():
    for card in (
        {},
        {"standard_errors": {"hqs": {"sigmas": [1.0], "probed": [1.0], "actual": [2.0], "powers": [1.0]}}},
    ):
        assert read_calibration(card, "eb") == Calibration()
