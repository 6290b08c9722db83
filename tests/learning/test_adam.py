import numpy as np
import pytest
from scipy.linalg import helmert

from heatprior.learning.patch_training import NORM_RATE, OrthogonalAdam, polar_factor, project_orthogonal

COUNT, PIXELS = 5, 9


def targets(*, scales=(1.0, 2.0, 0.5, 3.0, 1.5)):
    """An orthogonal bank and logits to be found."""
    rng = np.random.default_rng(5)
    directions = polar_factor(rng.normal(size=(COUNT, PIXELS - 1))) @ helmert(PIXELS)
    return [np.array(scales)[:, None] * directions, rng.normal(size=(COUNT, 4))]


def distance_to(goal):
    """½‖x − goal‖² over both blocks: its minimum is feasible, so it is the constrained one too."""

    def gradient(point):
        return value(point), [x - y for x, y in zip(point, goal, strict=True)]

    def value(point):
        return sum(float(((x - y) ** 2).sum()) / 2 for x, y in zip(point, goal, strict=True))

    return gradient


def start():
    rng = np.random.default_rng(1)
    return [project_orthogonal(rng.normal(size=(COUNT, PIXELS))), np.zeros((COUNT, 4))]


def start_near(goal):
    """The goal turned within the span of its filters: that span is what turns leave as it is."""
    norms = np.linalg.norm(goal[0], axis=1, keepdims=True)
    rng = np.random.default_rng(2)
    turn = polar_factor(np.eye(COUNT) + 0.3 * rng.normal(size=(COUNT, COUNT)))
    if np.linalg.det(turn) < 0:
        turn[0] *= -1
    return [turn @ (goal[0] / norms), np.zeros((COUNT, 4))]


def run(objective, point, steps, *, total=None, done=0, optimizer=None):
    """With step sizes that fall to zero as a cosine."""
    optimizer, total = optimizer or OrthogonalAdam.begin(point), total or steps
    for step in range(done, done + steps):
        cooling = 0.5 * (1.0 + np.cos(np.pi * step / total))
        _, point = optimizer.step(point, objective, (0.05 * cooling, 0.1 * cooling))
    return point


def test_it_finds_an_orthogonal_bank_its_norms_and_the_logits():
    goal = targets()
    found = run(distance_to(goal), start_near(goal), 1500)
    for one, two in zip(found, goal, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-4)


def test_weak_filters_turn_as_readily_as_strong_ones():
    """Scales over four decades: a step size shared by all entries would leave the weak ones where they are."""
    goal = targets(scales=(1e-2, 1e-1, 1.0, 10.0, 100.0))
    begin = start_near(goal)
    begin[0] *= np.linalg.norm(goal[0], axis=1, keepdims=True)
    found = run(distance_to(goal), begin, 2000)
    cosines = (found[0] * goal[0]).sum(axis=1) / np.linalg.norm(found[0], axis=1) / np.linalg.norm(goal[0], axis=1)
    before = (begin[0] * goal[0]).sum(axis=1) / np.linalg.norm(begin[0], axis=1) / np.linalg.norm(goal[0], axis=1)
    assert before.min() < 0.95
    assert cosines.min() > 0.9999


def test_filters_stay_orthogonal_and_zero_mean_at_every_step():
    objective, point = distance_to(targets()), start()
    optimizer = OrthogonalAdam.begin(point)
    for _ in range(50):
        _, point = optimizer.step(point, objective, (0.2, 0.1))
        directions = point[0] / np.linalg.norm(point[0], axis=1, keepdims=True)
        np.testing.assert_allclose(directions @ directions.T, np.eye(COUNT), atol=1e-12)
        np.testing.assert_allclose(point[0].sum(axis=1), 0.0, atol=1e-12)


def test_without_the_polar_factor_they_would_not():
    """The control: the same turns, not brought back to the constraint."""
    turn = np.triu(np.full((COUNT, COUNT), 0.2), 1)
    directions = (np.eye(COUNT) - (turn - turn.T)) @ polar_factor(np.random.default_rng(0).normal(size=(COUNT, PIXELS)))
    assert np.abs(directions @ directions.T - np.eye(COUNT)).max() > 0.01


def test_the_first_step_goes_by_the_rates_against_the_gradient():
    objective, point = distance_to(targets()), start()
    value, (_, in_logits) = objective(point)
    value_before, moved = OrthogonalAdam.begin(point).step(point, objective, (0.01, 0.02))
    assert value_before == value
    np.testing.assert_allclose(moved[1], point[1] - 0.02 * in_logits / np.sqrt((in_logits**2).mean()), rtol=1e-6)
    growth = np.abs(np.log(np.linalg.norm(moved[0], axis=1) / np.linalg.norm(point[0], axis=1)))
    np.testing.assert_allclose(growth, NORM_RATE * 0.01, rtol=1e-6)
    overlap = moved[0] @ point[0].T
    angles = overlap / np.linalg.norm(moved[0], axis=1)[:, None] / np.linalg.norm(point[0], axis=1)
    apart = ~np.eye(COUNT, dtype=bool)
    assert np.abs(angles[apart]) == pytest.approx(0.01, rel=0.05)
    assert objective(moved)[0] < value


def test_it_goes_on_from_its_state_with_the_same_bits():
    objective = distance_to(targets())
    whole = run(objective, start(), 60)
    optimizer = OrthogonalAdam.begin(start())
    point = run(objective, start(), 25, total=60, optimizer=optimizer)
    state = {name: array.copy() for name, array in optimizer.state().items()}
    resumed = run(objective, point, 35, total=60, done=25, optimizer=OrthogonalAdam.from_state(state))
    for one, two in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(one, two)
