"""The laws of every diffused prior, unchanged, on the torch modules: by tensor operations alone."""

import laws
import numpy as np
import pytest
from bridges import SMALL, WAVELETS, AsNumpy
from whole_images import OnGrid, span_on_grid

from examples import Altered, span_of, tilted

SIGMA = 0.3
TINY = {name: prior for name, prior in SMALL.items() if len(span_of(prior).axes) <= 3}
every_prior = pytest.mark.parametrize("prior", SMALL.values(), ids=SMALL)
every_tiny_prior = pytest.mark.parametrize("prior", TINY.values(), ids=TINY)
every_wavelet = pytest.mark.parametrize("prior", WAVELETS.values(), ids=WAVELETS)


def draws(prior, count=4):
    return prior.sample(count, SIGMA, rng=np.random.default_rng(0))


def check_pointwise(module, span, y):
    laws.score_is_the_gradient_of_log_prob(module, span, y, SIGMA)
    laws.log_prob_solves_the_heat_equation(module, span, y, SIGMA)
    laws.variance_is_tweedies_second_formula(module, span, y, SIGMA)
    laws.sigma_per_patch_is_patch_by_patch(module, y, np.linspace(0.1, 0.4, len(y)))


@every_prior
def test_pointwise_laws(prior):
    check_pointwise(AsNumpy(prior), span_of(prior), draws(prior))


@every_prior
def test_laws_of_samples(prior):
    laws.samples_obey_steins_identity(AsNumpy(prior), span_of(prior), SIGMA, rng=np.random.default_rng(3))


@every_tiny_prior
def test_laws_of_integrals(prior):
    module, span, y = AsNumpy(prior), span_of(prior), draws(prior)
    laws.mass_is_one(module, span, SIGMA)
    laws.diffusion_is_a_semigroup(module, span, y, 0.2, SIGMA)
    laws.tweedie_is_the_posterior_mean(module, span, y, SIGMA)
    laws.variance_is_the_posterior_variance(module, span, y, SIGMA)
    laws.samples_follow_the_density(module, span, SIGMA, rng=np.random.default_rng(2))


def test_laws_of_weighted_samples():
    prior = SMALL["three filters on 2×2"]
    module, span, y = AsNumpy(prior), span_of(prior), draws(prior)[0]
    laws.tweedie_is_the_posterior_mean_of_samples(module, span, y, SIGMA, rng=np.random.default_rng(1))
    laws.variance_is_the_posterior_variance_of_samples(module, span, y, SIGMA, rng=np.random.default_rng(1))


@every_wavelet
def test_laws_of_wavelets(prior):
    shape = (prior.unit, prior.unit)
    module, span = OnGrid(AsNumpy(prior), shape), span_on_grid(prior, shape)
    check_pointwise(module, span, draws(OnGrid(prior, shape)))
    laws.samples_obey_steins_identity(module, span, SIGMA, rng=np.random.default_rng(3))


@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        (laws.score_is_the_gradient_of_log_prob, {"score_factor": 1.01}),
        (laws.log_prob_solves_the_heat_equation, {"sigma_factor": 1.005}),
        (laws.variance_is_tweedies_second_formula, {"variance_factor": 1.01}),
    ],
)
def test_the_laws_fail_for_a_module_with_one_thing_wrong(law, wrong):
    prior = SMALL["three filters on 2×2"]
    with pytest.raises(AssertionError):
        law(Altered(AsNumpy(prior), **wrong), span_of(prior), draws(prior), SIGMA)


def test_the_heat_equation_fails_for_a_module_with_a_tilted_filter():
    prior = SMALL["three filters on 2×2"]
    with pytest.raises(AssertionError):
        laws.log_prob_solves_the_heat_equation(AsNumpy(tilted(prior, 5)), span_of(prior), draws(prior), SIGMA)
