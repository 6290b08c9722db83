"""Cutting an image into all its patches, and averaging patches into an image."""

import numpy as np
import pytest

from heatprior.kernels.patches import average, extract


def pictures(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize(("shape", "size"), [((7, 7), 7), ((9, 12), 3), ((20, 8), 7)])
def test_averaging_the_patches_of_an_image_gives_it_back(shape, size):
    image = pictures(shape)
    np.testing.assert_allclose(average(extract(image, size), shape, size), image, rtol=1e-14)


@pytest.mark.parametrize(("shape", "size"), [((9, 12), 3), ((20, 8), 7)])
def test_averaging_is_the_adjoint_of_extracting_up_to_the_number_of_patches(shape, size):
    """⟨extract x, p⟩ = ⟨x, count · average p⟩, where count · is found by extracting and summing ones."""
    image = pictures(shape)
    patches = pictures(extract(image, size).shape, seed=1)
    inner = (extract(image, size) * patches).sum()
    count = np.zeros(shape)
    for row in range(shape[0] - size + 1):
        for column in range(shape[1] - size + 1):
            count[row : row + size, column : column + size] += 1
    assert (image * count * average(patches, shape, size)).sum() == pytest.approx(inner, rel=1e-12)
    assert (image * average(patches, shape, size)).sum() != pytest.approx(inner, rel=1e-3)  # without the count it fails


def test_patches_come_row_by_row():
    image = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(extract(image, 2)[:4], [[0, 1, 4, 5], [1, 2, 5, 6], [2, 3, 6, 7], [4, 5, 8, 9]])
