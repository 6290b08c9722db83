"""Operators: each equals its dense matrix, its adjoint is one, and its closed form solves what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import correlate
from scipy.sparse.linalg import aslinearoperator

import heatprior as hp
from heatprior.errors import InvalidInputError
from heatprior.restoration.operators.convolution import bicubic_kernel, gaussian_kernel, motion_kernel
from heatprior.restoration.operators.measurement import draw_to_data, undetermined_part, weigh_data
from heatprior.restoration.plug_and_play import examine
from heatprior.restoration.restore import Linear

RNG = np.random.default_rng(0)
LOPSIDED = RNG.dirichlet(np.ones(12)).reshape(3, 4)
SEEN = RNG.random((7, 8)) < 0.5
COMPLEX = RNG.standard_normal((20, 56)) + 1j * RNG.standard_normal((20, 56))

MEASUREMENTS = {
    "cyclic blur": hp.operators.Blur(LOPSIDED, edges="cyclic").on((7, 8)),
    "blur": hp.operators.Blur(LOPSIDED).on((6, 7)),
    "mask": hp.operators.Mask(SEEN).on((7, 8)),
    "cyclic downsample": hp.operators.Downsample(2, LOPSIDED, edges="cyclic").on((4, 5)),
    "cyclic downsample by three": hp.operators.Downsample(3, LOPSIDED, edges="cyclic").on((3, 2)),
    "downsample": hp.operators.Downsample(2).on((4, 5)),
    "fourier": hp.operators.Fourier(SEEN).on((7, 8)),
    "complex matrix": Linear(COMPLEX, (7, 8)).on((4, 5)),
}
CLOSED = [name for name, measurement in MEASUREMENTS.items() if measurement.inverse is not None]


def dense(measurement):
    """Its matrix (data, pixels), by what it makes of every pixel."""
    pixels = int(np.prod(measurement.image_shape))
    images = np.eye(pixels).reshape(pixels, *measurement.image_shape)
    return np.stack([np.asarray(measurement.forward(image)).reshape(-1) for image in images], axis=1)


def adjoint_matrix(measurement):
    """That of Aᵀ, by what it makes of every datum; real and imaginary parts are data of their own."""
    count = int(np.prod(measurement.data_shape))
    units = np.eye(count).reshape(count, *measurement.data_shape)
    parts = [units, 1j * units] if measurement.is_complex else [units]
    return np.stack([measurement.adjoint(unit).reshape(-1) for part in parts for unit in part], axis=1)


def stacked(matrix, is_complex):
    return np.concatenate([matrix.real, matrix.imag]) if is_complex else matrix


def convolution_matrix(kernel, shape, step=1, first=(0, 0)):
    """Entry by entry: y at (step i, step j) is Σ kernel[a, b] x at that place + first − (a, b), cyclic."""
    rows = []
    for i in range(0, shape[0], step):
        for j in range(0, shape[1], step):
            row = np.zeros(shape)
            for a, b in np.ndindex(kernel.shape):
                row[(i + first[0] - a) % shape[0], (j + first[1] - b) % shape[1]] += kernel[a, b]
            rows.append(row.reshape(-1))
    return np.stack(rows)


def matrix_by_hand(name):
    """Of the operators of our own, from their definitions and nothing else."""
    middle = (LOPSIDED.shape[0] // 2, LOPSIDED.shape[1] // 2)
    if name == "cyclic blur":
        return convolution_matrix(LOPSIDED, (7, 8), first=middle)
    if name == "blur":  # the valid part: no pixel of y sees beyond the larger image
        measurement = MEASUREMENTS[name]
        rows, columns = measurement.inside
        whole = convolution_matrix(LOPSIDED, measurement.image_shape, first=middle)
        return whole.reshape(*measurement.image_shape, -1)[rows, columns].reshape(6 * 7, -1)
    if name == "mask":
        return np.diag(SEEN.reshape(-1).astype(float))
    if name == "fourier":
        row, column = (np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n) / np.sqrt(n) for n in (7, 8))
        return SEEN.reshape(-1, 1) * np.kron(row, column)
    factor, small = {"cyclic downsample": (2, (4, 5)), "cyclic downsample by three": (3, (3, 2))}[name]
    last = [(factor - side) // 2 + side - 1 for side in LOPSIDED.shape]  # the kernel lies in the middle of its block
    return convolution_matrix(LOPSIDED, (factor * small[0], factor * small[1]), factor, last)


@pytest.mark.parametrize(
    "name", ["cyclic blur", "blur", "mask", "cyclic downsample", "cyclic downsample by three", "fourier"]
)
def test_operators_equal_their_dense_matrices(name):
    np.testing.assert_allclose(dense(MEASUREMENTS[name]), matrix_by_hand(name), atol=1e-12)
    assert np.abs(dense(MEASUREMENTS[name])[::-1] - matrix_by_hand(name)).max() > 1e-2


def test_downsampling_with_unknown_edges_sees_a_window_of_the_cyclic_one():
    measurement, beyond = MEASUREMENTS["downsample"], 2
    whole = dense(hp.operators.Downsample(2, edges="cyclic").on((4 + 2 * beyond, 5 + 2 * beyond)))
    window = whole.reshape(8, 9, -1)[beyond:-beyond, beyond:-beyond].reshape(20, -1)
    np.testing.assert_allclose(dense(measurement), window, atol=1e-12)
    kernel = bicubic_kernel(2)
    by_hand = convolution_matrix(kernel, (16, 18), 2, [(2 - side) // 2 + side - 1 for side in kernel.shape])
    np.testing.assert_allclose(whole, by_hand, atol=1e-12)


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_adjoint_is_the_transpose(name):
    measurement = MEASUREMENTS[name]
    matrix = stacked(dense(measurement), measurement.is_complex)
    np.testing.assert_allclose(adjoint_matrix(measurement), matrix.T, atol=1e-12)
    examine(measurement)


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_a_wrong_adjoint_is_refused(name):
    measurement = MEASUREMENTS[name]
    wrong = replace(measurement, adjoint=lambda data: 1.001 * measurement.adjoint(data))
    with pytest.raises(InvalidInputError, match="rmatvec is not the adjoint of matvec"):
        examine(wrong)
    turned = replace(measurement, adjoint=lambda data: measurement.adjoint(data)[::-1])
    with pytest.raises(InvalidInputError, match="rmatvec is not the adjoint of matvec"):
        examine(turned)


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("ratio", [1e-3, 0.7])
def test_closed_form_equals_a_dense_solve(name, ratio):
    measurement = MEASUREMENTS[name]
    matrix = stacked(dense(measurement), measurement.is_complex)
    right = np.random.default_rng(1).standard_normal(measurement.image_shape)
    expected = np.linalg.solve(matrix.T @ matrix + ratio * np.eye(right.size), right.reshape(-1))
    found = measurement.inverse(right, ratio)
    np.testing.assert_allclose(found.reshape(-1), expected, rtol=1e-8, atol=1e-9)
    another = measurement.inverse(right, 1.01 * ratio)
    assert np.abs(another.reshape(-1) - expected).max() > 1e-4  # the test does see a wrong ratio


@pytest.mark.parametrize("name", [name for name in CLOSED if MEASUREMENTS[name].inverse_of_data is not None])
@pytest.mark.parametrize("ratio", [1e-3, 0.7])
def test_closed_form_of_the_data_equals_a_dense_solve(name, ratio):
    measurement = MEASUREMENTS[name]
    matrix = dense(measurement)
    data = np.random.default_rng(1).standard_normal(measurement.data_shape)
    expected = np.linalg.solve(matrix @ matrix.T + ratio * np.eye(data.size), data.reshape(-1))
    np.testing.assert_allclose(measurement.inverse_of_data(data, ratio).reshape(-1), expected, rtol=1e-8, atol=1e-9)
    assert np.abs(measurement.inverse_of_data(data, 1.01 * ratio).reshape(-1) - expected).max() > 1e-4


@pytest.mark.parametrize("name", MEASUREMENTS)
@pytest.mark.parametrize("uneven", [False, True])
def test_data_step_minimises_what_it_says(name, uneven):
    """argmin_x ‖(A x − y) / sigma‖² + ‖x − z‖² / tau², by whatever way, also with a map and data that are missing."""
    rng = np.random.default_rng(2)
    base = MEASUREMENTS[name]
    data = base.forward(rng.standard_normal(base.image_shape)) + 0.1
    sigma = np.asarray(0.2)
    if uneven:
        sigma = rng.uniform(0.1, 0.3, base.data_shape)
        data = np.where(rng.random(base.data_shape) < 0.2, np.nan, data)
    z, tau = rng.standard_normal(base.image_shape), 0.5
    known, measurement, level = weigh_data(data, base, sigma)
    misfit = known - measurement.forward(z)
    found = draw_to_data(measurement, z, misfit, (level / tau) ** 2, 1e-9)

    seen = np.isfinite(data) if base.blind is None else np.isfinite(data) & ~base.blind
    weights = (seen / np.broadcast_to(sigma, data.shape)).reshape(-1)
    matrix = stacked(weights[:, None] * dense(base), base.is_complex)
    right = stacked(weights * np.where(seen, data, 0.0).reshape(-1), base.is_complex)
    system = matrix.T @ matrix + np.eye(z.size) / tau**2
    expected = np.linalg.solve(system, matrix.T @ right + z.reshape(-1) / tau**2)
    np.testing.assert_allclose(found.reshape(-1), expected, atol=1e-6)
    assert np.abs(z.reshape(-1) - expected).max() > 1e-2


def test_blur_is_a_convolution():
    """With scipy's, on the part where no edge is felt."""
    image = RNG.random((20, 22))
    expected = correlate(image, LOPSIDED[::-1, ::-1], mode="wrap", origin=(0, -1))
    np.testing.assert_allclose(
        hp.operators.Blur(LOPSIDED, edges="cyclic").on(image.shape).forward(image), expected, atol=1e-12
    )
    measurement = hp.operators.Blur(LOPSIDED).on((12, 14))
    larger = RNG.random(measurement.image_shape)
    cyclic = hp.operators.Blur(LOPSIDED, edges="cyclic").on(larger.shape).forward(larger)
    np.testing.assert_allclose(measurement.forward(larger), cyclic[measurement.inside], atol=1e-12)
    changed = larger.copy()
    changed[-1] += 1.0  # what the transform was enlarged by is not seen
    assert measurement.image_shape[0] > 12 + 3 - 1
    np.testing.assert_allclose(measurement.forward(changed), measurement.forward(larger), atol=1e-12)


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_downsampling_stays_in_place(factor):
    """A ramp stays one: every pixel of y is the mean of the block that it stands for."""
    measurement = hp.operators.Downsample(factor).on((9, 10))
    rows, columns = np.indices(measurement.image_shape)
    ramp = rows + 0.3 * columns
    small = measurement.forward(ramp)
    inside = ramp[measurement.inside]
    blocks = inside.reshape(9, factor, 10, factor).mean(axis=(1, 3))
    np.testing.assert_allclose(small, blocks, atol=1e-9)
    shifted = hp.operators.Downsample(factor, np.pad(bicubic_kernel(factor), ((0, 2), (0, 0)))).on((9, 10))
    assert shifted.image_shape[0] >= measurement.image_shape[0]
    rows, columns = np.indices(shifted.image_shape)
    moved = shifted.forward(rows + 0.3 * columns)
    assert np.abs(np.diff(moved, axis=0) - factor).max() < 1e-9
    assert abs(moved[0, 0] - (rows + 0.3 * columns)[shifted.inside][:factor, :factor].mean()) > 0.5


