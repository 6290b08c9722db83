"""Data terms: what they minimise, and that splitting is nothing but prior steps and data terms in turn."""

import numpy as np

from examples import patch_prior
from heatprior.noise_model import ConstantNoise
from heatprior.priors.one_step import denoised_once
from heatprior.priors.schedules import Schedule, constant
from heatprior.restoration.data_terms import Observed, PartlyObserved
from heatprior.restoration.splitting import split

RNG = np.random.default_rng(0)
Y, Z = RNG.random((8, 9), np.float32), RNG.random((8, 9), np.float32)
ROWS = slice(2, 6)
WEIGHT = np.float32(0.3)


def test_observed_pixels_minimise_the_weighted_distance_to_data_and_estimate():
    x = Observed(Y.__getitem__).draw_to_data(Z[ROWS].copy(), ROWS, WEIGHT)
    gradient = WEIGHT * (x - Y[ROWS]) + (1 - WEIGHT) * (x - Z[ROWS])
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)
    wrong = WEIGHT * (x - Y[2:6]) + (1 - WEIGHT) * (x - Z[1:5])  # of other rows it does not vanish
    assert np.abs(wrong).max() > 0.1


def test_where_pixels_are_missing_the_prior_has_its_way_and_elsewhere_nothing_changes():
    missing = RNG.random(Y.shape) < 0.4
    x = PartlyObserved(np.where(missing, np.nan, Y).__getitem__).draw_to_data(Z[ROWS].copy(), ROWS, WEIGHT)
    np.testing.assert_array_equal(x[missing[ROWS]], Z[ROWS][missing[ROWS]])
    whole = Observed(Y.__getitem__).draw_to_data(Z[ROWS].copy(), ROWS, WEIGHT)
    np.testing.assert_array_equal(x[~missing[ROWS]], whole[~missing[ROWS]])


def test_splitting_takes_any_data_term():
    """One that clamps the estimate to [0.4, 0.6], whatever the weight."""

    class Clamped:
        def draw_to_data(self, estimate, rows, weight):  # noqa: ARG002
            return np.clip(estimate, 0.4, 0.6)

    prior, x = patch_prior(3, 8, 9), Y.copy()
    split(x, ConstantNoise(0.1), prior, Clamped(), constant(Schedule((1.0, 0.5), (0.5, 0.5))))
    expected = Y
    for level in (0.1, 0.05):
        expected = np.clip(denoised_once(prior, expected, level), 0.4, 0.6)
    np.testing.assert_allclose(x, expected, atol=1e-6)
