"""Patches are cut where they should be, in exactly the eight symmetries of the square."""

import numpy as np
import pytest

from heatprior.kernels.patches import cut_patches


def cut(image, row, column, symmetry, size):
    corners, widths = np.array([row * image.shape[1] + column]), np.array([image.shape[1]])
    return cut_patches(image.ravel(), corners, widths, np.array([symmetry]), size).reshape(size, size)


def symmetries_of(patch):
    """Four rotations, each with its mirror image."""
    return [np.rot90(mirrored, turns) for mirrored in (patch, patch.T) for turns in range(4)]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_the_eight_symmetries_are_those_of_the_square(dtype):
    image = np.random.default_rng(0).permutation(11 * 13).reshape(11, 13).astype(dtype)
    for row, column, size in ((0, 0, 3), (8, 10, 3), (4, 2, 5), (0, 2, 11)):
        patch = image[row : row + size, column : column + size].astype(np.float64)
        found = {cut(image, row, column, symmetry, size).tobytes() for symmetry in range(8)}
        assert found == {np.ascontiguousarray(turned).tobytes() for turned in symmetries_of(patch)}
        assert len(found) == 8
        np.testing.assert_array_equal(cut(image, row, column, 0, size), patch)


def test_a_symmetry_is_the_same_for_every_patch():
    image = np.random.default_rng(1).random((9, 9))
    for symmetry in range(8):
        turned = cut(image, 0, 0, symmetry, 9)
        assert any(np.array_equal(turned, expected) for expected in symmetries_of(image))
        inner = cut(image, 3, 3, symmetry, 3)
        np.testing.assert_array_equal(inner, turned[3:6, 3:6])


def test_patches_are_columns_from_images_of_different_widths():
    rng = np.random.default_rng(2)
    images = [rng.random(shape) for shape in ((5, 7), (6, 4), (3, 9))]
    begins = np.cumsum([0, *(image.size for image in images)])
    places = [(0, 2, 4), (1, 3, 1), (2, 0, 6), (1, 0, 0)]
    corners = np.array([begins[i] + row * images[i].shape[1] + column for i, row, column in places])
    widths = np.array([images[i].shape[1] for i, _, _ in places])
    buffer = np.concatenate([image.ravel() for image in images])
    patches = cut_patches(buffer, corners, widths, np.zeros(4, dtype=np.int64), 3)
    assert patches.shape == (9, 4)
    for patch, (i, row, column) in zip(patches.T, places, strict=True):
        np.testing.assert_array_equal(patch.reshape(3, 3), images[i][row : row + 3, column : column + 3])