def test_named_kernels():
    for kernel in (gaussian_kernel(1.6), motion_kernel(15, 30), motion_kernel(1, 0), bicubic_kernel(3)):
        assert abs(kernel.sum() - 1.0) < 1e-12
    rows = np.indices(gaussian_kernel(1.6).shape)[0]
    assert abs((gaussian_kernel(1.6) * (rows - rows.mean()) ** 2).sum() - 1.6**2) < 0.01
    level, upright = motion_kernel(9, 0), motion_kernel(9, 90)
    np.testing.assert_allclose(level, upright.T, atol=1e-12)
    assert np.count_nonzero(level > 1e-12) == 9
    slanted = motion_kernel(21, 45)  # to the right and up
    middle = len(slanted) // 2
    assert slanted[middle - 5, middle + 5] > 0 > -slanted[middle, middle]
    assert slanted[middle + 5, middle + 5] == 0


def test_norm_and_turns_are_seen():
    assert examine(hp.operators.Mask(np.ones((8, 9))).on((8, 9))) == (1.0, True)
    assert examine(Linear(2.0 * np.linalg.qr(RNG.standard_normal((56, 56)))[0], (7, 8)).on((56,))).is_isometry
    assert not examine(MEASUREMENTS["mask"]).is_isometry
    matrix = np.diag(np.r_[3.0, np.full(55, 0.5)])
    assert abs(examine(Linear(aslinearoperator(matrix), (7, 8)).on((56,))).norm - 3.0) < 0.1


def test_undetermined_part_is_the_mean_eigenvalue():
    """Of ratio (AᵀA + ratio)⁻¹: what is not seen counts one, what is seen ratio / (1 + ratio)."""
    shape, ratio = (64, 60), 0.01
    seen = np.random.default_rng(3).random(shape) < 0.3
    expected = 1.0 - seen.mean() / (1.0 + ratio)
    assert (
        abs(undetermined_part(hp.operators.Mask(seen).on(shape), ratio) - expected) < 0.03
    )  # one draw: sqrt(2 / pixels)
    assert abs(undetermined_part(hp.operators.Mask(~seen).on(shape), ratio) - expected) > 0.2
