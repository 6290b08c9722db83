"""The kernels of noise estimation against their plain twins."""

import numpy as np
import pytest

from heatprior.kernels.noise_estimation import (
    ROWS,
    RUN,
    LevelTables,
    patch_log_densities,
    patch_log_densities_plain,
    window_sums,
    window_sums_plain,
)


def tables(rng, levels, contrasts, experts, cells=64):
    """Lines that meet: the twin in float64 and the kernel in float32 may choose neighbouring cells."""
    nodes = rng.standard_normal((levels, contrasts, experts, cells + 1))
    slopes = np.diff(nodes)
    starts = nodes[..., :-1] - slopes * (np.arange(cells) - cells / 2)
    return LevelTables(
        np.stack([starts, slopes], -1, dtype=np.float32), rng.uniform(2, 4, (levels, contrasts, experts))
    )


@pytest.mark.parametrize("stride", [1, 3, 7])
@pytest.mark.parametrize("shape", [(7, 7), (23, 40), (9, RUN + 9)])
def test_log_densities_are_those_of_the_twin(shape, stride):
    rng = np.random.default_rng(stride)
    image, filters = rng.random(shape), rng.standard_normal((5, 49))
    given = tables(rng, 3, 2, 5)
    found = patch_log_densities(image, filters, given, stride)
    # float32: lines of slope 3 and responses of 10, five of each
    np.testing.assert_allclose(found, patch_log_densities_plain(image, filters, given, stride), atol=5e-4)
    assert found.shape == (3, 2, -(-(shape[0] - 6) // stride), -(-(shape[1] - 6) // stride))


def test_log_densities_of_another_stride_are_noticed():
    rng = np.random.default_rng(0)
    image, filters, given = rng.random((20, 20)), rng.standard_normal((5, 49)), tables(rng, 1, 1, 5)
    every, second = (patch_log_densities(image, filters, given, stride) for stride in (1, 2))
    np.testing.assert_allclose(every[..., ::2, ::2], second, atol=5e-5)  # products of other shapes round otherwise
    assert not np.allclose(every[..., : second.shape[2], : second.shape[3]], second)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (ROWS + 3, 12)])
def test_window_sums_are_those_of_the_twin(shape):
    rng = np.random.default_rng(2)
    values, pilot = rng.standard_normal((4, *shape)), rng.standard_normal(shape)
    held = (rng.random(shape) < 0.8).astype(float)
    found = window_sums(values, held, pilot, 1.3, 0.8, 3.9)
    for ours, twins in zip(found, window_sums_plain(values, held, pilot, 1.3, 0.8, 3.9), strict=True):
        np.testing.assert_allclose(ours, twins, atol=1e-12)


def test_windows_do_not_reach_across_a_step_of_the_pilot():
    values = np.repeat([[1.0, 100.0]], 6, axis=0).repeat(6, axis=1)[None]
    step = np.where(values[0] > 1, 5.0, 0.0)
    ones = np.ones(step.shape)
    parted = window_sums(values, ones, step, 2.0, 0.5, 6.0)
    np.testing.assert_allclose(parted.values[0] / parted.weights, values[0], rtol=1e-9)
    across = window_sums(values, ones, 0 * step, 2.0, 0.5, 6.0)
    assert (across.values[0] / across.weights)[:, 5].min() > 20
