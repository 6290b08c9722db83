"""Tuning a mixture: its gradient, what it is the soft version of, and that its state is whole."""

import numpy as np
import pytest
import torch
from synthetic import oriented_mixture

from heatprior.data.datasets import PatchSource
from heatprior.noise_value import as_noise
from heatprior.priors.expectation_maximisation import FLOOR
from paper.tuning import soft_choice
from paper.tuning.run import BLOCKS, Tuning, TuningConfig, parts_of
from paper.tuning.soft_choice import Subspace, soft_changes
from paper.tuning.unrolled import denoised, split

PRIOR = oriented_mixture()
CONFIG = TuningConfig(steps=4, crops=2, side=32, scales=2, averaged=2)


def images():
    rng = np.random.default_rng(0)
    return [np.clip(0.5 + 0.1 * rng.standard_normal((40, 50)).cumsum(0).cumsum(1) / 20, 0, 1) for _ in range(2)]


def tuning():
    return Tuning(CONFIG, PRIOR, PatchSource(images(), CONFIG.side))


def test_the_gradient_by_hand_is_the_gradient():
    torch.manual_seed(0)
    shapes = [(5, 9), (4, 9), (3, 4), (3,), (3, 4), (3,)]
    given = [torch.rand(shape, dtype=torch.float64).requires_grad_() for shape in shapes]
    assert torch.autograd.gradcheck(soft_choice._Responses.apply, given)


def test_with_one_shape_the_soft_choice_is_the_posterior_mean():
    """And with several it is not: the posterior mean counts contrasts by their sum, the choice by their largest."""
    mixture, _ = parts_of([block.double() for block in tuning().point])
    y = 0.1 * torch.randn(40, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = y - y.mean(-1, keepdim=True)
    alone = mixture._replace(
        **{name: getattr(mixture, name)[:1] for name in ("axes", "log_variances", "logits", "log_confidences")}
    )
    changes, counts = soft_changes(y, torch.tensor(0.1, dtype=torch.float64), alone, Subspace.of(alone))
    prior = type(PRIOR)(PRIOR.covariances[:1], PRIOR.log_weights[:1], PRIOR.contrasts)
    expected = 0.01 * prior.score(y.numpy(), 0.1)
    np.testing.assert_allclose(changes.numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(counts.numpy(), 1.0)
    others = soft_changes(y, torch.tensor(0.1, dtype=torch.float64), mixture, Subspace.of(mixture))[0].numpy()
    assert np.abs(others - expected).max() > 1e-3


def test_a_run_goes_on_from_its_state_with_the_same_bits_and_ends_in_a_mixture():
    whole, first, second = tuning(), tuning(), tuning()
    losses = [report.loss for report in whole.run(4)]
    list(first.run(2))
    second.restore(first.state())
    assert [report.loss for report in second.run(4)] == losses[2:]
    for name, tensor in whole.state().items():
        assert torch.equal(tensor, second.state()[name]), name
    assert not torch.equal(whole.point[0], tuning().point[0])
    prior = whole.prior()
    np.testing.assert_allclose(prior.turns @ prior.turns.swapaxes(1, 2), np.eye(15)[None].repeat(3, 0), atol=1e-9)
    assert prior.schedules.strides == (2, 2)
    assert set(BLOCKS) < set(whole.state())


def test_a_tuned_prior_is_where_another_run_begins():
    run = tuning()
    generator = torch.Generator().manual_seed(0)
    for block in run._average[4:]:  # far from where a run begins
        block.add_(0.3 * torch.rand(block.shape, generator=generator))
    prior = run.prior({"tuning": {}})
    again = Tuning(CONFIG, prior, PatchSource(images(), CONFIG.side))
    for name, before, now in list(zip(BLOCKS, run._average, again.point, strict=True))[4:]:
        expected = before - before.max() if name in ("log_confidences", "log_window") else before  # ratios count
        np.testing.assert_allclose(now.numpy(), expected.numpy(), atol=5e-3, err_msg=name)  # rounded on the card
    assert prior.card["step"]["window"] != np.ones((4, 4)).tolist()


def test_variances_that_vanished_leave_a_mixture_all_the_same():
    run = tuning()
    run._average[BLOCKS.index("log_variances")][0, -1] = -40.0
    variances = run.prior().variances
    assert variances.min() == pytest.approx(FLOOR, rel=1e-6)
    assert np.sort(variances.ravel())[1] > 10 * FLOOR  # the others stay what they are


def test_every_parameter_has_a_gradient():
    run = tuning()
    leaves = [block.requires_grad_() for block in run.point]
    mixture, plan = parts_of(leaves)
    clean, noisy, sigma = run._batch(0)
    (denoised(noisy, sigma, mixture, Subspace.of(mixture), plan, 2) - clean).square().mean().backward()
    assert all(leaf.grad is not None and leaf.grad.abs().max() > 0 for leaf in leaves)


def test_the_unrolled_steps_are_near_those_of_the_library():
    """Which leaves out unlikely shapes, and has patches at the very edge of the margin in the second step."""
    run = tuning()
    mixture, plan = parts_of(run.point)
    prior = run.prior()
    clean, noisy, sigma = run._batch(1)
    with torch.no_grad():
        soft = split(noisy[:1], sigma, mixture, Subspace.of(mixture), plan)[0].numpy()
    from pipelines import half_quadratic_splitting

    hard = half_quadratic_splitting(noisy[0].numpy(), as_noise(sigma), prior=prior)
    difference = np.sqrt(np.mean((soft - hard)[4:-4, 4:-4] ** 2))
    assert difference < 0.25 * np.sqrt(np.mean((hard - noisy[0].numpy()) ** 2))
    np.testing.assert_array_less(np.mean((soft - clean[0].numpy()) ** 2), np.mean((noisy - clean)[0].numpy() ** 2))
