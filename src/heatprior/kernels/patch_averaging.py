"""Every patch of an image changed by its filter responses, and the changes averaged: the inner loop of denoising.

For all b×b patches p of an image: responses u_j = ⟨k_j, p⟩, a function v_j of each, the change Σ_j k_j v_j of a patch,
and at each pixel the mean of the changes of the patches that hold it. The functions are given as tables, straight
between their nodes and beyond the last.

Patches of one row of the image are taken in runs that stay in the cache: analyse (matrix product), look up, synthesise
(matrix product), add. No set of patches or responses is ever in memory. `…_plain` is the numpy twin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from heatprior.arrays import FloatArray
from heatprior.kernels.threads import for_each
from heatprior.patches import average, extract

RUN = 256  # patches of one row that go through together
BAND = 32  # rows of patches that one thread does at a time


class ResponseTables(NamedTuple):
    """v_j at responses first[j] + i / per_unit[j], i = 0, 1, …: values (J, nodes), first and per_unit (J,), float32."""

    values: FloatArray
    first: FloatArray
    per_unit: FloatArray


def average_changes_plain(image: FloatArray, filters: FloatArray, tables: ResponseTables) -> FloatArray:
    """The twin: image (H, W), filters (J, b²) → mean changes (H, W)."""
    size = int(np.sqrt(filters.shape[1]))
    place = (extract(image, size) @ filters.T - tables.first) * tables.per_unit  # (n, J)
    node = np.clip(place.astype(np.int64), 0, tables.values.shape[1] - 2)
    experts = np.arange(len(filters))
    left, right = tables.values[experts, node], tables.values[experts, node + 1]
    changes = (left + (place - node) * (right - left)) @ filters
    return average(changes, (image.shape[0], image.shape[1]), size)


def average_changes(image: FloatArray, filters: FloatArray, tables: ResponseTables) -> FloatArray:
    """The kernel, in float32, on all cores; the number of threads changes no bit of the result."""
    size = int(np.sqrt(filters.shape[1]))
    image = np.ascontiguousarray(image, np.float32)
    filters = np.ascontiguousarray(filters, np.float32)
    transposed = np.ascontiguousarray(filters.T)
    total = np.zeros_like(image)
    band = max(BAND, size)  # so that bands that are not neighbours touch no common row
    starts = range(0, image.shape[0] - size + 1, band)
    for every_other in (starts[::2], starts[1::2]):
        for_each(lambda start: _add_band(image, filters, transposed, *tables, size, start, band, total), every_other)
    total /= _patches_that_hold(image.shape, size).astype(np.float32)
    return total


def _patches_that_hold(shape: tuple[int, ...], size: int) -> FloatArray:
    """How many patches hold each pixel, (H, W) by broadcasting."""
    per_axis = []
    for length in shape:
        index = np.arange(length)
        per_axis.append(np.minimum.reduce([index + 1, length - index, np.full(length, min(size, length - size + 1))]))
    return np.asarray(per_axis[0][:, None] * per_axis[1])


@njit(nogil=True, cache=True, fastmath={"contract"})
def _add_band(image, filters, transposed, values, first, per_unit, size, start, band, total):
    count, pixels = filters.shape
    columns = image.shape[1] - size + 1
    last = values.shape[1] - 2
    patches = np.empty((pixels, RUN), np.float32)
    responses = np.empty((count, RUN), np.float32)
    changes = np.empty((pixels, RUN), np.float32)
    for row in range(start, min(start + band, image.shape[0] - size + 1)):
        for left in range(0, columns, RUN):
            length = min(RUN, columns - left)
            for i in range(size):
                for j in range(size):
                    patches[i * size + j, :length] = image[row + i, left + j : left + j + length]
            np.dot(filters, patches, responses)
            for j in range(count):
                table, origin, scale = values[j], first[j], per_unit[j]
                for n in range(length):
                    place = (responses[j, n] - origin) * scale
                    node = min(max(int(place), 0), last)
                    responses[j, n] = table[node] + (place - np.float32(node)) * (table[node + 1] - table[node])
            np.dot(transposed, responses, changes)
            for i in range(size):
                for j in range(size):
                    for n in range(length):
                        total[row + i, left + j + n] += changes[i * size + j, n]
