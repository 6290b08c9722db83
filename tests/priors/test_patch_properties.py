"""What holds for patch priors of every size, number of filters and components, for patches of every shape and type."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import patch_prior
from heatprior import Experts, FilterBank, PatchPrior, tweedie

# The same examples at every run; the first one pays for compiling the kernel.
steady = settings(
    derandomize=True, deadline=None, max_examples=40, database=None, suppress_health_check=[HealthCheck.too_slow]
)


@st.composite
def priors(draw):
    size = draw(st.integers(2, 5))
    zero_mean = draw(st.booleans())
    count = draw(st.integers(1, size**2 - zero_mean))
    components = draw(st.sampled_from([2, 3, 4, 5, 9, 64, 125, 126]))
    return patch_prior(size, count, components, seed=draw(st.integers(0, 10_000)), zero_mean=zero_mean)


@st.composite
def problems(draw):
    """A prior, patches with some leading axes and type, and a noise level that broadcasts against them."""
    prior = draw(priors())
    leading = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    scale = draw(st.sampled_from([0.0, 1e-3, 1.0, 50.0]))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    y = (scale * rng.standard_normal((*leading, prior.filters.pixels))).astype(dtype)
    levels = rng.choice([0.0, 1e-6, 0.01, 0.1, 1.0, 100.0], draw(st.sampled_from([(), leading, leading[-1:]])))
    return prior, y, levels


@steady
@given(problems())
def test_results_are_finite_and_have_the_shape_and_type_of_the_patches(problem):
    prior, y, sigma = problem
    log_prob, score, (mean, variance) = prior.log_prob(y, sigma), prior.score(y, sigma), prior.posterior(y, sigma)
    assert log_prob.shape == y.shape[:-1]
    assert score.shape == mean.shape == variance.shape == y.shape
    for result in (log_prob, score, mean, variance):
        assert result.dtype == y.dtype
        assert np.isfinite(result).all()


@steady
@given(problems())
def test_the_posterior_mean_is_tweedies(problem):
    prior, y, sigma = problem
    # Roundings are those of y, and of sigma² and the score in the type of y.
    tolerance = 20 * np.finfo(y.dtype).eps
    mean, expected = prior.posterior(y, sigma).mean, tweedie(prior, y, sigma)
    np.testing.assert_allclose(mean, expected, rtol=0, atol=tolerance * (1 + np.abs(y).max(initial=0.0)))


@steady
@given(problems())
def test_the_posterior_variance_lies_between_those_of_one_and_of_all_components(problem):
    prior, y, sigma = problem
    bank, experts = prior.filters, prior.experts
    square = np.broadcast_to(np.square(sigma), y.shape[:-1])[..., None]  # (..., 1)
    shrink = bank.norms**2 * square / (experts.base_sigma**2 + bank.norms**2 * square)  # (..., J)
    axes = (bank.matrix / bank.norms[:, None]) ** 2
    unseen = square * np.clip(1.0 - axes.sum(axis=0), 0.0, None)
    least = (shrink * experts.base_sigma**2 / bank.norms**2) @ axes + unseen
    # No random variable on [−reach, reach] has a variance above reach².
    most = least + (shrink**2 * experts.reach**2 / bank.norms**2) @ axes
    variance = prior.posterior(y, sigma).variance
    slack = 1e-6 * (1e-300 + most)  # rounding to float32
    assert (variance >= least - slack).all()
    assert (variance <= most + slack).all()
    assert (variance >= 0).all()


@steady
@given(problems(), st.floats(-1.0, 1.0))
def test_zero_mean_filters_do_not_see_brightness(problem, brightness):
    prior, y, sigma = problem
    y = y.astype(np.float64)
    blind = np.abs(prior.filters.matrix.sum(axis=1)).max() < 1e-12
    if blind:
        before, after = prior.log_prob(y, sigma), prior.log_prob(y + brightness, sigma)
        # The responses change by 1e-15 of brightness and patch, the density by its slope times that.
        slope = np.abs(prior.score(y, sigma)).max(initial=0.0) * (1.0 + np.abs(y).max(initial=0.0))
        np.testing.assert_allclose(after, before, rtol=1e-12, atol=1e-13 * (1.0 + slope))


@steady
@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_the_filters_does_not_matter(problem, random):
    prior, y, sigma = problem
    order = random.sample(range(prior.filters.count), prior.filters.count)
    bank, experts = prior.filters, prior.experts
    permuted = PatchPrior(FilterBank(bank.matrix[order]), Experts(experts.logits[order], experts.reach))
    # Sums in another order: one rounding in the type of the result.
    tolerance = 10 * np.finfo(y.dtype).eps
    for one, other in zip(
        (prior.log_prob(y, sigma), prior.score(y, sigma), *prior.posterior(y, sigma)),
        (permuted.log_prob(y, sigma), permuted.score(y, sigma), *permuted.posterior(y, sigma)),
        strict=True,
    ):
        np.testing.assert_allclose(
            other, one, rtol=100 * tolerance, atol=tolerance * (1 + np.abs(one).max(initial=0.0))
        )


@steady
@given(problems(), st.floats(0.1, 10.0))
def test_a_change_of_units_is_a_change_of_variables(problem, unit):
    prior, y, sigma = problem
    y = y.astype(np.float64)
    bank, count = prior.filters, prior.filters.count
    in_units = PatchPrior(FilterBank(bank.matrix / unit), prior.experts)
    expected = prior.log_prob(y, sigma) - count * np.log(unit)
    # The derivative of the log-density in the unit is y·score: a rounding of the unit costs as much.
    slack = 1e-13 * (1.0 + np.abs(y).max(initial=0.0) * np.abs(prior.score(y, sigma)).max(initial=0.0))
    np.testing.assert_allclose(in_units.log_prob(unit * y, unit * sigma), expected, rtol=1e-11, atol=1e-11 + slack)


@steady
@given(priors(), st.integers(0, 50), st.floats(0.0, 10.0), st.integers(0, 1000))
def test_samples_lie_in_the_span(prior, count, sigma, seed):
    samples = prior.sample(count, sigma, rng=np.random.default_rng(seed))
    bank = prior.filters
    assert samples.shape == (count, bank.pixels)
    np.testing.assert_allclose(
        bank.reconstruct(bank.analyse(samples)), samples, rtol=0, atol=1e-12 * (1 + 10 * sigma) * 10
    )
