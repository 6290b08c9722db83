"""A training keeps its constraints at every step, repeats itself bit by bit, and finds a prior that is known."""

import json
from contextlib import suppress
from dataclasses import asdict

import numpy as np
import pytest
from synthetic import DrawnFromPrior, assert_same_bits, finished, small_source, sparse_prior

from heatprior import Experts, InvalidInputError, TrainingConfig, TrainingError
from heatprior.data.datasets import PatchSource
from heatprior.kernels import threads
from heatprior.learning import patch_training
from heatprior.learning.patch_training import NoisyBatch, Training, match_scores
from paper.learning.ipalm import PaperConfig, initial_experts

CONFIGS = {"adam": TrainingConfig, "ipalm": PaperConfig}
both_optimizers = pytest.mark.parametrize("optimizer", CONFIGS)


def config_of(optimizer, **settings):
    """With all other settings as they are for Adam."""
    usual = {"noise": "log", "start": "student", "sigma_min": 0.01, "averaged": 500} if optimizer == "ipalm" else {}
    return CONFIGS[optimizer](**usual | settings)


def small_config(optimizer="adam", **changes):
    return config_of(optimizer, **{"size": 4, "components": 21, "batch": 100, "steps": 30, **changes})


def trained(config, source=None, *, steps=None):
    return finished(config.training(source or small_source(config.size)), steps or config.steps)


@both_optimizers
@pytest.mark.parametrize("size", [2, 3, 7])
def test_filters_are_orthogonal_and_zero_mean_after_every_step(optimizer, size):
    training = small_config(optimizer, size=size).training(small_source(size))
    for progress in training.run(30):
        filters = training.point[0]
        norms = np.linalg.norm(filters, axis=1)
        cosines = (filters @ filters.T) / np.outer(norms, norms) - np.eye(len(filters))
        assert np.abs(cosines).max() < 1e-6, progress
        assert np.abs(filters.sum(axis=1)).max() < 1e-6 * norms.max(), progress
    assert progress.step == 30


@both_optimizers
def test_the_loss_falls(optimizer):
    training = small_config(optimizer, steps=60, batch=400).training(small_source())
    losses = [progress.loss for progress in training.run(60)]
    assert np.mean(losses[-10:]) < 0.9 * np.mean(losses[:5])


@both_optimizers
@pytest.mark.parametrize("break_after", [1, 2, 13, 29])
def test_a_training_that_goes_on_from_its_state_ends_with_the_same_bits(optimizer, break_after):
    config = small_config(optimizer)
    whole = trained(config)
    broken = trained(config, steps=break_after)
    kept = {name: array.copy() for name, array in broken.state().items()}
    resumed = config.training(small_source())
    resumed.restore(kept)
    assert finished(resumed).done == config.steps
    assert_same_bits(whole.state(), resumed.state())


@both_optimizers
def test_the_state_survives_a_copy_through_plain_memory(optimizer):
    """Files know no strides: arrays that are not contiguous might take another way through the matrix products."""
    training = trained(small_config(optimizer), steps=3)
    assert all(array.flags.c_contiguous and array.dtype == np.float64 for array in training.state().values())


@both_optimizers
def test_the_number_of_threads_changes_no_bit(optimizer, monkeypatch):
    states = []
    for count in (1, 2):
        monkeypatch.setattr(threads, "get_num_threads", lambda count=count: count)
        states.append(trained(small_config(optimizer, steps=10)).state())
    assert_same_bits(*states)


