import numpy as np
import pytest

from examples import filter_bank
from heatprior import FilterBank, InvalidInputError

BANKS = {
    "zero-mean": filter_bank(3, 8),
    "few": filter_bank(4, 5, seed=1),
    "full": filter_bank(2, 4, seed=2, zero_mean=False),
    "cosines": FilterBank.dct(5),
}
every_bank = pytest.mark.parametrize("bank", BANKS.values(), ids=BANKS)


def pair(bank, leading=(6,)):
    rng = np.random.default_rng(0)
    return rng.standard_normal((*leading, bank.pixels)), rng.standard_normal((*leading, bank.count))


@every_bank
def test_synthesis_is_the_adjoint_of_analysis(bank):
    x, u = pair(bank)
    left, right = (bank.analyse(x) * u).sum(axis=-1), (x * bank.synthesise(u)).sum(axis=-1)
    np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)


@every_bank
def test_reconstruction_is_a_right_inverse_of_analysis(bank):
    _, u = pair(bank)
    np.testing.assert_allclose(bank.analyse(bank.reconstruct(u)), u, rtol=0, atol=1e-12)


@every_bank
def test_reconstructing_the_responses_projects_onto_the_span(bank):
    x, _ = pair(bank)
    projected = bank.reconstruct(bank.analyse(x))
    np.testing.assert_allclose(bank.reconstruct(bank.analyse(projected)), projected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(bank.analyse(x - projected), 0.0, rtol=0, atol=1e-12)


@every_bank
def test_reconstruction_undoes_analysis_only_on_the_span(bank):
    x, _ = pair(bank)
    missed = np.abs(x - bank.reconstruct(bank.analyse(x))).max()
    assert (missed < 1e-12) == (bank.count == bank.pixels)


@every_bank
@pytest.mark.parametrize("leading", [(), (0,), (2, 3)])
def test_leading_axes_are_kept(bank, leading):
    x, u = pair(bank, leading)
    assert bank.analyse(x).shape == (*leading, bank.count)
    assert bank.synthesise(u).shape == bank.reconstruct(u).shape == (*leading, bank.pixels)


@every_bank
def test_norms_are_those_of_the_filters(bank):
    np.testing.assert_allclose(bank.matrix @ bank.matrix.T, np.diag(bank.norms**2), rtol=0, atol=1e-12)
    assert bank.size**2 == bank.pixels


@pytest.mark.parametrize("size", [2, 3, 7, 15])
def test_cosines_are_orthonormal_and_have_no_mean(size):
    bank = FilterBank.dct(size)
    assert (bank.count, bank.size) == (size**2 - 1, size)
    np.testing.assert_allclose(bank.matrix @ bank.matrix.T, np.eye(bank.count), rtol=0, atol=1e-13)
    np.testing.assert_allclose(bank.matrix.sum(axis=1), 0.0, rtol=0, atol=1e-13)


def test_cosines_are_cosines():
    row, column = np.mgrid[:4, :4]
    wave = np.cos(np.pi * (row + 0.5) * 2 / 4) * np.cos(np.pi * (column + 0.5) * 3 / 4)
    np.testing.assert_allclose(FilterBank.dct(4).matrix[2 * 4 + 3 - 1], wave.ravel() / 2, rtol=0, atol=1e-14)


def test_filters_are_a_copy_that_cannot_be_written():
    matrix = np.eye(4)
    bank = FilterBank(matrix)
    matrix[:] = 0.0
    np.testing.assert_array_equal(bank.matrix, np.eye(4))
    with pytest.raises(ValueError, match="read-only"):
        bank.matrix[0, 0] = 2.0


def turned(degrees):
    angle = np.deg2rad(degrees)
    return np.array([[1.0, 0, 0, 0], [np.sin(angle), np.cos(angle), 0, 0]])


def test_rounding_to_float32_is_still_orthogonal():
    FilterBank(filter_bank(15, 224).matrix.astype(np.float32))
    FilterBank(turned(0.0005))


@pytest.mark.parametrize("degrees", [0.001, 5, 90])
def test_filters_that_are_not_orthogonal_are_refused_with_the_remedy(degrees):
    with pytest.raises(InvalidInputError, match=r"^filters 0 and 1 are not orthogonal \(cosine .*project_orthogonal$"):
        FilterBank(turned(degrees))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones(4), r"filters have shape \(4,\); expected \(filters, pixels of a square patch\)"),
        (np.ones((2, 5)), r"filters have shape \(2, 5\)"),
        (np.ones((2, 2, 2)), r"filters have shape \(2, 2, 2\)"),
        (np.ones((0, 4)), r"filters have shape \(0, 4\)"),
        (np.ones((5, 4)), "5 filters on 4 pixels cannot be orthogonal; give at most"),
        (np.diag([1.0, 1.0, np.nan, 1.0]), "filters hold NaN or infinite values"),
        (np.diag([1.0, np.inf, 1.0, 1.0]), "filters hold NaN or infinite values"),
        (np.diag([1.0, 1.0, 0.0, 1.0]), "filter 2 is zero; every filter needs a positive norm"),
    ],
)
def test_what_is_no_filter_bank_is_refused(matrix, message):
    with pytest.raises(InvalidInputError, match=message):
        FilterBank(matrix)
