"""Scales by short filters, for images of which only pieces are here: `restoration/scales.py` without its transforms.

There an image is halved by cropping its cosine transform, which is a filter as long as the image. Here the filter ends
after some pixels: a root raised cosine, one below three quarters of the coarse band and nothing above five quarters.
Its shifts by two pixels are orthogonal, but for what is cut off at its ends: so white noise stays white. The crossover
between the scales is smooth in frequency, so its filter is short by itself. Pixels beyond the edges are mirrored, the
edge between two of them, as a cosine transform does it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.kernels.short_filters import weighted_sums
from heatprior.pixels.gaps import Window
from heatprior.restoration.scales import Crossover

HALF = 12  # pixels on either side of a coarse pixel's centre, from which it is made: even
ROLL_OFF = 0.25  # of the coarse band, on either side of its edge
CROSSOVER_REACH = 12  # coarse pixels
ROWS_AT_ONCE = 64  # of the coarse image: what is needed on the way stays small, and is not asked of the system anew
PERIOD = 256  # of the torus on which the crossover's filter is found


def _root_raised_cosine() -> FloatArray:
    """(2 HALF,), of sum one, around the point between the two middle pixels."""
    frequencies = (np.arange(4096) + 0.5) / 4096 * 2.0  # of the coarse band, whose edge is 1; the fine one ends at 2
    beyond = np.clip((frequencies - 1.0 + ROLL_OFF) / (2.0 * ROLL_OFF), 0.0, 1.0)
    places = np.arange(2 * HALF) - (HALF - 0.5)
    taps = np.cos(0.5 * np.pi * np.outer(places, frequencies)) @ np.cos(0.5 * np.pi * beyond)
    return np.asarray(taps / taps.sum())


TAPS = _root_raised_cosine()
TWICE = 2.0 * TAPS[::-1]  # of doubling
NOISE_FACTOR = float(np.square(TAPS).sum())  # of white noise, in two directions


@lru_cache(maxsize=32)
def crossover_filter(crossover: Crossover) -> FloatArray:
    """How much of a coarse pixel's neighbours takes part in the merging: (2 CROSSOVER_REACH + 1) squared."""
    along = 2.0 * np.fft.fftfreq(PERIOD)  # of the coarse band
    part = crossover._replace(height=1.0).part_of_coarse(np.hypot(along[:, None], along))
    near = np.arange(-CROSSOVER_REACH, CROSSOVER_REACH + 1)
    weights = np.fft.ifft2(part).real[np.ix_(near, near)]
    return np.asarray(weights * (crossover.height * part[0, 0] / weights.sum()))


def halved(values: FloatArray, here: Window, wanted: Window, shape: tuple[int, int]) -> FloatArray:
    """The pixels `wanted` of an image (H, W) at half its size, of which the pixels `here` are there."""
    rows, columns = wanted
    result = np.empty((rows.stop - rows.start, columns.stop - columns.start), np.float32)
    for start in range(rows.start, rows.stop, ROWS_AT_ONCE):
        band = slice(start, min(start + ROWS_AT_ONCE, rows.stop))
        source = around(values, here, [_of_halving(band), _of_halving(columns)], shape)
        low = weighted_sums(source, TAPS[:, None], 2)
        even, odd = (weighted_sums(low[:, k::2], TAPS[None, k::2]) for k in (0, 1))
        np.add(even, odd, out=result[start - rows.start :][: len(even)])
    return result


def doubled(values: FloatArray, here: Window, wanted: Window, half: tuple[int, int]) -> FloatArray:
    """The transpose of halving, times four: the pixels `wanted` of an image from those of its `half` that are here."""
    rows, columns = wanted
    result = np.empty((rows.stop - rows.start, columns.stop - columns.start), np.float32)
    first = columns.start % 2
    for start in range(rows.start // 2 * 2, rows.stop, 2 * ROWS_AT_ONCE):
        band = slice(start, min(start + 2 * ROWS_AT_ONCE, rows.stop))
        source = around(values, here, [_of_doubling(band), _of_doubling(columns)], half)
        wide = np.empty((len(source), 2 * (source.shape[1] - HALF)), np.float32)
        for k in (0, 1):
            wide[:, k::2] = weighted_sums(source[:, k : source.shape[1] - 1 + k], TWICE[None, k::2])
        wide = wide[:, first : first + result.shape[1]]
        for k in (0, 1):
            lines = weighted_sums(wide[k : len(wide) - 1 + k], TWICE[k::2, None])
            skipped = max(0, -(-(rows.start - start - k) // 2))  # above the first that is wanted
            target = result[start + k + 2 * skipped - rows.start : band.stop - rows.start : 2]
            target[...] = lines[skipped : skipped + len(target)]
    return result


def reads_of_halving(wanted: Window, shape: tuple[int, int]) -> Window:
    """Of an image (H, W), what the pixels `wanted` at half its size are made from."""
    return _read(wanted, _of_halving, shape)


def reads_of_doubling(wanted: Window, half: tuple[int, int]) -> Window:
    """Of an image at half its size, what the pixels `wanted` of the whole are made from."""
    return _read(wanted, _of_doubling, half)


def reads_of_crossover(wanted: Window, half: tuple[int, int]) -> Window:
    """What the crossover of the pixels `wanted` is made from."""
    return _read(wanted, _of_crossover, half)


def crossed_over(
    values: FloatArray, here: Window, wanted: Window, half: tuple[int, int], crossover: Crossover
) -> FloatArray:
    """The part of an image that the coarse scale decides, at the pixels `wanted`."""
    source = around(values, here, [_of_crossover(place) for place in wanted], half)
    return weighted_sums(source, crossover_filter(crossover))


def around(values: FloatArray, here: Window, places: list[range], shape: tuple[int, int]) -> FloatArray:
    """Rows and columns of an image, mirrored beyond its edges, of which the pixels `here` are there."""
    for axis, (piece, place, length) in enumerate(zip(here, places, shape, strict=True)):
        if place.start >= 0 and place.stop <= length:
            inside = slice(place.start - piece.start, place.stop - piece.start)
            values = values[inside] if axis == 0 else values[:, inside]
        else:
            values = np.take(values, mirrored(place, length) - piece.start, axis)
    return values


def mirrored(places: range, length: int) -> IntArray:
    """Which pixels of a side stand at these places, some of them beyond its ends."""
    phase = np.arange(places.start, places.stop) % (2 * length)
    return np.minimum(phase, 2 * length - 1 - phase)


def _of_halving(wanted: slice) -> range:
    return range(2 * wanted.start + 1 - HALF, 2 * wanted.stop - 1 + HALF)


def _of_doubling(wanted: slice) -> range:
    return range(wanted.start // 2 - HALF // 2, (wanted.stop - 1) // 2 + 1 + HALF // 2)


def _of_crossover(wanted: slice) -> range:
    return range(wanted.start - CROSSOVER_REACH, wanted.stop + CROSSOVER_REACH)


def _read(wanted: Window, places: Callable[[slice], range], shape: tuple[int, int]) -> Window:
    rows, columns = (mirrored(places(place), length) for place, length in zip(wanted, shape, strict=True))
    return slice(int(rows.min()), int(rows.max()) + 1), slice(int(columns.min()), int(columns.max()) + 1)