def test_the_seed_decides():
    first, same, other = (trained(small_config(seed=seed, steps=5)).point[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert np.abs(first - other).max() > 0.01


def test_a_run_ends_at_its_last_step():
    training = Training(small_config(steps=7), small_source())
    assert [progress.step for progress in training.run(5)] == [1, 2, 3, 4, 5]
    assert [progress.step for progress in training.run(5)] == [6, 7]
    assert list(training.run(5)) == []


def test_one_noise_level_alone_is_possible():
    prior = trained(small_config(sigma_min=0.02, sigma_max=0.02, steps=5)).prior()
    assert prior.card["training"]["sigma_max"] == 0.02


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 1}, "size is 1; expected at least 2"),
        ({"components": 1}, "components is 1"),
        ({"batch": 0}, "batch is 0"),
        ({"steps": 0}, "steps is 0"),
        ({"steps": 10**10}, "steps is 10000000000; expected at most 1000000000"),
        ({"size": 7.5}, "size is 7.5; expected a whole number"),
        ({"components": 10**6}, "expected at most 500"),
        ({"averaged": 0}, "averaged is 0"),
        ({"seed": -1}, "seed is -1; expected at least 0"),
        ({"seed": True}, "seed is True; expected a whole number"),
        ({"reach": 0.0}, "reach is 0; expected 0.001 to 1000"),
        ({"reach": float("inf")}, "reach is inf; expected a finite number"),
        ({"filter_rate": float("nan")}, "filter_rate is nan; expected a finite number"),
        ({"filter_rate": 1e9}, r"filter_rate is 1e\+09; expected 0 to 1"),
        ({"filter_rate": "fast"}, "filter_rate is 'fast'; expected a finite number"),
        ({"logit_rate": -0.1}, "logit_rate is -0.1; expected 0 to 10"),
        ({"sigma_min": 25.0, "sigma_max": 250.0}, "divide 8-bit levels by 255"),
        ({"sigma_min": 0.0}, "sigma_min is 0, too small for levels uniform in log sigma"),
        ({"sigma_min": 1e-320}, "too small"),
        ({"sigma_max": 0.0}, "noise levels"),
        ({"sigma_max": -1.0}, "noise levels"),
        ({"sigma_min": 0.5}, "noise levels"),
        ({"sigma_max": float("nan")}, "sigma_max is nan; expected a finite number"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        TrainingConfig(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noise": "pink"}, "expected 'log' or 'uniform'"),
        ({"noise": "log"}, "from 0 on; expected 'log' or 'uniform'"),
        ({"start": "flat"}, "expected 'student' or 'paper'"),
    ],
)
def test_settings_of_the_paper_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        PaperConfig(**changes)


def test_settings_of_numpy_are_kept_as_plain_numbers():
    """A run folder keeps them as JSON."""
    config = TrainingConfig(size=np.int64(5), seed=np.uint8(3), sigma_max=np.float32(0.5), reach=1)
    assert json.loads(json.dumps(asdict(config))) == asdict(TrainingConfig(size=5, seed=3, sigma_max=0.5))


@pytest.mark.parametrize(("filter_rate", "logit_rate"), [(1.0, 0.01), (0.003, 10.0), (1.0, 10.0)])
def test_the_largest_rates_end_in_a_prior_or_in_a_refusal(filter_rate, logit_rate):
    """No warning and no traceback of linear algebra, whatever becomes of the filters."""
    config = small_config(size=3, steps=300, filter_rate=filter_rate, logit_rate=logit_rate)
    training = Training(config, small_source(3))
    with suppress(TrainingError):
        finished(training, 300)
    assert all(np.isfinite(block).all() for block in (training.prior().filters.matrix, training.prior().experts.logits))


def test_a_training_that_diverges_says_so(monkeypatch):
    training = Training(small_config(), small_source())
    monkeypatch.setattr(training._optimizer, "step", lambda point, *_: (1.0, [1e9 * block for block in point]))
    with pytest.raises(TrainingError, match="diverge at step 1; lower the rates"):
        finished(training, 1)


@both_optimizers
def test_the_next_batch_is_drawn_while_a_step_works(optimizer, monkeypatch):
    """Whatever the optimiser: every batch but the first is begun in the background, and once."""
    monkeypatch.setattr(threads, "get_num_threads", lambda: 2)
    training = small_config(optimizer, steps=4).training(small_source())
    begun = []
    monkeypatch.setattr(patch_training, "meanwhile", lambda draw: begun.append(draw) or draw)
    for report in training.run(4):
        assert [draw.args for draw in begun] == [(step,) for step in range(1, min(report.step + 1, 4))]


