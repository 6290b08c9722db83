"""Learning a mixture repeats itself bit by bit, finds a known one, also behind known noise, and loses no shape."""

import numpy as np
import pytest
from synthetic import DrawnFromPrior, assert_same_bits, finished, landscape, small_source

import heatprior as hp
from examples import gaussian_mixture
from heatprior import GaussianMixturePrior, InvalidInputError, MixtureConfig
from heatprior.data.datasets import PatchSource
from heatprior.kernels import threads
from heatprior.learning import mixture_training as module
from heatprior.learning.mixture_training import DEAD_SHARE, MixtureTraining, score_moments
from heatprior.learning.training import LogEntry
from heatprior.priors.expectation_maximisation import expected_statistics
from heatprior.priors.gaussian_mixture import Components


def small_config(**changes):
    return MixtureConfig(**{"size": 4, "shapes": 4, "contrasts": 3, "batch": 300, "steps": 30, **changes})


def trained(config, source=None, *, steps=None):
    return finished(MixtureTraining(config, source or small_source(config.size)), steps or config.steps)


@pytest.mark.parametrize("sigma", [0.0, 0.05])
@pytest.mark.parametrize("break_after", [1, 2, 13, 29])
def test_a_training_that_goes_on_from_its_state_ends_with_the_same_bits(sigma, break_after):
    config = small_config(sigma=sigma)
    whole = trained(config)
    kept = trained(config, steps=break_after).state()
    assert all(array.flags.c_contiguous and array.dtype == np.float64 for array in kept.values())
    resumed = MixtureTraining(config, small_source())
    resumed.restore(kept)
    assert finished(resumed).done == config.steps
    assert_same_bits(whole.state(), resumed.state())
    np.testing.assert_array_equal(whole.prior().covariances, resumed.prior().covariances)


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    states = []
    for count in (1, 2):
        monkeypatch.setattr(threads, "get_num_threads", lambda count=count: count)
        states.append(trained(small_config(steps=3, batch=5000)).state())
    assert_same_bits(*states)


