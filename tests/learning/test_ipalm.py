"""iPALM keeps its bound, and ends where the conditions of a minimum under constraints hold."""

import numpy as np
import pytest

from examples import filter_bank
from heatprior.learning.patch_training import project_orthogonal
from paper.learning.ipalm import SLACK, IPalm, Objective


def quadratic(seed=0, radius=0.5):
    """f(x, y) = ½‖A x + B y − c‖² + ½‖y‖² with x in a ball: strongly convex in each block, with a coupling."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.standard_normal((12, 5)), 3.0 * rng.standard_normal((12, 4)), rng.standard_normal(12)

    def value(point):
        x, y = point
        return 0.5 * float(((a @ x + b @ y - c) ** 2).sum() + (y**2).sum())

    def gradient(point, block):
        x, y = point
        residual = a @ x + b @ y - c
        both = [a.T @ residual, b.T @ residual + y]
        return value(point), both if block is None else [both[block]]

    def onto_ball(x):
        return x * min(1.0, radius / max(np.linalg.norm(x), 1e-300))

    return Objective(value, gradient, (onto_ball, None))


def start():
    return [np.full(5, 0.1), np.ones(4)]


def projected(objective, point):
    return [x if project is None else project(x) for project, x in zip(objective.projections, point, strict=True)]


def distance_from_kkt(objective, point):
    """Zero where every block is the projection of its own gradient step: no feasible direction leads down."""
    _, gradients = objective.gradient(point, None)
    stepped = projected(objective, [x - 0.01 * gradient for x, gradient in zip(point, gradients, strict=True)])
    return max(np.abs(after - before).max() for after, before in zip(stepped, point, strict=True))


def run(objective, point, steps, optimizer=None):
    optimizer = optimizer or IPalm.begin(point)
    for _ in range(steps):
        _, point = optimizer.step(point, objective)
    return point


@pytest.mark.parametrize("radius", [0.05, 0.5, 100.0], ids=["small ball", "ball", "ball that does not matter"])
def test_reaches_a_kkt_point_of_a_quadratic_under_a_constraint(radius):
    objective = quadratic(radius=radius)
    point = run(objective, start(), 2000)
    # The slack of 1e-9 in the bound lets the function rise by as much, and the point move by the root of it.
    assert distance_from_kkt(objective, point) < 1e-5
    assert np.linalg.norm(point[0]) <= radius * (1 + 1e-12)
    active = np.linalg.norm(point[0]) > radius * (1 - 1e-9)
    assert active == (radius < 100.0)
    if active:  # the gradient points along the normal of the ball, outwards
        _, (gradient,) = objective.gradient(point, 0)
        cosine = -gradient @ point[0] / np.linalg.norm(gradient) / np.linalg.norm(point[0])
        assert cosine == pytest.approx(1.0, abs=1e-6)


def test_a_point_that_is_not_a_minimum_is_no_kkt_point():
    assert distance_from_kkt(quadratic(), run(quadratic(), start(), 3)) > 1e-4


def test_no_feasible_point_is_lower_than_its_end():
    objective, rng = quadratic(), np.random.default_rng(1)
    point = run(objective, start(), 2000)
    for size in np.repeat([1e-3, 0.1, 1.0], 100):
        other = [x + size * rng.standard_normal(x.shape) for x in point]
        assert objective.value(projected(objective, other)) >= objective.value(point) * (1 - 1e-8)


def test_finds_the_nearest_orthogonal_filters():
    """½‖K − M‖² over orthogonal filters, whose minimum is the projection of M."""
    given = filter_bank(3, 5).matrix + 0.05 * np.random.default_rng(0).standard_normal((5, 9))
    objective = Objective(
        lambda point: 0.5 * float(((point[0] - given) ** 2).sum()),
        lambda point, _: (0.5 * float(((point[0] - given) ** 2).sum()), [point[0] - given]),
        (lambda filters: project_orthogonal(filters, steps=None),),
    )
    (found,) = run(objective, [filter_bank(3, 5).matrix.copy()], 200)
    # The inner alternation stops at a relative fall of 1e-14 of the squared distance, whose root is its accuracy.
    np.testing.assert_allclose(found, project_orthogonal(given, steps=None), rtol=0, atol=1e-6)


def spied_on(objective, seen):
    """The same objective, which notes where gradients are asked for."""

    def gradient(point, block):
        value, gradients = objective.gradient(point, block)
        seen.append((block, [x.copy() for x in point], value, gradients[0]))
        return value, gradients

    return Objective(objective.value, gradient, objective.projections)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_never_broken(seed):
    objective, seen = quadratic(seed), []
    spied, point = spied_on(objective, seen), start()
    optimizer = IPalm.begin(point)
    for _ in range(300):
        seen.clear()
        _, after = optimizer.step(point, spied)
        assert [block for block, *_ in seen] == [0, 1]
        for block, extrapolated, value, gradient in seen:
            lipschitz = optimizer.lipschitz[block] / optimizer.relax  # before it was relaxed
            move = after[block] - extrapolated[block]
            bound = value + gradient @ move + 0.5 * lipschitz * move @ move
            trial = [*extrapolated]
            trial[block] = after[block]
            assert objective.value(trial) <= bound + 2 * SLACK * abs(value)
        point = after


def test_a_bound_that_is_checked_at_every_fourth_step_leads_to_the_same_minimum():
    objective = quadratic()
    checked = []

    def value(point):
        checked.append(optimizer.done)
        return objective.value(point)

    optimizer, point = IPalm.begin(start(), check_every=4), start()
    for _ in range(2000):
        _, point = optimizer.step(point, Objective(value, objective.gradient, objective.projections))
    assert sorted(set(checked)) == list(range(0, 2000, 4))
    assert distance_from_kkt(objective, point) < 1e-5  # as with a check at every step, above
    never = IPalm.begin(start(), check_every=10**9)  # the control: after the first step, L only falls
    with np.errstate(over="ignore", invalid="ignore"):
        assert not distance_from_kkt(objective, run(objective, start(), 2000, never)) < 1e-5


def test_backtracking_finds_the_curvature_of_each_block():
    """The constants end between what the bound needs, and that over the last factor of two."""
    objective, point = quadratic(radius=100.0), start()
    optimizer = IPalm.begin(point)
    most = np.zeros(2)
    for _ in range(300):
        _, point = optimizer.step(point, objective)
        most = np.maximum(most, optimizer.lipschitz)
    step = 1e-4
    for block, size in enumerate((5, 4)):
        base = objective.gradient(point, block)[1][0]
        columns = []
        for i in range(size):
            moved = [x.copy() for x in point]
            moved[block][i] += step
            columns.append((objective.gradient(moved, block)[1][0] - base) / step)
        assert most[block] <= 2.0 * np.linalg.eigvalsh(np.array(columns)).max()


@pytest.mark.parametrize("check_every", [1, 4])
def test_it_is_deterministic_and_goes_on_from_its_state_with_the_same_bits(check_every):
    objective = quadratic()
    first, again = (run(objective, start(), 60, IPalm.begin(start(), check_every)) for _ in range(2))
    optimizer = IPalm.begin(start(), check_every)
    point = run(objective, start(), 25, optimizer)
    resumed = run(objective, point, 35, IPalm.from_state({k: v.copy() for k, v in optimizer.state().items()}))
    for one, two, three in zip(first, again, resumed, strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, three)


def test_a_state_from_before_steps_were_counted_is_checked_at_every_step():
    state = IPalm.begin(start(), check_every=4).state()
    del state["counts"]
    optimizer = IPalm.from_state(state)
    assert (optimizer.check_every, optimizer.done) == (1, 0)
