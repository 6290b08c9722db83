"""The negative controls: each law of laws.py holds for a right prior and fails for one with one thing wrong."""

import laws
import numpy as np
import pytest

from examples import Altered, patch_prior, span_of, tilted

RIGHT = patch_prior(2, 2, 4, seed=8)
SPAN = span_of(RIGHT)
SIGMA = 0.3
Y = RIGHT.sample(4, SIGMA, rng=np.random.default_rng(0))
# What the paper's normaliser ∏ ‖k_j‖² has over the right one.
EXCESS = np.log(RIGHT.filters.norms).sum()


class AverageSigma:
    """Uses one noise level for all patches of a call."""

    def log_prob(self, y, sigma):
        return RIGHT.log_prob(y, np.mean(sigma))

    def score(self, y, sigma):
        return RIGHT.score(y, np.mean(sigma))


def score_law(prior):
    laws.score_is_the_gradient_of_log_prob(prior, SPAN, Y, SIGMA)


def heat_equation(prior):
    laws.log_prob_solves_the_heat_equation(prior, SPAN, Y, SIGMA)


def mass_one(prior):
    laws.mass_is_one(prior, SPAN, SIGMA)


def semigroup(prior):
    laws.diffusion_is_a_semigroup(prior, SPAN, Y, 0.2, SIGMA)


def tweedie(prior):
    laws.tweedie_is_the_posterior_mean(prior, SPAN, Y, SIGMA)


def tweedie_by_samples(prior):
    laws.tweedie_is_the_posterior_mean_of_samples(prior, SPAN, Y[0], SIGMA, rng=np.random.default_rng(1))


def variance_by_curvature(prior):
    laws.variance_is_tweedies_second_formula(prior, SPAN, Y, SIGMA)


def variance_by_quadrature(prior):
    laws.variance_is_the_posterior_variance(prior, SPAN, Y, SIGMA)


def variance_by_samples(prior):
    laws.variance_is_the_posterior_variance_of_samples(prior, SPAN, Y[0], SIGMA, rng=np.random.default_rng(1))


def samples_law(prior):
    laws.samples_follow_the_density(prior, SPAN, SIGMA, rng=np.random.default_rng(2))


def steins_identity(prior):
    laws.samples_obey_steins_identity(prior, SPAN, SIGMA, rng=np.random.default_rng(3))


def patch_by_patch(prior):
    laws.sigma_per_patch_is_patch_by_patch(prior, Y, np.array([0.1, 0.2, 0.3, 0.4]))


CONTROLS = [
    (score_law, "a score 1 % too long", Altered(RIGHT, score_factor=1.01)),
    (heat_equation, "one filter tilted by 5°", tilted(RIGHT, 5)),
    (heat_equation, "one filter tilted by 0.1°", tilted(RIGHT, 0.1)),
    (heat_equation, "time running 1 % too fast", Altered(RIGHT, sigma_factor=1.005)),
    (mass_one, "the paper's normaliser", Altered(RIGHT, log_factor=EXCESS)),
    (semigroup, "one filter tilted by 5°", tilted(RIGHT, 5)),
    (semigroup, "time running 1 % too fast", Altered(RIGHT, sigma_factor=1.005)),
    (tweedie, "a score 1 % too long", Altered(RIGHT, score_factor=1.01)),
    (tweedie, "one filter tilted by 5°", tilted(RIGHT, 5)),
    (tweedie_by_samples, "a score 10 % too long", Altered(RIGHT, score_factor=1.1)),
    (variance_by_curvature, "a variance 1 % too large", Altered(RIGHT, variance_factor=1.01)),
    (variance_by_quadrature, "a variance 1 % too large", Altered(RIGHT, variance_factor=1.01)),
    (variance_by_samples, "a variance 10 % too large", Altered(RIGHT, variance_factor=1.1)),
    (samples_law, "samples 50 % too noisy", Altered(RIGHT, sample_factor=1.5)),
    (steins_identity, "samples 20 % too noisy", Altered(RIGHT, sample_factor=1.2)),
    (patch_by_patch, "one sigma for all patches", AverageSigma()),
]


@pytest.mark.parametrize("law", list(dict.fromkeys(law for law, _, _ in CONTROLS)), ids=lambda law: law.__name__)
def test_the_law_holds_for_a_right_prior(law):
    law(RIGHT)


@pytest.mark.parametrize(
    ("law", "wrong"),
    [(law, wrong) for law, _, wrong in CONTROLS],
    ids=[f"{law.__name__}: {what}" for law, what, _ in CONTROLS],
)
def test_the_law_fails_for(law, wrong):
    with pytest.raises(AssertionError):
        law(wrong)


def test_the_stencil_is_exact_on_polynomials_of_degree_eight():
    polynomial = np.polynomial.Polynomial(np.arange(1.0, 10.0))
    np.testing.assert_allclose(laws.derivative(lambda h: polynomial(0.5 + h), 0.1), polynomial.deriv()(0.5), rtol=1e-13)


def test_every_law_has_a_negative_control():
    source = {name for law, _, _ in CONTROLS for name in law.__code__.co_names}
    helpers = {"derivative", "posterior_by_quadrature", "posterior_by_monte_carlo"}
    public = {
        name for name, value in vars(laws).items() if callable(value) and getattr(value, "__module__", "") == "laws"
    }
    assert {name for name in public if name.islower() and not name.startswith("_")} - helpers <= source
