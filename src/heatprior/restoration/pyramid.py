"""Scales: an image at half its size, where its noise is half as strong and a patch sees twice as far.

Halving is a root raised cosine filter, one below three quarters of the coarse band and nothing above five quarters. Its
shifts by two pixels are orthogonal, but for what is cut off at its ends: so white noise stays white. The denoised
coarse image decides the low frequencies of the fine one: merged = fine + double(crossover(coarse − halve(fine))). All
filters are short, so a window of the result follows from a window of the image, mirrored between two pixels beyond its
edges.

Where one scale takes over is a `Crossover`, which a card may have for some noise levels: `"crossover": {"sigmas": [s_1
… s_m], "edges": […], "widths": […]}`. With `"crossover_between"`, which has `"heights"` as well, the coarse image takes
part after every step of the fine one: what is left of the noise is then of high frequency, and shapes are easier to
tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.border.gaps import Window
from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import weighted_sums
from heatprior.kernels.threads import for_each
from heatprior.noise_value import Noise
from heatprior.priors.schedules import TableOverSigma, read_table

HALF = 12  # pixels on either side of a coarse pixel's centre, from which it is made: even
ROLL_OFF = 0.25  # of the coarse band, on either side of its edge
CROSSOVER_REACH = 12  # coarse pixels
ROWS_AT_ONCE = 64  # of the coarse image: what is needed on the way stays small, and is not asked of the system anew
PERIOD = 256  # of the torus on which the crossover's filter is found
CARD_ENTRY, BETWEEN = "crossover", "crossover_between"
LARGEST_EXPONENT = 80.0  # beyond it next to nothing is left


class Crossover(NamedTuple):
    """Where both scales count the same, and how wide the transition is, over the highest coarse frequency; a height."""

    edge: float = 0.5
    width: float = 0.1
    height: float = 1.0  # how much the coarse image counts at the lowest frequencies

    def part_of_coarse(self, frequencies: FloatArray) -> FloatArray:
        """How much the coarse image counts at these frequencies."""
        exponents = np.minimum((frequencies - self.edge) / self.width, LARGEST_EXPONENT)
        return np.asarray(self.height / (1.0 + np.exp(exponents)))


def read_crossovers(card: Mapping[str, Any], entry: str = CARD_ENTRY) -> TableOverSigma | None:
    """The edges, widths and heights that a prior's card has for some noise levels, if it has any."""
    names = ("sigmas", "edges", "widths", *(("heights",) if entry == BETWEEN else ()))

    def make(sigmas: tuple[float, ...], *columns: tuple[float, ...]) -> TableOverSigma:
        if not all(width > 0.0 for width in columns[1]):
            raise InvalidInputError(f"widths are {columns[1]}; expected numbers above 0")
        return TableOverSigma(sigmas, columns if entry == BETWEEN else (*columns, (1.0,) * len(sigmas)))

    return read_table(card, entry, names, make)


def crossover_table(card: Mapping[str, Any], entry: str = CARD_ENTRY) -> TableOverSigma:
    """The crossover after the last step, or between steps, over sigma: that of the card, or the default one."""
    return read_crossovers(card, entry) or TableOverSigma((1.0,), tuple((value,) for value in Crossover()))


def crossover_at(table: TableOverSigma, noise: Noise) -> Crossover:
    """The crossover for noise that is of this level in the fine image; for a map, at its middle level."""
    return Crossover(*map(float, table.at(sqrt(noise.lowest * noise.highest))))


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


@lru_cache(maxsize=256)  # more than a schedule of restoring asks for at all scales
def crossover_filter(crossover: Crossover) -> FloatArray:
    """How much of a coarse pixel's neighbours takes part in the merging: (2 CROSSOVER_REACH + 1) squared."""
    along = 2.0 * np.fft.fftfreq(PERIOD)  # of the coarse band
    part = crossover._replace(height=1.0).part_of_coarse(np.hypot(along[:, None], along))
    near = np.arange(-CROSSOVER_REACH, CROSSOVER_REACH + 1)
    weights = np.fft.ifft2(part).real[np.ix_(near, near)]
    return np.asarray(weights * (crossover.height * part[0, 0] / weights.sum()))


