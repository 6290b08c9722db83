import numpy as np
import pytest
from test_ipalm import distance_from_kkt, quadratic, start
from test_ipalm import run as run_ipalm

from heatprior.learning.adam import ProjectedAdam


def run(objective, point, steps, *, total=None, done=0, optimizer=None):
    """With step sizes that fall to zero as a cosine."""
    optimizer, total = optimizer or ProjectedAdam.begin(point), total or steps
    for step in range(done, done + steps):
        cooling = 0.5 * (1.0 + np.cos(np.pi * step / total))
        _, point = optimizer.step(point, objective, (0.05 * cooling, 0.05 * cooling))
    return point


def test_reaches_the_minimum_of_a_quadratic_whose_constraint_does_not_matter():
    objective = quadratic(radius=100.0)
    assert distance_from_kkt(objective, run(objective, start(), 3000)) < 1e-6


def test_under_a_constraint_it_ends_at_the_minimum():
    objective = quadratic(radius=0.5)
    point, best = run(objective, start(), 3000), run_ipalm(objective, start(), 2000)
    assert np.linalg.norm(point[0]) <= 0.5 * (1 + 1e-12)
    assert objective.value(point) == pytest.approx(objective.value(best), rel=1e-6)


def test_a_step_size_for_each_entry_would_end_elsewhere():
    """The control: steps of equal length in every entry, projected all the same."""
    objective, point = quadratic(radius=0.5), start()
    for step in range(3000):
        _, gradients = objective.gradient(point, None)
        moved = [x - 0.01 * (1 - step / 3000) * np.sign(g) for x, g in zip(point, gradients, strict=True)]
        point = [objective.projections[0](moved[0]), moved[1]]
    assert objective.value(point) > 1.01 * objective.value(run_ipalm(objective, start(), 2000))


def test_the_first_step_goes_by_the_rate_against_the_gradient():
    objective = quadratic(radius=100.0)
    point = start()
    value, gradients = objective.gradient(point, None)
    value_before, moved = ProjectedAdam.begin(point).step(point, objective, (0.01, 0.02))
    assert value_before == value
    for before, after, gradient, rate in zip(point, moved, gradients, (0.01, 0.02), strict=True):
        np.testing.assert_allclose(after - before, -rate * gradient / np.sqrt((gradient**2).mean()), rtol=1e-6)


def test_it_goes_on_from_its_state_with_the_same_bits():
    objective = quadratic()
    whole = run(objective, start(), 60)
    optimizer = ProjectedAdam.begin(start())
    point = run(objective, start(), 25, total=60, optimizer=optimizer)
    state = {name: array.copy() for name, array in optimizer.state().items()}
    resumed = run(objective, point, 35, total=60, done=25, optimizer=ProjectedAdam.from_state(state))
    for one, two in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(one, two)
