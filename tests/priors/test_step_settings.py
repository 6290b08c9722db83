"""How a mixture takes and averages patches: what a card may say."""

import numpy as np
import pytest

from examples import gaussian_mixture
from heatprior.errors import PriorFileError
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.mixture_step import step_settings_on

GOOD = {"window": [[1.0, 2.0], [2.0, 1.0]], "confidences": [[0.5, 1.0, 2.0]], "rival": 0.5, "candidates": 6}


def test_without_an_entry_all_patches_count_alike():
    weights = step_settings_on({}, 2, (1, 3))
    assert [np.shape(x) for x in weights] == [(4,), (1, 3), (), ()]
    assert all(np.all(x == 1.0) for x in weights[:3])
    assert weights.parameters == 0


def test_an_entry_is_read_row_by_row_and_only_its_ratios_count():
    weights = step_settings_on({"step": GOOD}, 2, (1, 3))
    np.testing.assert_array_equal(weights.window, [0.5, 1.0, 1.0, 0.5])
    np.testing.assert_array_equal(weights.confidences, [[0.25, 0.5, 1.0]])
    assert (weights.rival, weights.candidates) == (0.5, 6)


@pytest.mark.parametrize(
    "entry",
    [
        7,
        {"window": GOOD["window"]},
        {**GOOD, "window": [1.0, 2.0, 2.0, 1.0]},
        {**GOOD, "window": [[1.0]]},
        {**GOOD, "confidences": [[1.0, 2.0]]},
        {**GOOD, "confidences": [[1.0, 2.0, 0.0]]},
        {**GOOD, "confidences": [[1.0, 2.0, float("nan")]]},
        {**GOOD, "window": "all alike"},
        {**GOOD, "rival": 1.5},
        {**GOOD, "rival": 0.0},
        {**GOOD, "rival": "none"},
        {**GOOD, "rival": 10**400},
        {**GOOD, "candidates": 0},
        {**GOOD, "candidates": 2.5},
        {**GOOD, "candidates": True},
        {**GOOD, "candidates": 10**30},
        {**GOOD, "candidates": float("inf")},
        {**GOOD, "window": [[1.0, 2.0, 2.0, 1.0]]},
        {**GOOD, "window": [[10**400, 1.0], [1.0, 1.0]]},
        {**GOOD, "window": [[1e-9, 1.0], [1.0, 1.0]]},
    ],
)
def test_what_is_none_is_refused(entry):
    with pytest.raises(PriorFileError, match="step"):
        step_settings_on({"step": entry}, 2, (1, 3))


def test_they_are_among_the_parameters_and_leave_the_density_alone():
    plain = gaussian_mixture(2, 2, (0.5, 2.0))
    entry = {"window": [[1.0, 2.0], [2.0, 1.0]], "confidences": [[1.0, 2.0], [3.0, 4.0]], "rival": 0.3, "candidates": 3}
    prior = GaussianMixturePrior(plain.covariances, plain.log_weights, plain.contrasts, {"step": entry})
    assert prior.parameters == plain.parameters + 8
    patches = plain.sample(5, 0.1, rng=np.random.default_rng(0))
    np.testing.assert_allclose(prior.log_prob(patches, 0.1), plain.log_prob(patches, 0.1), rtol=1e-12)
