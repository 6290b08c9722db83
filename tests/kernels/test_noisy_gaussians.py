"""Gaussian components with one noise level per patch, against their plain twins."""

import numpy as np
import pytest

from heatprior.kernels.noisy_gaussians import (
    log_densities,
    log_densities_plain,
    mean_precisions,
    mean_precisions_plain,
)


def problem(contrasts, axes, patches, seed=0):
    rng = np.random.default_rng(seed)
    signals = 10.0 ** rng.uniform(-12, 2, (3, contrasts, axes))
    sigmas = 10.0 ** rng.uniform(-6, 3, patches)
    sigmas[0] = 0.0
    responses = rng.standard_normal((3, axes, patches)) * np.sqrt(signals[:, 0, :, None] + sigmas**2)
    return responses, signals, sigmas**2, rng.standard_normal((3, contrasts))


@pytest.mark.parametrize(("contrasts", "axes", "patches"), [(1, 1, 1), (2, 4, 5), (3, 15, 40), (6, 63, 9)])
def test_log_densities_are_those_of_the_twin(contrasts, axes, patches):
    given = problem(contrasts, axes, patches)
    expected = log_densities_plain(*given)
    np.testing.assert_allclose(log_densities(*given), expected, rtol=1e-12, atol=1e-10)
    responses, signals, noise, log_weights = given
    wrong = log_densities(responses, signals, 1.01 * noise + 1e-12, log_weights)
    assert np.abs(wrong - expected).max() > 1e-3


@pytest.mark.parametrize("contrasts", [1, 2, 5])
def test_mean_precisions_are_those_of_the_twin(contrasts):
    _, signals, noise, _ = problem(contrasts, 15, 30)
    parts = np.random.default_rng(1).dirichlet(np.ones(contrasts), 30).T.copy()
    found = mean_precisions(parts, signals[0], noise)
    np.testing.assert_allclose(found, mean_precisions_plain(parts, signals[0], noise), rtol=1e-13)