def test_a_batch_drawn_ahead_is_not_taken_for_that_of_another_step(monkeypatch):
    """A training that goes back to an earlier state, while the next batch is drawn already."""
    monkeypatch.setattr(threads, "get_num_threads", lambda: 2)
    whole, other = trained(small_config(), steps=4), trained(small_config(), steps=1)
    earlier = {name: array.copy() for name, array in other.state().items()}
    for _ in other.run(2):
        pass
    other.restore(earlier)
    for _ in other.run(3):
        pass
    for one, two in zip(whole.point, other.point, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_source_or_a_state_of_another_size_is_refused():
    with pytest.raises(InvalidInputError, match="the source cuts 3×3 patches"):
        Training(small_config(), small_source(3))
    state = trained(small_config(), steps=1).state()
    with pytest.raises(InvalidInputError, match="other sizes"):
        Training(small_config(components=11), small_source()).restore(state)


TRUE = sparse_prior()


def fresh_batch(count=40_000):
    rng = np.random.default_rng(99)
    clean = TRUE.sample(count, rng=rng).T
    noise = rng.standard_normal(clean.shape)
    return [NoisyBatch(clean, noise - noise.mean(axis=0), 0.4 * (1.0 - rng.random(count)))]


def errors_of_the_marginals(prior, sigma, count=40_000):
    """‖psi_j − h_j‖² / ‖h_j‖² for each filter of `prior`, h_j the histogram of its responses to noisy true patches."""
    noisy = TRUE.sample(count, sigma, rng=np.random.default_rng(5))
    responses = prior.filters.analyse(noisy)
    edges = np.linspace(-1.5, 1.5, 121)
    centres = np.repeat((edges[1:, None] + edges[:-1, None]) / 2, prior.filters.count, axis=1)
    learnt = np.exp(prior.experts.log_density(centres, sigma * prior.filters.norms))
    drawn = np.stack([np.histogram(u, edges, density=True)[0] for u in responses.T], axis=1)
    return ((learnt - drawn) ** 2).sum(axis=0) / (drawn**2).sum(axis=0)


@both_optimizers
def test_a_short_training_recovers_a_known_prior(optimizer):
    """Loss within 1 % of the true prior's, marginals recovered, and a density that is nearly the true one.

    The filters themselves come in any order and sign.
    """
    batch = fresh_batch()

    def loss(point):
        return match_scores(batch, 1.0, point, ())[0]

    loss_of_truth = loss([TRUE.filters.matrix, TRUE.experts.logits])
    config = config_of(optimizer, size=3, components=31, batch=2000, steps=400, filter_rate=0.01, logit_rate=0.1)
    training = config.training(DrawnFromPrior(TRUE))
    assert loss(training.point) > 1.2 * loss_of_truth
    assert errors_of_the_marginals(training.prior(), 0.025).mean() > 0.3  # the start is far off

    for _ in training.run(config.steps):
        pass
    prior = training.prior()
    assert loss_of_truth <= loss([prior.filters.matrix, prior.experts.logits]) < 1.01 * loss_of_truth
    for sigma in (0.025, 0.1):
        errors = errors_of_the_marginals(prior, sigma)
        assert errors.mean() < 0.01  # seen: 0.004; the histogram of the true marginals has 0.001
        assert errors.max() < 0.05
    noisy = TRUE.sample(20_000, 0.05, rng=np.random.default_rng(6))
    divergence = (TRUE.log_prob(noisy, 0.05) - prior.log_prob(noisy, 0.05)).mean()  # of Kullback and Leibler, in nats
    assert 0 < divergence < 0.15  # seen: 0.04 and 0.07, for eight dimensions


def test_the_marginals_of_the_true_prior_are_right_and_others_are_not():
    assert errors_of_the_marginals(TRUE, 0.025).max() < 0.01
    wrong = type(TRUE)(TRUE.filters, type(TRUE.experts)(TRUE.experts.logits[::-1]))
    assert errors_of_the_marginals(wrong, 0.025).max() > 0.3


def test_the_weights_start_as_asked_for():
    source = PatchSource([np.zeros((9, 9), np.uint8)], 3)
    for config, experts in (
        (TrainingConfig(size=3), Experts.student(8)),
        (PaperConfig(size=3, start="student"), Experts.student(8)),
        (PaperConfig(size=3), initial_experts(8)),
    ):
        np.testing.assert_array_equal(config.training(source).point[1], experts.logits)