def test_the_seed_decides():
    first, same, other = (trained(small_config(seed=seed, steps=5)).prior().covariances for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert np.abs(first - other).max() > 1e-3


def test_the_loss_is_that_of_the_batch_before_the_step():
    training = MixtureTraining(small_config(), small_source())
    before = training.prior()
    (progress,) = training.run(1)
    batch = small_source().draw(300, np.random.default_rng([0, 0])).T
    assert progress.loss == pytest.approx(-before.log_prob(batch, 0.0).mean(), rel=1e-5)
    assert training.prior().log_prob(batch, 0.0).mean() > before.log_prob(batch, 0.0).mean() + 0.1


def test_the_prior_has_its_most_frequent_shape_first_and_tells_its_settings():
    prior = trained(small_config()).prior({"name": "mine"})
    assert (np.diff(np.exp(prior.log_weights).sum(axis=1)) <= 0).all()
    assert prior.card["name"] == "mine"
    assert prior.card["training"]["shapes"] == 4
    assert prior.card["training"]["steps_done"] == 30
    np.testing.assert_array_equal(prior.contrasts, [0.25, 1.0, 4.0])


@pytest.mark.parametrize(("count", "values"), [(1, [1.0]), (2, [0.5, 2.0]), (3, [0.25, 1.0, 4.0])])
def test_contrasts_are_powers_of_four_around_one(count, values):
    np.testing.assert_allclose(MixtureConfig(contrasts=count).contrast_values, values)


TRUE = gaussian_mixture(3, 3, (0.25, 1.0, 4.0), seed=4, narrowest=0.02)
KNOWN = MixtureConfig(size=3, shapes=3, contrasts=3, batch=4000, steps=80)


def divergence(prior, sigma, count=20_000):
    """Of Kullback and Leibler from the true mixture, in nats, at noise level sigma."""
    y = TRUE.sample(count, sigma, rng=np.random.default_rng(6))
    return float((TRUE.log_prob(y, sigma) - prior.log_prob(y, sigma)).mean())


def test_a_short_training_recovers_a_known_mixture():
    source = DrawnFromPrior(TRUE)
    start = MixtureTraining(KNOWN, source).prior()
    assert divergence(start, 0.0) > 1.0
    assert 0 < divergence(trained(KNOWN, source).prior(), 0.0) < 0.05


def noisy_training(sigma, **changes):
    return trained(MixtureConfig(**{**vars(KNOWN), "sigma": sigma, **changes}), DrawnFromPrior(TRUE, 0.1))


def test_noisy_patches_are_seen_through_unless_their_noise_is_ignored_or_mistaken():
    found = divergence(noisy_training(0.1).prior(), 0.05)
    assert 0 < found < 0.15
    for wrong in (0.0, 0.07):
        assert divergence(noisy_training(wrong).prior(), 0.05) > 3 * found


def test_plain_expectation_and_maximisation_is_slower_behind_noise(monkeypatch):
    scored = divergence(noisy_training(0.1).prior(), 0.05)
    monkeypatch.setattr(module, "score_moments", lambda _prior, sums, _sigma: sums.moments)
    assert divergence(noisy_training(0.1).prior(), 0.05) > 2 * scored


def certainty(prior, sigma=0.1):
    """How probable the most probable shape of a noisy patch is, on average."""
    y = TRUE.sample(5000, sigma, rng=np.random.default_rng(6))
    return Components(prior, y, np.full(len(y), sigma)).responsibilities.sum(axis=1).max(axis=0).mean()


def test_behind_noise_the_last_steps_give_patches_a_shape_of_their_own(monkeypatch):
    sharp = noisy_training(0.1, shapes=8, steps=40).prior()
    monkeypatch.setattr(module, "SHARPNESS", 1.0)
    soft = noisy_training(0.1, shapes=8, steps=40).prior()
    assert certainty(sharp) > certainty(soft) + 0.05
    assert divergence(sharp, 0.1) < divergence(soft, 0.1) + 0.1  # at little cost for the likelihood


def test_with_one_gaussian_a_step_gives_its_covariance_less_that_of_the_noise():
    """Whatever it was before."""
    prior, truth = gaussian_mixture(3, 1, seed=1), gaussian_mixture(3, 1, seed=2)
    y = truth.sample(1000, 0.3, rng=np.random.default_rng(0))
    u = y @ prior.basis.T
    sums = expected_statistics(prior, y, 0.3, least_keep=0.0)
    expected = u.T @ u - 0.09 * len(u) * np.eye(8)
    np.testing.assert_allclose(score_moments(prior, sums, 0.3)[0], expected, rtol=0, atol=1e-3)
    assert np.abs(sums.moments[0] - expected).max() > 1.0  # where plain EM goes


def test_steps_from_the_true_mixture_stay_there_on_average():
    y = TRUE.sample(200_000, 0.1, rng=np.random.default_rng(0))
    sums = expected_statistics(TRUE, y, 0.1, least_keep=0.0)
    found = score_moments(TRUE, sums, 0.1) / sums.weights.sum(axis=1)[:, None, None]
    np.testing.assert_allclose(found, TRUE.covariances, rtol=0, atol=0.02 * TRUE.variances.max())


def test_without_noise_the_moments_stay_as_they_are():
    sums = expected_statistics(TRUE, TRUE.sample(100, rng=np.random.default_rng(0)), 0.0)
    np.testing.assert_array_equal(score_moments(TRUE, sums, 0.0), sums.moments)


@pytest.mark.parametrize(("done", "revived"), [(5, True), (25, False)])
def test_a_shape_that_explains_nothing_is_revived_while_there_is_time_to_settle_it(done, revived):
    training = MixtureTraining(small_config(), small_source())
    state = {name: array.copy() for name, array in training.state().items()}
    state["weights"][0] += state["weights"][2]
    state["weights"][2] = 1e-9
    state["moments"][2] = 1e3 * np.eye(15) * 3e-9  # so wide that no patch is likely
    state["done"][0] = done
    training.restore(state)
    list(training.run(1))
    shares = training.state()["weights"].sum(axis=1)
    assert (shares.min() > DEAD_SHARE / 4) == revived
    assert shares.sum() == pytest.approx(1.0, abs=1e-3)


def test_more_shapes_than_the_images_have_and_images_without_texture_are_no_obstacle():
    flat = PatchSource([np.full((30, 30), 77, np.uint8)], 4)
    for prior in (trained(small_config(), flat).prior(), trained(small_config(shapes=40)).prior()):
        assert np.isfinite(prior.log_prob(prior.sample(5, 0.1, rng=np.random.default_rng(0)), 0.1)).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 1}, "size is 1; expected at least 2"),
        ({"shapes": 0}, "shapes is 0; expected at least 1"),
        ({"contrasts": 0}, "contrasts is 0"),
        ({"batch": 0}, "batch is 0"),
        ({"steps": 0}, "steps is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"sigma": -0.1}, "sigma is -0.1; expected 0 to 1, the noise of images scaled to"),
        ({"sigma": 25.0}, "divide an 8-bit level by 255"),
        ({"sigma": float("nan")}, "sigma is nan"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        MixtureConfig(**changes)


def test_a_source_or_a_state_of_another_size_is_refused():
    with pytest.raises(InvalidInputError, match="the source cuts 3×3 patches"):
        MixtureTraining(small_config(), small_source(3))
    state = trained(small_config(), steps=1).state()
    with pytest.raises(InvalidInputError, match="other sizes"):
        MixtureTraining(small_config(shapes=5), small_source()).restore(state)


def test_train_gives_a_mixture_and_reports_the_likelihood_of_what_is_held_out():
    rng, events = np.random.default_rng(0), []
    images, others = ([landscape((30, 40), rng) for _ in range(2)] for _ in range(2))
    prior = hp.train(images, small_config(), validation=others, report=events.append)
    assert isinstance(prior, GaussianMixturePrior)
    records = [event for event in events if isinstance(event, LogEntry)]
    validated = [record for record in records if record.log_likelihood is not None]
    assert [record.step for record in validated] == [10, 20, 30]
    assert all(record.psnr is not None for record in validated)
    held_out = PatchSource([image.astype(np.float32) for image in others], 4).draw(20_000, np.random.default_rng(0)).T
    assert validated[-1].log_likelihood == pytest.approx(prior.log_prob(held_out, 0.0).mean(), abs=1e-3)


def test_noisy_images_may_leave_the_range_of_clean_ones_if_their_noise_is_told():
    rng = np.random.default_rng(0)
    noisy = [landscape((30, 40), rng) + 0.1 * rng.standard_normal((30, 40)) for _ in range(2)]
    prior = hp.train(noisy, small_config(sigma=0.1, steps=5))
    assert prior.card["training"]["sigma"] == 0.1
    with pytest.raises(InvalidInputError, match=r"must lie in \[0, 1\]: rescale them"):
        hp.train(noisy, small_config(steps=5))
    with pytest.raises(InvalidInputError, match=r"must lie in \[0, 1\], but for their noise of 0\.1: rescale them"):
        hp.train([255 * image for image in noisy], small_config(sigma=0.1, steps=5))
