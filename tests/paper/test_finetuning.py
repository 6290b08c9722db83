"""Fine-tuning keeps the constraints of a prior, denoises better than it, and repeats itself bit by bit."""

import numpy as np
import pytest
from pipelines import empirical_bayes, half_quadratic_splitting
from synthetic import landscape, sparse_prior

from heatprior import InvalidInputError
from heatprior.data.datasets import PatchSource
from heatprior.priors.schedules import Schedules
from paper.learning.denoising_loss import SIGMA_EXPONENT
from paper.learning.finetuning import SIGMAS, FineTuning, FineTuningConfig, schedule_weights

FIRST = Schedules.constant((0.5, 0.3), (0.2, 0.02))


def images(count=4):
    rng = np.random.default_rng(0)
    return [landscape((40, 50), rng) for _ in range(count)]


def tuning_of(**changes):
    settings = {"averaging_steps": 6, "splitting_steps": 4, "side": 20, "levels": 2, "crops": 2, **changes}
    config = FineTuningConfig(**settings)
    schedules = [FIRST.levels[0]] * len(SIGMAS), [FIRST.weights[0]] * len(SIGMAS)
    return FineTuning(config, sparse_prior(), PatchSource(images(), config.side), *schedules)


def test_filters_stay_orthogonal_and_schedules_valid():
    tuning = tuning_of()
    for progress in tuning.run(100):
        filters = tuning.point[0]
        norms = np.linalg.norm(filters, axis=1)
        assert np.abs(filters @ filters.T / np.outer(norms, norms) - np.eye(len(filters))).max() < 1e-6, progress
    assert progress.step == tuning.config.steps == 10
    prior = tuning.prior({"name": "tuned"})
    assert prior.card["name"] == "tuned"
    assert prior.schedules.steps == 2
    assert prior.card["fine-tuning"]["steps_done"] == 10


def test_schedules_move_in_the_second_phase_only():
    tuning = tuning_of()
    begun = tuning.point[2].copy()
    list(tuning.run(6))
    np.testing.assert_array_equal(tuning.point[2], begun)
    list(tuning.run(1))
    assert (tuning.point[2] != begun).any()


def test_the_last_phase_leaves_schedules_and_favours_strong_noise():
    with_last, without = tuning_of(last_steps=3), tuning_of()
    list(with_last.run(10))
    list(without.run(10))
    np.testing.assert_array_equal(with_last.point[0], without.point[0])  # until then it is the same run
    schedules, filters = with_last.point[2].copy(), with_last.point[0].copy()
    assert len(list(with_last.run(100))) == 3
    np.testing.assert_array_equal(with_last.point[2], schedules)
    assert (with_last.point[0] != filters).any()
    assert [with_last.config.phase(done).exponent for done in (0, 6, 10)] == [SIGMA_EXPONENT, SIGMA_EXPONENT, -0.2]


def test_it_denoises_better_than_before():
    tuning = tuning_of(averaging_steps=60, splitting_steps=30, averaged=10)
    list(tuning.run(100))
    prior, tuned = sparse_prior(), tuning.prior()
    rng = np.random.default_rng(9)
    clean = landscape((40, 50), rng)
    noisy = clean + 0.1 * rng.standard_normal(clean.shape)

    def error(result):
        return float(np.mean((result - clean) ** 2))

    assert error(empirical_bayes(noisy, 0.1, prior=tuned)) < 0.98 * error(empirical_bayes(noisy, 0.1, prior=prior))
    before = half_quadratic_splitting(noisy, 0.1, prior=prior, schedule=FIRST)
    assert error(half_quadratic_splitting(noisy, 0.1, prior=tuned)) < 0.98 * error(before)


@pytest.mark.parametrize("break_after", [1, 6, 7, 9, 10, 12])
def test_a_run_goes_on_from_its_state_to_the_same_bits(break_after):
    whole, first, second = (tuning_of(last_steps=3) for _ in range(3))
    list(whole.run(100))
    list(first.run(break_after))
    second.restore({name: array.copy() for name, array in first.state().items()})
    list(second.run(100))
    assert whole.state().keys() == second.state().keys()
    for name, array in whole.state().items():
        np.testing.assert_array_equal(array, second.state()[name], err_msg=name)
    assert (first.state()["filters"] != whole.state()["filters"]).any()


def test_noise_levels_between_those_of_schedules_are_mixed():
    np.testing.assert_allclose(schedule_weights(SIGMAS[1]), [0, 1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(schedule_weights(np.sqrt(SIGMAS[0] * SIGMAS[1])), [0.5, 0.5, 0, 0])
    np.testing.assert_array_equal(schedule_weights(1e-6), [1, 0, 0, 0])
    np.testing.assert_array_equal(schedule_weights(1.0), [0, 0, 0, 1])


def test_crops_of_another_side_and_too_small_ones_are_refused():
    schedules = [FIRST.levels[0]] * 4, [FIRST.weights[0]] * 4
    with pytest.raises(InvalidInputError, match="cuts 12×12 patches but the settings ask for 20×20"):
        FineTuning(FineTuningConfig(side=20), sparse_prior(), PatchSource(images(), 12), *schedules)
    with pytest.raises(InvalidInputError, match="give at least 9"):
        FineTuning(FineTuningConfig(side=8), sparse_prior(), PatchSource(images(), 8), *schedules)


@pytest.mark.parametrize(
    "changes", [{"levels": 1}, {"crops": 0}, {"averaging_steps": -1}, {"sigma_min": 0.5}, {"sigma_min": 0.0}]
)
def test_settings_that_make_no_sense_are_refused(changes):
    with pytest.raises(InvalidInputError, match=r"expected|must not"):
        FineTuningConfig(**changes)


def test_a_state_of_other_sizes_is_refused():
    tuning = tuning_of()
    with pytest.raises(InvalidInputError, match="other sizes"):
        tuning.restore({**tuning.state(), "logits": np.zeros((2, 2))})
