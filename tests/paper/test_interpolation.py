"""The straight lines of a table, and their gradients, against the twins and against differences."""

import numpy as np
import pytest

from paper.learning.interpolation import (
    interpolate,
    interpolate_back,
    interpolate_back_plain,
    interpolate_plain,
)


def example(dtype, seed=0):
    """Five tables of eleven nodes; responses on nodes, between them and beyond both ends."""
    rng = np.random.default_rng(seed)
    halves = rng.uniform(0.5, 2.0, 5)
    responses = rng.uniform(-1.4, 1.4, (5, 300)) * halves[:, None]
    responses[:, 0], responses[:, 1] = -halves, halves
    return responses.astype(dtype), rng.normal(size=(5, 11)).astype(dtype), halves


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 1e-5)])
def test_the_kernels_are_their_twins(dtype, tolerance):
    responses, values, halves = example(dtype)
    result = interpolate(responses, values, halves)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, interpolate_plain(responses, values, halves), atol=tolerance)
    coefficients = np.random.default_rng(1).normal(size=responses.shape).astype(dtype)
    inner = np.abs(responses) < 0.999 * halves[:, None]  # a response on a node may take the line of either side
    in_nodes, in_responses = interpolate_back(responses, values, halves, coefficients)
    nodes, slopes = interpolate_back_plain(responses, values, halves, coefficients)
    np.testing.assert_allclose(in_nodes, nodes, atol=300 * tolerance)
    np.testing.assert_allclose(in_responses[inner], slopes[inner], atol=100 * tolerance)


def test_nodes_are_met_and_lines_go_on_beyond_the_ends():
    values, halves = np.array([[1.0, 0.0, 4.0]]), np.array([2.0])
    responses = np.array([[-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]])
    expected = [[2.0, 1.0, 0.5, 0.0, 2.0, 4.0, 6.0]]
    np.testing.assert_allclose(interpolate(responses, values, halves), expected)


def test_the_way_back_is_the_gradient():
    responses, values, halves = example(np.float64)
    rng = np.random.default_rng(2)
    coefficients, step = rng.normal(size=responses.shape), 1e-7

    def total(responses, values):
        return float((coefficients * interpolate(responses, values, halves)).sum())

    in_nodes, in_responses = interpolate_back(responses, values, halves, coefficients)
    towards = rng.normal(size=values.shape)
    difference = (total(responses, values + towards) - total(responses, values - towards)) / 2.0  # it is linear
    assert np.vdot(in_nodes, towards) == pytest.approx(difference, rel=1e-10)
    responses[:, :2] += 0.01  # away from the nodes, where there is no derivative
    towards = rng.normal(size=responses.shape)
    difference = (total(responses + step * towards, values) - total(responses - step * towards, values)) / (2 * step)
    in_responses = interpolate_back(responses, values, halves, coefficients)[1]
    assert np.vdot(in_responses, towards) == pytest.approx(difference, rel=1e-5)
    assert np.vdot(in_responses[:, ::-1], towards) != pytest.approx(difference, rel=1e-2)
