"""The loss of fine-tuning is the error of the denoised image, and its gradient is exact."""

import numpy as np
import pytest
from pipelines import half_quadratic_splitting
from synthetic import landscape, sparse_prior

from heatprior.kernels import threads
from heatprior.priors.protocol import denoise_once
from heatprior.priors.schedules import Schedules
from paper.learning.averaging_gradient import AveragingStep, add_up, cut
from paper.learning.denoising_loss import SIGMA_EXPONENT, UNCOUNTED_EDGE, Denoising, NoisyCrops

SCHEDULE = np.array([[0.6, 0.5, 0.3], [0.3, 0.1, 0.02]])
NO_STEPS = np.empty((2, 0))


def crops_of(sigma, *, side=20, count=2, seed=0):
    rng = np.random.default_rng(seed)
    clean = np.stack([landscape((side, side), rng) for _ in range(count)])
    return NoisyCrops(clean, rng.standard_normal(clean.shape), sigma)


def point_of(prior):
    return [np.array(prior.filters.matrix), np.array(prior.experts.logits)]


def test_adding_up_is_the_adjoint_of_cutting():
    rng = np.random.default_rng(0)
    images, patches = rng.normal(size=(2, 9, 7)), rng.normal(size=(9, 2 * 7 * 5))
    assert np.vdot(cut(images, 3), patches) == pytest.approx(np.vdot(images, add_up(patches, images.shape, 3)))


def test_a_step_is_that_of_denoising():
    prior, crops = sparse_prior(), crops_of(0.1)
    noisy = crops.clean + crops.sigma * crops.noise
    result, _ = AveragingStep(*point_of(prior), prior.experts.reach, crops.sigma, dtype=np.float64).forward(noisy)
    for image, step in zip(noisy, result, strict=True):
        np.testing.assert_allclose(step, denoise_once(prior, image, crops.sigma), atol=2e-4)  # coarser table
        assert np.abs(image - step).max() > 0.05


def test_the_loss_is_the_error_of_the_denoised_image():
    prior, crops = sparse_prior(), crops_of(0.1, count=1)
    noisy = (crops.clean + crops.sigma * crops.noise)[0]
    loss = Denoising([crops], prior.experts.reach, cells=2000)
    once = denoise_once(prior, noisy, crops.sigma)
    often = half_quadratic_splitting(
        noisy, crops.sigma, prior=prior, schedule=Schedules.constant(*map(tuple, SCHEDULE))
    )
    errors = [
        np.mean((result - crops.clean[0])[margin:-margin, margin:-margin] ** 2)
        for result, margin in ((once, prior.filters.size - 1), (often, UNCOUNTED_EDGE))
    ]
    weight = crops.sigma**-SIGMA_EXPONENT
    assert loss.gradient(point_of(prior), [NO_STEPS])[0] == pytest.approx(weight * errors[0], rel=1e-3)
    assert loss.gradient(point_of(prior), [SCHEDULE])[0] == pytest.approx(weight * sum(errors), rel=1e-3)


def test_the_exponent_weighs_noise_levels():
    prior, crops = sparse_prior(), crops_of(0.3)
    unweighted = Denoising([crops], prior.experts.reach, exponent=0.0)
    plain, (in_filters, _), _ = unweighted.gradient(point_of(prior), [SCHEDULE])
    for exponent in (SIGMA_EXPONENT, -0.2):
        loss = Denoising([crops], prior.experts.reach, exponent=exponent)
        value, (gradient, _), _ = loss.gradient(point_of(prior), [SCHEDULE])
        assert value == pytest.approx(plain * crops.sigma**-exponent, rel=1e-6)
        np.testing.assert_allclose(gradient, in_filters * crops.sigma**-exponent, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("schedule", [NO_STEPS, SCHEDULE])
@pytest.mark.parametrize("block", ["filters", "logits", "schedule"])
def test_the_gradient_is_that_by_differences(block, schedule):
    prior = sparse_prior()
    rng = np.random.default_rng(3)
    # the fine table makes what is left out, that nodes move with norms and levels, small
    loss = Denoising([crops_of(0.1), crops_of(0.3, seed=1)], prior.experts.reach, np.float64, 8192)
    schedules = [schedule, 0.9 * schedule]
    filters, logits = point_of(prior)
    turn = 0.3 * rng.normal(size=filters.shape) * (block == "filters")
    lift = rng.normal(size=logits.shape) * (block == "logits")
    bend = [0.1 * rng.normal(size=schedule.shape) * (block == "schedule") for _ in schedules]

    def value(t):
        moved = [at + t * towards for at, towards in zip(schedules, bend, strict=True)]
        return loss.gradient([filters + t * turn, logits + t * lift], moved)[0]

    _, (in_filters, in_logits), in_schedules = loss.gradient([filters, logits], schedules)
    slope = np.vdot(in_filters, turn) + np.vdot(in_logits, lift)
    slope += sum(np.vdot(found, towards) for found, towards in zip(in_schedules, bend, strict=True))
    step = 1e-4
    assert slope == pytest.approx((value(step) - value(-step)) / (2 * step), rel=2e-3, abs=1e-9)
    if slope:
        assert 1.05 * slope != pytest.approx((value(step) - value(-step)) / (2 * step), rel=2e-3, abs=1e-9)


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    prior = sparse_prior()
    loss = Denoising([crops_of(0.1), crops_of(0.3, seed=1)], prior.experts.reach)
    results = []
    for count in (1, 2):
        monkeypatch.setattr(threads, "get_num_threads", lambda count=count: count)
        value, in_prior, in_schedules = loss.gradient(point_of(prior), [SCHEDULE, SCHEDULE])
        results.append([np.array(value), *in_prior, *in_schedules])
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
