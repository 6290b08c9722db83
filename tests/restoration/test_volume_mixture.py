"""The mixture of patches in three dimensions that is fitted to a noisy volume."""

from math import prod

import numpy as np
import pytest

from heatprior.restoration.volume_mixture import (
    EACH,
    SHAPES,
    UNSEEN,
    VolumeMixture,
    apply,
    choose_shape,
    fit,
    free_of_noise,
)
from heatprior.restoration.volumes import correct, double, halve

SIGMA = np.array(0.1)
SHAPE = (4, 4, 4)


def textured(shape=(14, 18, 20), steps=(1, 1, 1), seed=0):
    """Smooth random values, `steps` of which between two voxels along each axis."""
    fine = np.random.default_rng(seed).standard_normal([n * s + 8 for n, s in zip(shape, steps, strict=True)])
    for axis in range(3):
        sums = np.cumsum(fine, axis=axis)
        fine = np.take(sums, np.arange(8, sums.shape[axis]), axis) - np.take(
            sums, np.arange(sums.shape[axis] - 8), axis
        )
    fine = fine[tuple(slice(0, n * s, s) for n, s in zip(shape, steps, strict=True))]
    return np.asarray(0.5 + 0.15 * fine / fine.std(), np.float32)


def add_noise(clean, seed=1):
    return np.asarray(clean + SIGMA * np.random.default_rng(seed).standard_normal(clean.shape), np.float32)


def error(result, clean):
    return float(np.mean(np.square(result - clean)))


@pytest.mark.parametrize("count", [200, 2000])
def test_eigenvalues_without_noise_are_those_of_the_spiked_model(count):
    """Of pure noise hardly any is left, of strong directions the variance, which the sample overstates."""
    rng, signal = np.random.default_rng(0), np.array([9.0, 4.0] + [0.0] * 62)
    y = rng.standard_normal((count, 64)) * np.sqrt(signal + 1.0)
    found = np.linalg.eigvalsh(y.T @ y / count)[::-1]
    clean = free_of_noise(found, 1.0, 64 / count)
    np.testing.assert_allclose(clean[:2], signal[:2], rtol=0.35 if count == 200 else 0.12)
    assert np.count_nonzero(clean[2:]) <= 1
    assert np.count_nonzero(found[2:] > 1.0) > 20  # which subtracting the noise alone would take for signal


def test_many_patches_leave_the_variance_less_that_of_noise():
    np.testing.assert_allclose(free_of_noise(np.array([0.5, 1.0, 3.0]), 1.0, 0.0), [0.0, 0.0, 2.0])


def test_one_component_is_wieners_filter():
    """Of which the plain twin is the mean of filtered patches, counted alike."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(np.column_stack([np.ones(64), rng.standard_normal((64, 5))]))[0][:, 1:]
    variances = np.array([0.5, 0.2, 0.1, 0.05, 0.02])
    model = VolumeMixture(SHAPE, axes.astype(np.float32), variances, np.ones((1, 5)), np.zeros(1))
    noisy = add_noise(textured((7, 6, 8)))
    total, count = np.zeros(noisy.shape), np.zeros(noisy.shape)
    filtered = (axes * (variances / (variances + SIGMA**2))) @ axes.T + np.full((64, 64), 1 / 64)
    for corner in np.ndindex(4, 3, 5):
        place = tuple(slice(k, k + 4) for k in corner)
        total[place] += (filtered @ noisy[place].ravel()).reshape(SHAPE)
        count[place] += 1
    clean, probed = apply((noisy, noisy + np.float32(0.01)), noisy, SIGMA, model)
    np.testing.assert_allclose(clean, total / count, atol=1e-5)
    np.testing.assert_allclose(probed - clean, 0.01 * UNSEEN, atol=1e-5)  # brightness passes


def test_a_map_of_one_level_is_that_level():
    clean = textured()
    noisy = add_noise(clean)
    model = fit(noisy, noisy, SIGMA, SHAPE)
    one = apply((noisy, noisy), noisy, SIGMA, model)[0]
    told = apply((noisy, noisy), noisy, np.full(noisy.shape, SIGMA), model)[0]
    assert np.std(told - one) < 0.02 * SIGMA  # levels of maps are rounded to 10 %
    assert np.std(apply((noisy, noisy), noisy, np.full(noisy.shape, 2 * SIGMA), model)[0] - one) > 0.02 * SIGMA


def test_the_fit_learns_what_the_volume_looks_like():
    """A guide of noise alone tells nothing, and the result is worse."""
    clean = textured()
    noisy = add_noise(clean)
    blurred = 0.5 * clean + 0.5 * clean.mean()
    found, lost = (
        apply((noisy, noisy), guide, SIGMA, fit(noisy, guide, SIGMA, SHAPE))[0]
        for guide in (blurred, add_noise(0 * clean, 9))
    )
    assert error(found, clean) < 0.3 * SIGMA**2
    assert error(found, clean) < error(lost, clean)


@pytest.mark.parametrize("empty", [np.zeros, np.ones, lambda shape: np.full(shape, np.nan)])
def test_what_holds_nothing_has_no_mixture(empty):
    volume = empty((20, 20, 20)).astype(np.float32)
    assert fit(volume, volume, SIGMA, SHAPE) is None


def test_few_patches_have_no_mixture():
    noisy = add_noise(textured((8, 8, 8)))
    assert EACH > (8 - 3) ** 3
    assert fit(noisy, noisy, SIGMA, SHAPE) is None


def test_background_without_noise_has_no_influence():
    noisy = add_noise(textured())
    padded = np.pad(noisy, ((0, 0), (0, 0), (0, 12)))
    own, beside = (fit(volume, volume, SIGMA, SHAPE) for volume in (noisy, padded))
    assert own.members.shape[0] <= beside.members.shape[0] <= own.members.shape[0] + 6  # not one of nothing


@pytest.mark.parametrize(("deep", "expected"), [(1, (4, 4, 4)), (5, (2, 6, 6)), (10, (2, 6, 6))])
def test_voxels_that_are_deeper_than_wide_have_flatter_patches(deep, expected):
    clean = textured((12, 24, 24), (deep, 1, 1))
    assert choose_shape(clean, np.array(0.0)) == expected
    assert choose_shape(add_noise(clean), SIGMA) == expected


def test_all_patches_have_about_as_many_voxels():
    assert all(60 <= prod(shape) <= 75 for _, shape in SHAPES)


@pytest.mark.parametrize("shape", [(8, 6, 10), (7, 5, 9)])
def test_halving_keeps_planes(shape):
    z, y, x = np.indices(shape).astype(float)
    plane = 1 + z - 2 * y + 3 * x
    inside = (slice(1, -2),) * 3
    back = double(halve(plane, (0, 1, 2)), (0, 1, 2), shape)
    assert back.shape == shape
    np.testing.assert_allclose(back[inside], plane[inside])


def test_a_coarse_scale_mends_low_frequencies():
    """And leaves what they are right in: a constant, whatever the sides."""
    clean = textured((20, 28, 28))
    noisy = add_noise(clean)
    drift = np.float32(0.1) * np.linspace(-1, 1, 28, dtype=np.float32)
    wrong = clean + drift
    better = correct((noisy, noisy), (wrong, wrong), SIGMA, SHAPE)[0]
    assert error(better, clean) < 0.7 * error(wrong, clean)
    flat = np.full((9, 11, 13), 0.5, np.float32)
    np.testing.assert_allclose(correct((flat, flat), (flat, flat), SIGMA, SHAPE)[0], flat)
