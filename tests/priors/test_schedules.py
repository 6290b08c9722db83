"""Schedules of half-quadratic splitting, and how a prior's card holds them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from heatprior import GaussianMixturePrior, InvalidInputError, PriorFileError
from heatprior.kernels.patches import EVERY, Grid
from heatprior.priors.protocol import complete
from heatprior.priors.schedules import GENERAL, OF_MIXTURES, Schedules
from paper.weights.handmade import dct_prior

ENTRY = {"sigmas": [0.05, 0.2], "levels": [[0.8, 0.4], [0.6, 0.2]], "weights": [[0.3, 0.0], [0.1, 0.02]]}


def prior_with(entry):
    return replace(dct_prior(7), card={"hqs": entry})


def test_a_mixture_without_schedules_begins_at_the_noise_level():
    schedules = GaussianMixturePrior(np.eye(3)[None], np.zeros((1, 1))).schedules
    assert [float(schedules.level(k, 0.1)) for k in range(schedules.steps)] == list(OF_MIXTURES.levels[0])
    assert OF_MIXTURES.levels[0][0] == 1.0


def test_a_prior_without_schedules_has_the_general_one():
    for prior in (SimpleNamespace(log_prob=len, score=len, sample=len), dct_prior(7)):
        schedules = complete(prior).schedules
        for sigma in (0.01, 0.1, 1.0):
            assert [float(schedules.level(k, sigma)) for k in range(schedules.steps)] == list(GENERAL.levels[0])
            assert [float(schedules.weight(k, sigma)) for k in range(schedules.steps)] == list(GENERAL.weights[0])


@pytest.mark.parametrize(
    ("sigma", "level", "weight"),
    [(0.05, 0.8, 0.3), (0.1, 0.7, 0.2), (0.2, 0.6, 0.1), (1e-9, 0.8, 0.3), (3.0, 0.6, 0.1)],
)
def test_between_its_sigmas_a_schedule_is_straight_in_log_sigma_and_beyond_them_constant(sigma, level, weight):
    schedules = prior_with(ENTRY).schedules
    assert schedules.steps == 2
    assert float(schedules.level(0, sigma)) == pytest.approx(level)
    assert float(schedules.weight(0, sigma)) == pytest.approx(weight)


def test_each_step_has_its_stride_and_begins_it_one_pixel_further():
    assert [prior_with(ENTRY).schedules.grid(step) for step in range(2)] == [EVERY, EVERY]
    strided = prior_with(ENTRY | {"strides": [2, 3]}).schedules
    assert [strided.grid(step) for step in range(2)] == [Grid(2, 0), Grid(3, 1)]


def test_a_map_is_taken_pixel_by_pixel():
    schedules = prior_with(ENTRY).schedules
    sigma = np.array([[0.01, 0.07], [0.1, 0.5]])
    expected = [[float(schedules.level(1, value)) for value in row] for row in sigma]
    np.testing.assert_allclose(schedules.level(1, sigma), expected)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sigmas": [0.2, 0.05]}, "ascending"),
        ({"sigmas": [0.0, 0.05]}, "positive"),
        ({"sigmas": [0.05]}, "do not match"),
        ({"sigmas": 0.05}, "must be lists"),
        ({"sigmas": ["a", "b"]}, "needs numbers"),
        ({"levels": [[0.8, 0.4], [0.6]]}, "needs numbers, the same count"),
        ({"levels": [[0.8], [0.6]]}, "do not match"),
        ({"levels": [[0.8, 0.0], [0.6, 0.2]]}, "levels of a schedule must be positive"),
        ({"levels": [[0.8, float("nan")], [0.6, 0.2]]}, "levels of a schedule must be positive"),
        ({"levels": [[], []], "weights": [[], []]}, "no steps"),
        ({"weights": [[0.3, 1.1], [0.1, 0.02]]}, "between 0 and 1"),
        ({"weights": [[0.3, -0.1], [0.1, 0.02]]}, "between 0 and 1"),
        ({"strides": [2]}, "above 0 for every step"),
        ({"strides": [2, 0]}, "above 0 for every step"),
        ({"strides": [2, 1.5]}, "above 0 for every step"),
        ({"strides": 2}, "must be lists"),
        ({"other": 1}, "expected an object with sigmas, levels, weights"),
    ],
)
def test_a_malformed_card_is_refused(change, why):
    assert prior_with(ENTRY).schedules.steps > 0
    with pytest.raises(PriorFileError, match=f'"hqs" of the prior\'s card: .*{why}'):
        _ = prior_with(ENTRY | change).schedules


def test_an_entry_that_is_no_object_is_refused():
    with pytest.raises(PriorFileError, match="expected an object"):
        _ = prior_with([1, 2]).schedules


def test_a_schedule_of_ones_own_is_checked():
    Schedules.constant((0.5,), (0.0,))
    with pytest.raises(InvalidInputError, match="do not match"):
        Schedules.constant((0.5, 0.4), (0.1,))
    with pytest.raises(InvalidInputError, match="no steps"):
        Schedules.constant((), ())
    with pytest.raises(InvalidInputError, match="positive and ascending"):
        Schedules((0.1, 0.1), ((0.5,), (0.5,)), ((0.0,), (0.0,)))
