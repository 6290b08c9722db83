"""Every patch of an image changed by its filter responses, and the changes averaged: the inner loop of denoising.

For all b×b patches p of an image: responses u_j = ⟨k_j, p⟩, a function v_j of each, given as a table of straight lines
that may depend on the noise level, the change Σ_j k_j v_j of a patch, and at each pixel the mean of the changes.
`…_plain` is the numpy twin.

The two matrix products act on runs of neighbouring patches, (b², run). Row i of the patches in one row of the image is
row i − 1 of those in the next: one tall array, row (r, j) being row r of the image shifted by j, holds the patches of a
band, and every pixel is copied b times, not b². For one noise level a line of a table is one word of 32 bits, so that a
look-up fetches once; for maps it is three loops, of which the compiler vectorises the first and the last: find the
cells, fetch (value, slope) as one word each, evaluate. No set of patches or responses is ever in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.kernels.compiler import FAST, fetch, kernel, read, write
from heatprior.kernels.lookup import clamp, clamp_plain
from heatprior.kernels.patches import EVERY, Grid, Progress, average, average_by_bands, extract

RUN = 400  # most patches that go through together
LANES = 16  # runs are multiples of a vector register, and begin at multiples of it in memory
SMALL_PRODUCT = 10**6  # multiplications up to which OpenBLAS takes its faster way for small matrices


class ResponseTables(NamedTuple):
    """Changes v_j(u, sigma) as lines a + b q of q = u · cells / (2 half), half = reach + growth[j] · sigma.

    Cell i is [i, i + 1) of q + cells / 2; the first and the last extend to infinity. Between noise levels
    lowest · ratio^s, s = 0, 1, …, the values at equal q are mixed, linearly in log sigma; beyond them sigma is clipped.
    """

    lines: FloatArray  # (J, levels, cells, 2): a, b in float32
    reach: float
    growth: FloatArray  # (J,)
    lowest: float
    ratio: float  # above one; plays no role if there is one level


def average_changes_plain(
    image: FloatArray, filters: FloatArray, tables: ResponseTables, sigma: float | FloatArray, grid: Grid = EVERY
) -> FloatArray:
    """The twin: image (H, W), filters (J, b²), sigma a number or one per patch → mean changes (H, W)."""
    size = int(np.sqrt(filters.shape[1]))
    experts, levels, cells = np.arange(len(filters)), tables.lines.shape[1], tables.lines.shape[2]
    u = extract(image, size, grid) @ filters.T  # (n, J)
    highest = tables.lowest * tables.ratio ** (levels - 1)
    sigmas = clamp_plain(np.broadcast_to(np.ravel(sigma), len(u))[:, None], tables.lowest, highest)
    q = u * cells / (2.0 * (tables.reach + tables.growth * sigmas))
    cell = clamp_plain(np.floor(q + cells / 2), 0, cells - 1).astype(np.int64)
    place = np.clip(np.log(sigmas / tables.lowest) / np.log(tables.ratio), 0, levels - 1)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, levels - 1)
    low, high = (tables.lines[experts, level, cell].astype(np.float64) for level in (below, above))
    lines = low + (place - below)[..., None] * (high - low)
    changes = (lines[..., 0] + lines[..., 1] * q) @ filters
    return average(changes, (image.shape[0], image.shape[1]), size, grid)


def average_changes(
    image: FloatArray,
    filters: FloatArray,
    tables: ResponseTables,
    *,
    sigmas: Callable[[int, int], FloatArray] | None = None,
    progress: Progress | None = None,
    most: int = RUN,
    grid: Grid = EVERY,
) -> FloatArray:
    """The kernel, in float32, on all cores: the image (H, W) plus the mean changes of its pixels.

    Patches are those on the `grid`. `sigmas` gives the noise levels of all patches in some rows, on the grid or not,
    (rows, W − b + 1); without, it is `tables.lowest`.
    """
    size = int(np.sqrt(filters.shape[1]))
    filters = np.ascontiguousarray(filters, np.float32)
    transposed = np.ascontiguousarray(filters.T)
    lines = np.ascontiguousarray(tables.lines, np.float32).view(np.uint64)[..., 0]
    growth = np.asarray(tables.growth, np.float32)
    all_rows, columns = grid.places(image.shape, size)
    run = length_of_runs((grid.whole or image.shape)[1], filters.shape, grid, most)
    constant = np.full((1, 1), tables.lowest, np.float32)
    words, units = _pack(tables.lines[:, 0])

    def sum_of_changes(band: range) -> FloatArray:
        start, end = band.start, band.stop
        places = all_rows[(all_rows >= start) & (all_rows < end)] - start, columns
        noise = constant if sigmas is None else np.ascontiguousarray(sigmas(start, end)[np.ix_(*places)], np.float32)
        total = np.zeros((end - start + size - 1, image.shape[1]), np.float32)
        rows = image[start : end + size - 1]
        levels = (tables.reach, growth, noise, tables.lowest, tables.ratio)
        _add_band(rows, filters, transposed, lines, words, units, *levels, size, run, places, total)
        return total

    return average_by_bands(image, size, sum_of_changes, progress, grid=grid)


def length_of_runs(width: int, filters: tuple[int, ...], grid: Grid = EVERY, most: int = RUN) -> int:
    """How many patches of a row go through together, for filters (J, b²): nearly equal runs, of whole vectors."""
    work_per_patch = filters[0] * filters[1]
    columns = len(grid.starts(width, int(np.sqrt(filters[1]))))
    if work_per_patch * LANES * 4 <= SMALL_PRODUCT:
        most = min(most, SMALL_PRODUCT // work_per_patch)
    runs = -(-columns // most)
    length = -(-columns // (runs * LANES)) * LANES
    return length + LANES if length % 128 == 0 else length  # rows at such a distance compete for places in the cache


@kernel
def _align(length):
    """Room that begins at a vector of memory: products are a tenth faster than elsewhere."""
    room = np.empty(length + LANES, np.float32)
    begin = (LANES - (room.ctypes.data // 4) % LANES) % LANES
    return room[begin : begin + length]


@kernel(fastmath=FAST)
def _add_band(
    image, filters, transposed, lines, words, units, reach, growth, sigmas, lowest, ratio, size, most, places, total
):
    count, pixels = filters.shape
    rows, columns = places
    tall = image.shape[0] * size
    room_for_patches, room_for_changes = _align(tall * most), _align(tall * most)
    room_for_responses = _align(count * most)
    is_map = lines.shape[1] > 1
    for left in range(0, len(columns), most):
        some = columns[left : left + most]
        run = -(-len(some) // LANES) * LANES
        patches = room_for_patches[: tall * run].reshape(tall, run)
        changes = room_for_changes[: tall * run].reshape(tall, run)
        responses = room_for_responses[: count * run].reshape(count, run)
        begun = 0  # rows of the image that earlier patches have cut and begun to change
        for i in range(len(rows)):
            row = rows[i]
            for new in range(max(begun, row), row + size):
                _shift(image[new], some, patches[new * size : (new + 1) * size])
            here = slice(row * size, row * size + pixels)
            np.dot(filters, patches[here], responses)
            if is_map:
                _look_up_between(responses, lines, reach, growth, sigmas[i, left : left + len(some)], lowest, ratio)
            else:
                _look_up(responses, words, units, reach, growth, sigmas[0, 0])
            _fill(changes[max(begun, row) * size : row * size + pixels].reshape(-1))
            changes[here] += np.dot(transposed, responses)
            begun = row + size
        if len(rows) == 0:
            continue
        for row in range(rows[0], begun):
            for j in range(size):
                _add(changes[row * size + j], some, total[row, j:])


# Loops of their own: numba copies slices several times slower.


@kernel
def _shift(pixels, columns, rows):
    """Row j: the pixels j after each of these columns, and zeros to the end."""
    length, first = len(columns), columns[0]
    dense = columns[-1] - first == length - 1
    for j in range(len(rows)):
        if dense:
            near = pixels[first + j : first + j + length]  # a slice, since an index that might be negative is slow
            for i in range(length):
                rows[j, i] = near[i]
        else:
            for i in range(length):
                rows[j, i] = pixels[columns[i] + j]
        for i in range(length, rows.shape[1]):
            rows[j, i] = np.float32(0.0)


@kernel
def _fill(target):
    for i in range(len(target)):
        target[i] = np.float32(0.0)


@kernel
def _add(values, columns, total):
    length, first = len(columns), columns[0]
    if columns[-1] - first == length - 1:
        near = total[first : first + length]
        for i in range(length):
            near[i] += values[i]
    else:
        for i in range(length):
            total[columns[i]] += values[i]


@kernel
def _pack(lines):
    """Lines (J, cells, 2) of one noise level as one word each: words (J, cells); units (3, J).

    A word holds a line a + b q. Its last twelve bits are b less the slope of the last line, the word as a whole is a:
    to a millionth of the largest a, and to 1 in 2,000 of the largest difference of slopes. As a is rounded after b, so
    that the line is right where its cell begins, the error of b counts within the cell only; the two outermost lines,
    which extend to infinity, have exact slopes. Units: of a, of b, and the last slope.
    """
    experts, cells = lines.shape[0], lines.shape[1]
    words = np.empty((experts, cells), np.int32)
    units = np.empty((3, experts), np.float32)
    for j in range(experts):
        slopes = lines[j, :, 1].astype(np.float64)
        last = slopes[-1]
        unit = max(np.abs(slopes - last).max(), 1e-30) / 2047.0
        whole = np.floor(abs(slopes[0] - last) / unit * (1.0 + 1e-9))
        unit = abs(slopes[0] - last) / whole if whole > 0 else unit  # the first slope is a multiple of it
        codes = np.rint((slopes - last) / unit)
        q = np.arange(cells) - 0.5 * cells
        starts = lines[j, :, 0] + (slopes - last - codes * unit) * q
        of_start = max(np.abs(starts).max(), 1e-30) / (2.0**31 - 2.0**13)
        for i in range(cells):
            last_bits = np.int64(codes[i]) & 4095
            words[j, i] = np.int64(np.rint((starts[i] / of_start - last_bits) / 4096.0)) * 4096 + last_bits
        units[0, j], units[1, j], units[2, j] = of_start, unit / 2.0**20, last
    return words, units


@kernel(fastmath=FAST)
def _look_up(responses, words, units, reach, growth, sigma):
    """Responses (J, n) → changes, in place, for one noise level."""
    n, cells = responses.shape[1], words.shape[1]
    middle, top = np.float32(0.5 * cells), np.float32(cells - 1)
    for j in range(len(responses)):
        u, table, of_start, of_slope, last = responses[j], words[j], units[0, j], units[1, j], units[2, j]
        scale = np.float32(0.5 * cells / (reach + growth[j] * sigma))
        for i in range(n):
            q = read(u, i) * scale
            word = fetch(table, np.int32(clamp(q + middle, np.float32(0.0), top)))
            slope = np.float32(np.int32(word << 20)) * of_slope + last  # of 32 bits twelve are left, with their sign
            write(u, i, np.float32(word) * of_start + slope * q)


@kernel(fastmath=FAST)
def _look_up_between(responses, lines, reach, growth, sigmas, lowest, ratio):
    """The same for one noise level per patch: (n,), or fewer, if the last responses belong to no patch."""
    n, levels, cells = responses.shape[1], lines.shape[1], lines.shape[2]
    below, above = np.empty(n, np.uint32), np.empty(n, np.uint32)  # places in the table of an expert
    noise, part, first = np.empty(n, np.float32), np.empty(n, np.float32), np.empty(n, np.int32)
    low, high = np.empty(n, np.uint64), np.empty(n, np.uint64)
    low_halves, high_halves = low.view(np.float32), high.view(np.float32)
    middle, top = np.float32(0.5 * cells), np.float32(cells - 1)
    floor, per_level = np.log(np.float32(lowest)), np.float32(1.0 / np.log(ratio))
    least, greatest = np.float32(lowest), np.float32(lowest * ratio ** (levels - 1))
    for i in range(n):
        noise[i] = clamp(sigmas[i], least, greatest) if i < len(sigmas) else least
        place = clamp((np.log(noise[i]) - floor) * per_level, np.float32(0.0), np.float32(levels - 1))
        level = min(np.int32(place), np.int32(levels - 2))
        part[i] = place - np.float32(level)
        first[i] = level * np.int32(cells)
    for j in range(len(responses)):
        u, table, slope, base = responses[j], lines[j].reshape(-1), growth[j], np.float32(reach)
        for i in range(n):
            u[i] *= middle / (base + slope * noise[i])
        for i in range(n):
            cell = first[i] + np.int32(clamp(u[i] + middle, np.float32(0.0), top))
            below[i] = np.uint32(cell)
            above[i] = np.uint32(cell + np.int32(cells))
        for i in range(n):
            low[i] = table[below[i]]
            high[i] = table[above[i]]
        for i in range(n):
            change = low_halves[2 * i] + low_halves[2 * i + 1] * u[i]
            next_change = high_halves[2 * i] + high_halves[2 * i + 1] * u[i]
            u[i] = change + part[i] * (next_change - change)
