"""Tables with a gradient, for fine-tuning: straight lines between nodes, in both directions.

Row j of `values` (J, nodes) is a function of the responses in row j of `responses` (J, n), its nodes evenly spaced
from −halves[j] to halves[j]; the outermost lines go on. For coefficients g that multiply the results, the gradient in
the nodes is what g leaves on both sides of each response, and that in a response is g times the slope of its line.
`…_plain` are the numpy twins.
"""

from __future__ import annotations

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.compiler import kernel
from heatprior.kernels.lookup import clamp, clamp_plain


def interpolate_plain(responses: FloatArray, values: FloatArray, halves: FloatArray) -> FloatArray:
    """The twin: (J, n) → (J, n)."""
    cell, part, _ = _places(responses, values, halves)
    rows = np.arange(len(values))[:, None]
    return np.asarray(values[rows, cell] * (1.0 - part) + values[rows, cell + 1] * part)


def interpolate_back_plain(
    responses: FloatArray, values: FloatArray, halves: FloatArray, coefficients: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The twin: the gradients in the nodes (J, nodes) and in the responses (J, n)."""
    cell, part, per_unit = _places(responses, values, halves)
    rows = np.broadcast_to(np.arange(len(values))[:, None], cell.shape)
    in_nodes = np.zeros(values.shape)
    np.add.at(in_nodes, (rows, cell), coefficients * (1.0 - part))
    np.add.at(in_nodes, (rows, cell + 1), coefficients * part)
    return in_nodes, coefficients * (values[rows, cell + 1] - values[rows, cell]) * per_unit


def _places(
    responses: FloatArray, values: FloatArray, halves: FloatArray
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], FloatArray, FloatArray]:
    """For each response its cell and where in it it lies; for each row how many cells there are to a unit."""
    cells = values.shape[1] - 1
    per_unit = cells / (2.0 * halves[:, None])
    place = (responses + halves[:, None]) * per_unit
    cell = clamp_plain(place, 0, cells - 1).astype(np.int64)
    return cell, place - cell, per_unit


def interpolate(responses: FloatArray, values: FloatArray, halves: FloatArray) -> FloatArray:
    """The kernel of `interpolate_plain`, in the precision of the responses."""
    result = np.empty_like(responses)
    _interpolate(responses, values, halves, result)
    return result


def interpolate_back(
    responses: FloatArray, values: FloatArray, halves: FloatArray, coefficients: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The kernel of `interpolate_back_plain`; the nodes add up in float64."""
    in_nodes, in_responses = np.zeros(values.shape), np.empty_like(responses)
    _interpolate_back(responses, values, halves, coefficients, in_nodes, in_responses)
    return in_nodes, in_responses


@kernel
def _interpolate(responses, values, halves, result):
    cells = values.shape[1] - 1
    for j in range(len(responses)):
        half, row = responses.dtype.type(halves[j]), values[j]
        none, last = responses.dtype.type(0), responses.dtype.type(cells - 1)
        per_unit = responses.dtype.type(cells / (2.0 * halves[j]))
        for i in range(responses.shape[1]):
            place = (responses[j, i] + half) * per_unit
            cell = np.int32(clamp(place, none, last))
            result[j, i] = row[cell] + (place - responses.dtype.type(cell)) * (row[cell + 1] - row[cell])


@kernel
def _interpolate_back(responses, values, halves, coefficients, in_nodes, in_responses):
    cells = values.shape[1] - 1
    for j in range(len(responses)):
        half, row = responses.dtype.type(halves[j]), values[j]
        none, last = responses.dtype.type(0), responses.dtype.type(cells - 1)
        per_unit = responses.dtype.type(cells / (2.0 * halves[j]))
        for i in range(responses.shape[1]):
            place = (responses[j, i] + half) * per_unit
            cell = np.int32(clamp(place, none, last))
            upper = coefficients[j, i] * (place - responses.dtype.type(cell))
            in_nodes[j, cell] += coefficients[j, i] - upper
            in_nodes[j, cell + 1] += upper
            in_responses[j, i] = coefficients[j, i] * (row[cell + 1] - row[cell]) * per_unit