def halve(values: FloatArray, here: Window, wanted: Window, shape: tuple[int, int]) -> FloatArray:
    """The pixels `wanted` of an image (H, W) at half its size, of which the pixels `here` are there."""
    rows, columns = wanted
    result = np.empty((rows.stop - rows.start, columns.stop - columns.start), np.float32)

    def fill(start: int) -> None:
        band = slice(start, min(start + ROWS_AT_ONCE, rows.stop))
        source = around(values, here, [of_halving(band), of_halving(columns)], shape)
        low = weighted_sums(source, TAPS[:, None], 2)
        even, odd = weighted_sums(low[:, ::2], TAPS[None, ::2]), weighted_sums(low[:, 1::2], TAPS[None, 1::2])
        np.add(even, odd, out=result[start - rows.start :][: len(even)])

    for_each(fill, range(rows.start, rows.stop, ROWS_AT_ONCE))
    return result


def double(values: FloatArray, here: Window, wanted: Window, half: tuple[int, int]) -> FloatArray:
    """The transpose of halving, times four: the pixels `wanted` of an image from those of its `half` that are here."""
    rows, columns = wanted
    result = np.empty((rows.stop - rows.start, columns.stop - columns.start), np.float32)
    first = columns.start % 2

    def fill(start: int) -> None:
        band = slice(start, min(start + 2 * ROWS_AT_ONCE, rows.stop))
        source = around(values, here, [of_doubling(band), of_doubling(columns)], half)
        wide = np.empty((len(source), 2 * (source.shape[1] - HALF)), np.float32)
        for k in (0, 1):
            wide[:, k::2] = weighted_sums(source[:, k : source.shape[1] - 1 + k], TWICE[None, k::2])
        wide = wide[:, first : first + result.shape[1]]
        for k in (0, 1):
            lines = weighted_sums(wide[k : len(wide) - 1 + k], TWICE[k::2, None])
            skipped = max(0, -(-(rows.start - start - k) // 2))  # above the first that is wanted
            target = result[start + k + 2 * skipped - rows.start : band.stop - rows.start : 2]
            target[...] = lines[skipped : skipped + len(target)]

    for_each(fill, range(rows.start // 2 * 2, rows.stop, 2 * ROWS_AT_ONCE))
    return result


def sources(wanted: Window, places: Callable[[slice], range], shape: tuple[int, int]) -> Window:
    """The least window of an image, mirrored beyond its edges, with all places from which `wanted` is made."""
    rows, columns = (mirror(places(place), length) for place, length in zip(wanted, shape, strict=True))
    return slice(int(rows.min()), int(rows.max()) + 1), slice(int(columns.min()), int(columns.max()) + 1)


def cross_over(
    values: FloatArray, here: Window, wanted: Window, half: tuple[int, int], crossover: Crossover
) -> FloatArray:
    """The part of an image that the coarse scale decides, at the pixels `wanted`."""
    rows, columns = wanted
    weights = crossover_filter(crossover)
    result = np.empty((rows.stop - rows.start, columns.stop - columns.start), np.float32)

    def fill(start: int) -> None:
        band = slice(start, min(start + ROWS_AT_ONCE, rows.stop))
        source = around(values, here, [of_crossover(band), of_crossover(columns)], half)
        result[band.start - rows.start : band.stop - rows.start] = weighted_sums(source, weights)

    for_each(fill, range(rows.start, rows.stop, ROWS_AT_ONCE))
    return result


def around(values: FloatArray, here: Window, places: list[range], shape: tuple[int, int]) -> FloatArray:
    """Rows and columns of an image, mirrored beyond its edges, of which the pixels `here` are there."""
    for axis, (piece, place, length) in enumerate(zip(here, places, shape, strict=True)):
        if place.start >= 0 and place.stop <= length:
            inside = slice(place.start - piece.start, place.stop - piece.start)
            values = values[inside] if axis == 0 else values[:, inside]
        else:
            values = np.take(values, mirror(place, length) - piece.start, axis)
    return values


def mirror(places: range, length: int) -> IntArray:
    """Which pixels of a side stand at these places, some of them beyond its ends."""
    phase = np.arange(places.start, places.stop) % (2 * length)
    return np.minimum(phase, 2 * length - 1 - phase)


def of_halving(wanted: slice) -> range:
    """Of an image, what pixels at half its size are made from."""
    return range(2 * wanted.start + 1 - HALF, 2 * wanted.stop - 1 + HALF)


def of_doubling(wanted: slice) -> range:
    """Of an image at half its size, what pixels of the whole are made from."""
    return range(wanted.start // 2 - HALF // 2, (wanted.stop - 1) // 2 + 1 + HALF // 2)


def of_crossover(wanted: slice) -> range:
    """What the crossover of pixels is made from."""
    return range(wanted.start - CROSSOVER_REACH, wanted.stop + CROSSOVER_REACH)


def halve_noise(noise: Noise, here: Window, wanted: Window, shape: tuple[int, int]) -> Noise:
    """The noise at the pixels `wanted` of the halved image, of that of the pixels `here` of an image (H, W)."""
    rows, columns = (
        slice(2 * place.start, min(2 * place.stop, length)) for place, length in zip(wanted, shape, strict=True)
    )
    return cut_noise(noise, shift((rows, columns), here)).halve(
        (rows.stop - rows.start, columns.stop - columns.start), NOISE_FACTOR
    )


def cut_noise(noise: Noise, window: Window) -> Noise:
    """The noise of a window of the pixels whose noise this is."""
    places = np.arange(window[0].start, window[0].stop)
    return noise.rearrange(lambda read, rows: read(_as_slice(places[rows]))[:, window[1]])


def _as_slice(places: IntArray) -> slice | IntArray:
    """The same rows, as a slice where they are successive, so that they are not copied."""
    successive = len(places) > 0 and bool((np.diff(places) == 1).all())
    return slice(int(places[0]), int(places[-1]) + 1) if successive else places


class Merging(NamedTuple):
    """A fine image (H, W) merged with its coarse one, which is known in a `window` of it."""

    shape: tuple[int, int]
    half: tuple[int, int]
    crossover: Crossover = Crossover()
    coarse: FloatArray | None = None  # None where only windows are planned
    window: Window = (slice(0), slice(0))

    def reads_of_coarse(self, wanted: Window) -> Window:
        """Of the coarse image, for the pixels `wanted` of the fine one."""
        return sources(sources(wanted, of_doubling, self.half), of_crossover, self.half)

    def reads(self, wanted: Window) -> Window:
        """Of the fine one, likewise."""
        return join(wanted, sources(self.reads_of_coarse(wanted), of_halving, self.shape))

    def merge(self, fine: FloatArray, here: Window, wanted: Window) -> FloatArray:
        """The pixels `wanted`, where the fine image is known `here`."""
        assert self.coarse is not None
        below, decided = self.reads_of_coarse(wanted), sources(wanted, of_doubling, self.half)
        difference = self.coarse[shift(below, self.window)] - halve(fine, here, below, self.shape)
        part = cross_over(difference, below, decided, self.half, self.crossover)
        result = double(part, decided, wanted, self.half)
        result += fine[shift(wanted, here)]
        return result


def join(first: Window, second: Window) -> Window:
    """The least window that holds both."""
    rows, columns = (slice(min(a.start, b.start), max(a.stop, b.stop)) for a, b in zip(first, second, strict=True))
    return rows, columns


def shift(window: Window, outer: Window) -> Window:
    """A window as seen from where another one begins."""
    rows, columns = (slice(a.start - b.start, a.stop - b.start) for a, b in zip(window, outer, strict=True))
    return rows, columns
