"""Weighted sums over neighbours: the kernel is its twin, and a piece of an array has the bits of the whole."""

import numpy as np
import pytest

from heatprior.kernels.patches import weighted_sums, weighted_sums_plain

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(1, 1), (5, 1), (1, 4), (3, 7)])
@pytest.mark.parametrize("step", [1, 2])
def test_the_kernel_is_its_twin(shape, step):
    values = RNG.normal(size=(20, 53)).astype(np.float32)
    weights = RNG.normal(size=shape).astype(np.float32)
    for image in (values, values[::-1, ::2], values[: shape[0], : shape[1]]):
        np.testing.assert_allclose(
            weighted_sums(image, weights, step), weighted_sums_plain(image, weights, step), rtol=1e-5, atol=1e-5
        )


def test_a_piece_has_the_bits_of_the_whole():
    values = RNG.normal(size=(40, 200)).astype(np.float32)
    weights = RNG.normal(size=(5, 9)).astype(np.float32)
    whole = weighted_sums(values, weights)
    for left in range(0, 60, 7):  # other lanes of a vector, and the rest that fills none
        for width in (9, 16, 31, 64, 77):
            piece = weighted_sums(values[:, left : left + width], weights)
            np.testing.assert_array_equal(piece, whole[:, left : left + width - 8])
