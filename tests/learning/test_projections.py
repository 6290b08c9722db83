"""Algorithm 1 and the appendix: the nearest bank of orthogonal filters."""

from itertools import islice

import numpy as np
import pytest
from scipy.linalg import helmert

from examples import filter_bank
from heatprior import FilterBank, InvalidInputError
from heatprior.learning.patch_training import orthogonal_iterates, polar_factor, project_orthogonal


def paper_start(size, count=None, *, seed=0):
    """The paper's initial filters: independent normal entries of standard deviation 1/b, J = b² − 1."""
    return np.random.default_rng(seed).standard_normal((count or size**2 - 1, size**2)) / size


def rank_deficient(size, rank, *, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((size**2 - 1, rank)) @ rng.standard_normal((rank, size**2)) / size


GIVEN = {
    "the paper's start, 3×3": paper_start(3),
    "the paper's start, 5×5": paper_start(5, seed=1),
    "few filters": paper_start(4, 4, seed=2),
    "one filter": paper_start(3, 1, seed=3),
    "rank two": rank_deficient(3, 2, seed=4),
    "equal filters": np.repeat(paper_start(3, 1, seed=5), 8, axis=0),
    "nothing": np.zeros((8, 9)),
    "norms from 1e-3 to 1e3": np.geomspace(1e-3, 1e3, 8)[:, None] * paper_start(3, seed=6),
}
every_input = pytest.mark.parametrize("filters", GIVEN.values(), ids=GIVEN)
GENERIC = {name: GIVEN[name] for name in ("the paper's start, 3×3", "the paper's start, 5×5", "few filters")}
every_generic_input = pytest.mark.parametrize("filters", GENERIC.values(), ids=GENERIC)
both_constraints = pytest.mark.parametrize("zero_mean", [True, False])


def squared_distance(bank, filters):
    return float(((bank - filters) ** 2).sum())


def basis_of(filters, zero_mean):
    return helmert(filters.shape[1]) if zero_mean else np.eye(filters.shape[1])


def nearest_with_directions(directions, filters):
    """The best scales D for given orthonormal rows O: D_j = ⟨o_j, k_j⟩₊."""
    return np.maximum((directions * filters).sum(axis=1, keepdims=True), 0.0) * directions


@every_input
@both_constraints
@pytest.mark.parametrize("steps", [1, 3, None])
def test_the_result_is_orthogonal_and_zero_mean(filters, zero_mean, steps):
    bank = project_orthogonal(filters, steps=steps, zero_mean=zero_mean)
    gram, scale = bank @ bank.T, np.abs(filters).max() + 1e-300
    assert np.abs(gram - np.diag(np.diag(gram))).max() <= 1e-12 * scale**2
    if zero_mean:
        # A sum of 25 roundings at most.
        assert np.abs(bank.sum(axis=1)).max() <= 1e-14 * scale


@every_input
@both_constraints
def test_the_distance_never_rises(filters, zero_mean):
    iterates = list(islice(orthogonal_iterates(filters, zero_mean=zero_mean), 60))
    distances = [squared_distance(iterate.filters, filters) for iterate in iterates]
    np.testing.assert_allclose([iterate.squared_distance for iterate in iterates], distances, rtol=1e-12)
    # A rounding of the terms of the distance, of size ‖K‖².
    assert (np.diff(distances) <= 1e-14 * (filters**2).sum()).all()


@pytest.mark.parametrize("steps", [1, 3, None])
def test_projection_is_idempotent_on_feasible_banks(steps):
    for bank in (filter_bank(3, 8), filter_bank(5, 7, seed=1), FilterBank.dct(4)):
        np.testing.assert_allclose(project_orthogonal(bank.matrix, steps=steps), bank.matrix, rtol=0, atol=1e-13)


@every_generic_input
@both_constraints
def test_projecting_again_changes_nothing(filters, zero_mean):
    once = project_orthogonal(filters, steps=None, zero_mean=zero_mean)
    np.testing.assert_allclose(project_orthogonal(once, steps=None, zero_mean=zero_mean), once, rtol=0, atol=1e-12)


def slopes_on_the_rotations(bank, filters, zero_mean, count=50):
    """|∇f(U)·M| over |∇f| |M| for random tangents M of the rotations of the coordinates, f the appendix's objective."""
    basis, rng = basis_of(filters, zero_mean), np.random.default_rng(0)
    directions, given = (bank / np.linalg.norm(bank, axis=1, keepdims=True)) @ basis.T, filters @ basis.T
    gradient = -2 * (directions * given).sum(axis=1, keepdims=True) * given
    for _ in range(count):
        generator = rng.standard_normal((len(basis), len(basis)))
        tangent = directions @ (generator - generator.T)
        yield abs((gradient * tangent).sum()) / np.linalg.norm(gradient) / np.linalg.norm(tangent)


@every_generic_input
@both_constraints
def test_a_fixed_point_is_critical(filters, zero_mean):
    bank = project_orthogonal(filters, steps=None, zero_mean=zero_mean)
    # The iteration stops at a relative fall of 1e-14, whose root is the accuracy of the point.
    assert max(slopes_on_the_rotations(bank, filters, zero_mean)) < 1e-6


@every_generic_input
def test_the_first_iterate_is_not_critical(filters):
    bank = project_orthogonal(filters, steps=1)
    assert max(slopes_on_the_rotations(bank, filters, zero_mean=True)) > 1e-3


@every_generic_input
@both_constraints
def test_no_random_feasible_point_is_nearer(filters, zero_mean):
    bank = project_orthogonal(filters, steps=None, zero_mean=zero_mean)
    least = squared_distance(bank, filters)
    basis, rng = basis_of(filters, zero_mean), np.random.default_rng(1)
    coordinates = (bank / np.linalg.norm(bank, axis=1, keepdims=True)) @ basis.T
    for size in np.repeat([1e-3, 1e-2, 0.1, 1.0], 50):
        turned = polar_factor(coordinates + size * rng.standard_normal(coordinates.shape)) @ basis
        assert squared_distance(nearest_with_directions(turned, filters), filters) >= least * (1 - 1e-12)
        stretched = bank * (1 + size * rng.standard_normal((len(bank), 1)))
        assert squared_distance(stretched, filters) >= least * (1 - 1e-12)
    for _ in range(200):
        far = polar_factor(rng.standard_normal(coordinates.shape)) @ basis
        assert squared_distance(nearest_with_directions(far, filters), filters) >= least


@every_generic_input
def test_the_alternation_from_other_starts_does_not_end_nearer(filters):
    least = squared_distance(project_orthogonal(filters, steps=None), filters)
    basis, rng = basis_of(filters, zero_mean=True), np.random.default_rng(2)
    for _ in range(5):
        directions = polar_factor(rng.standard_normal((len(filters), len(basis)))) @ basis
        for _ in range(30):
            scales = np.maximum((directions * filters).sum(axis=1, keepdims=True), 0.0)
            directions = polar_factor(scales * filters @ basis.T) @ basis
        assert squared_distance(nearest_with_directions(directions, filters), filters) >= least * (1 - 1e-12)


@every_generic_input
def test_swapping_or_flipping_the_directions_is_not_nearer(filters):
    bank = project_orthogonal(filters, steps=None)
    directions, least = bank / np.linalg.norm(bank, axis=1, keepdims=True), squared_distance(bank, filters)
    for i in range(len(bank)):
        flipped = directions * np.where(np.arange(len(bank)) == i, -1, 1)[:, None]
        assert squared_distance(nearest_with_directions(flipped, filters), filters) > least
        for j in range(i):
            order = np.arange(len(bank))
            order[[i, j]] = j, i
            assert squared_distance(nearest_with_directions(directions[order], filters), filters) > least


def gram_schmidt(filters):
    orthonormal = np.linalg.qr((filters - filters.mean(axis=1, keepdims=True)).T)[0].T
    signs = np.sign((orthonormal * filters).sum(axis=1, keepdims=True))
    return nearest_with_directions(signs * orthonormal, filters)


def polar_with_the_given_norms(filters):
    centred = filters - filters.mean(axis=1, keepdims=True)
    return np.linalg.norm(centred, axis=1, keepdims=True) * polar_factor(centred)


@every_generic_input
@pytest.mark.parametrize("other", [gram_schmidt, polar_with_the_given_norms])
def test_other_ways_to_orthogonalise_end_farther_away(filters, other):
    bank = other(filters)
    FilterBank(bank)
    assert squared_distance(bank, filters) > 1.02 * squared_distance(project_orthogonal(filters), filters)


@pytest.mark.parametrize("size", [3, 5, 7])
def test_three_steps_come_close_to_convergence(size):
    filters = paper_start(size, seed=size)
    one, three, converged = (
        squared_distance(project_orthogonal(filters, steps=steps), filters) for steps in (1, 3, None)
    )
    assert converged <= three <= one
    assert three < 1.005 * converged  # measured: 1.0007 at most, and 1.05 after one step


def test_zero_mean_projection_is_the_projection_of_the_centred_filters():
    filters = paper_start(4, 6)
    centred = filters - filters.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(project_orthogonal(filters), project_orthogonal(centred), rtol=0, atol=1e-13)
    np.testing.assert_allclose(
        project_orthogonal(filters), project_orthogonal(centred, zero_mean=False), rtol=0, atol=1e-13
    )


def test_the_polar_factor_is_the_nearest_matrix_with_orthonormal_rows():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((3, 5))
    nearest = polar_factor(matrix)
    np.testing.assert_allclose(nearest @ nearest.T, np.eye(3), rtol=0, atol=1e-13)
    positive = matrix @ nearest.T
    np.testing.assert_allclose(positive, positive.T, rtol=0, atol=1e-12)
    assert np.linalg.eigvalsh(positive).min() > 0


@pytest.mark.parametrize(("count", "zero_mean"), [(9, True), (10, False), (12, True)])
def test_more_filters_than_dimensions_are_refused(count, zero_mean):
    filters = paper_start(3, count)
    with pytest.raises(InvalidInputError):
        project_orthogonal(filters, zero_mean=zero_mean)


@pytest.mark.parametrize("ratio", [1.0, 30.0, 1e3, 1e5])
def test_small_filters_beside_large_ones_are_as_orthogonal_as_the_others(ratio):
    """By their cosines: a bank accepts them."""
    norms = np.geomspace(1.0, ratio, 24)[:, None]
    bank = FilterBank(project_orthogonal(norms * paper_start(5, 24) / ratio))
    directions = bank.matrix / bank.norms[:, None]
    assert np.abs(directions @ directions.T - np.eye(24)).max() < 1e-11


def test_three_steps_are_the_default():
    filters = paper_start(5, 24)
    np.testing.assert_array_equal(project_orthogonal(filters), project_orthogonal(filters, steps=3))
    assert np.abs(project_orthogonal(filters) - project_orthogonal(filters, steps=2)).max() > 1e-6


@pytest.mark.parametrize("steps", [0, -1])
def test_less_than_one_step_is_refused(steps):
    with pytest.raises(InvalidInputError, match="expected 1 or more, or None"):
        project_orthogonal(paper_start(3, 8), steps=steps)


@pytest.mark.parametrize("filters", [np.full((8, 9), np.nan), np.ones((0, 9)), np.ones(9)], ids=["NaN", "none", "flat"])
def test_what_is_no_bank_is_refused(filters):
    with pytest.raises(InvalidInputError, match="cannot be made orthogonal"):
        project_orthogonal(filters)
