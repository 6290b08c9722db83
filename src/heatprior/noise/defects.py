"""What a sensor does to single pixels and lines, found and mended before noise is looked at.

A hot or dead pixel lies beyond all of its eight neighbours, by far more than its surroundings vary, and shares nothing
with the four that touch it, as even a sharp star does. How far it must lie beyond them is told by the image itself:
its less isolated pixels are counted, and the count is continued to the distance beyond which it would hold
`FALSE_ALARMS` such pixels by chance. So noise, photons (whose few counts look like salt) and sparkling water raise the
bar where they are. Where most neighbours are equal there is no noise, hence no sensor: dots of drawings and text stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from heatprior.arrays import FloatArray, IntArray
from heatprior.border.entry import Entered, as_type
from heatprior.border.gaps import fill_missing
from heatprior.border.pixels import in_unit_range
from heatprior.border.scale import MOST_MISSING, Places, plane_of, squares
from heatprior.kernels.threads import products_in_one_thread

FALSE_ALARMS = 0.02  # of the outliers of an image, or of one if it has none
REACH = 3  # pixels around an outlier that tell it: a window of 7×7
STEPS = 1.5 ** np.arange(1.0, 4.1)  # isolations between which pixels are counted: 1.5, 2.25, 3.4, 5.1
LEAST = float(STEPS[-1])  # no pixel less isolated than this is an outlier
SHARED = 0.12  # of the height of an outlier, at most, that the four pixels touching it have on average
MOST_EQUAL = 0.5  # of the neighbours in a window: noise of half a grey level leaves as many equal
LOOKED_AT = 2**17  # pixels, about, in which isolated ones are counted
MOST_STEPS = 12  # beyond the last: an isolation of 650
ROWS_AT_ONCE = 64  # that are looked at: they stay in the processor's cache
DIFFERENT = 50_000  # pixels, about, whose values tell the step between grey levels
# What photographs without noise hold: which part of their pixels is beyond 7.6, and the power by which they grow fewer;
# which part lies in the first step in white noise; and the ratios of counts from step to step, for images too small to
# tell. From the 200 photographs of BSDS500's training set (`paper.evaluations.defects fit`, which judges on others).
SPARKLES, SPARKLES_AT, SPARKLES_POWER = 2e-6, 7.6, 3.0
IN_NOISE = 0.0100
RATIOS, PSEUDO_COUNT = (0.20, 0.15), 10.0

# Of lines. Dead are columns of one value, at most so many beside each other, in planes of at least so many.
MOST_ADJACENT, FEWEST_LINES = 2, 16
# Stripes: in how many bands of rows, of about how many rows in all, offsets are told; how many standard errors are
# clear; which part of their covariance far bands have of near ones, at least; how strong they are, over the noise of
# differences, at most; and how much of them a fiftieth of the columns may hold, where independent ones have 0.13.
BANDS, ROWS_LOOKED_AT = 8, 256
CLEARLY, ALIKE, MOST_OF_NOISE, MOST_OF_FEW = 5.0, 0.75, 1.5, 0.3

# Mosaics: pairs of 2×2 pixels along the side of a cell, cells along the side of an image at least, how many times what
# chance leaves in the means of cells alternates clearly, which part of the energy of slopes that is at least, and how
# much columns and rows have in common.
CELLS, FEWEST_CELLS, CLEARLY_ALTERNATES, LEAST_OF_SLOPES, COMMON = 8, 4, 8.0, 0.1, 0.8
_STEPS = np.array([[1.0, 1.0], [-3.0, 1.0], [3.0, -1.0], [-1.0, -1.0]], np.float32) / [8.0, 4.0]

_OFFSETS = np.stack(np.divmod(np.arange((2 * REACH + 1) ** 2), 2 * REACH + 1)) - REACH  # (2, 49)
_DISTANCE = np.abs(_OFFSETS).max(axis=0)
_TOUCHING, _AROUND = np.abs(_OFFSETS).sum(axis=0) == 1, _DISTANCE == 1
_FAR, _OTHERS = _DISTANCE > 1, _DISTANCE > 0
_CENTRE = len(_DISTANCE) // 2
_POWERS = [(i, j) for i in range(4) for j in range(4 - i)]  # of a cubic surface
_SURFACE = np.stack([np.prod((_OFFSETS[:, _OTHERS] / REACH) ** [[i], [j]], axis=0) for i, j in _POWERS], axis=1)
_FREE = len(_SURFACE) - len(_POWERS)  # numbers of 48 that the surface leaves
_REST = ((np.eye(len(_SURFACE)) - _SURFACE @ np.linalg.pinv(_SURFACE)) / np.sqrt(_FREE)).astype(np.float32)
# The range of eight of 48 pixels is at most this times their standard deviation: an isolated pixel lies beyond its
# neighbours by more than such a part of any range around it, and others need no window.
_RANGE = float(np.sqrt(2.0 * len(_SURFACE)))


class Rule(NamedTuple):
    """How isolated a pixel of a channel must be to be an outlier, and the least difference between grey levels."""

    threshold: float
    step: float


class Isolated(NamedTuple):
    """Pixels beyond all of their neighbours: where they are, by how much, and with which sign."""

    rows: IntArray
    columns: IntArray
    isolation: FloatArray  # beyond the nearest of eight neighbours, over what a cubic surface leaves of the 48 around
    is_hot: NDArray[np.bool_]
    filled: FloatArray  # what the neighbours say: their median


class Defects(NamedTuple):
    """What was found; as a string, in words."""

    hot: int = 0  # pixels
    dead: int = 0
    columns: int = 0  # that hold one value
    rows: int = 0
    stripes: int = 0  # images and directions in which every line has an offset of its own
    mosaic: int = 0  # one if every pixel has one colour of three

    def __bool__(self) -> bool:
        return any(self)

    def __str__(self) -> str:
        others = ["stripes"] * (self.stripes > 0) + ["Bayer mosaic"] * self.mosaic
        return ", ".join(filter(None, [self._lost(), *others]))

    def describe_mending(self) -> str:
        """What was done about them, in words."""
        done = [f"{self._lost()} filled in"] * bool(self._lost()) + ["stripes removed"] * (self.stripes > 0)
        return ", ".join(done + ["Bayer mosaic taken apart by colour"] * self.mosaic)

    def _lost(self) -> str:
        pixels = " and ".join(f"{n} {kind}" for n, kind in ((self.hot, "hot"), (self.dead, "dead")) if n)
        said = [f"{pixels} pixel{'s' * (self.hot + self.dead > 1)}"] if pixels else []
        lines = ((self.columns, "column"), (self.rows, "row"))
        return " and ".join(said + [f"{n} dead {kind}{'s' * (n > 1)}" for n, kind in lines if n])


NO_DEFECTS = Defects()


@products_in_one_thread()
def holds_mosaic(entered: Entered) -> bool:
    """Whether an image, or the middle one of a stack, holds one colour of three at every pixel (RGGB and the like).

    Then what alternates from column to column is what alternates from row to row, but for its sign: red less blue,
    slowly varying. Checkerboards alternate in neither, stripes in one of them, and textures in each by itself; of
    slopes little alternates.
    """
    height, width = (length // (2 * CELLS) * 2 * CELLS for length in entered.channels.shape[-2:])
    if entered.channel_axis is not None or min(height, width) < FEWEST_CELLS * 2 * CELLS:
        return False
    middle = tuple(length // 2 for length in entered.channels.shape[:-2])
    values = in_unit_range(entered.channels[middle][:height, :width], entered.full)
    found = []
    for way in (values, values.T):
        pairs = way[::2] + way[1::2]
        steps = pairs.reshape(len(pairs), -1, 4) @ _STEPS  # along four pixels: what alternates, and the slope
        cells = steps.reshape(len(way) // 2 // CELLS, CELLS, -1, CELLS // 2, 2).swapaxes(1, 2)
        means, own = cells.mean(axis=(2, 3)), cells[..., 0]
        alternating, slope = (means[..., 0], means[..., 1]) if way is values else (means[..., 0].T, means[..., 1].T)
        known = np.isfinite(alternating)  # the same for both
        if np.count_nonzero(known) < FEWEST_CELLS**2:
            return False
        energy, of_slopes = (float(np.mean(np.square(part[known]))) for part in (alternating, slope))
        own = own[np.isfinite(own).all(axis=(2, 3))]
        chance = (float(np.mean(np.square(own))) - energy) / own[0].size
        if energy <= max(CLEARLY_ALTERNATES * chance, LEAST_OF_SLOPES * of_slopes):
            return False
        found.append(alternating[known])
    common = abs(float(found[0] @ found[1])) / float(np.linalg.norm(found[0]) * np.linalg.norm(found[1]))
    return common > COMMON


def split_mosaic(pixels: NDArray[Any]) -> NDArray[Any]:
    """A mosaic (..., H, W) as its four planes (..., 4, h, w), an odd side being mirrored."""
    odd = [(0, length % 2) for length in pixels.shape[-2:]]
    even = np.pad(pixels, [(0, 0)] * (pixels.ndim - 2) + odd, mode="reflect")
    return np.stack([even[..., i::2, j::2] for i in (0, 1) for j in (0, 1)], axis=-3)


def join_mosaic(planes: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The inverse of `split_mosaic`, of this shape (..., H, W)."""
    height, width = (2 * length for length in planes.shape[-2:])
    joined = np.empty((*planes.shape[:-3], height, width), planes.dtype)
    for k in range(4):
        joined[..., k // 2 :: 2, k % 2 :: 2] = planes[..., k, :, :]
    return joined[..., : shape[-2], : shape[-1]]


@products_in_one_thread()
def mend(entered: Entered) -> tuple[Entered, Defects]:
    """The image with dead lines and outliers filled in from their neighbours, without stripes; and what was found."""
    channels, total = entered.channels, np.zeros(len(Defects._fields), int)
    mended = entered
    for c in range(entered.colours):
        rule = rule_of(channels[..., c, :, :], entered.full)
        for image in np.ndindex(channels.shape[:-3]):
            place = (*image, c)
            values = in_unit_range(channels[place], entered.full)
            changed, found = mend_plane(values, rule)
            if not found:
                continue
            if mended is entered:
                mended = entered._replace(pixels=entered.pixels.copy(order="K"))
            pixels = as_type(values[changed] * np.float64(entered.full), channels.dtype)
            mended.channels[place][changed] = pixels
            total += found
    return mended, Defects(*total.tolist())


def mend_plane(values: FloatArray, rule: Rule) -> tuple[NDArray[np.bool_], Defects]:
    """Mend a plane (H, W), in place: where it was changed, and what was found."""
    changed = np.zeros(values.shape, bool)
    columns, rows = _fill_dead_columns(values, changed), _fill_dead_columns(values.T, changed.T)
    stripes = 0
    for way in (values, values.T):
        if (offsets := find_offsets(way)) is not None:
            np.subtract(way, offsets, out=way)
            stripes += 1
    found = find_isolated(values, rule.threshold, rule.step)
    values[found.rows, found.columns] = found.filled
    changed[found.rows, found.columns] = True
    changed |= stripes > 0
    hot = int(found.is_hot.sum())
    return changed, Defects(hot, len(found.rows) - hot, columns, rows, stripes)


def _fill_dead_columns(values: FloatArray, changed: NDArray[np.bool_]) -> int:
    """Fill columns of one value between columns of noise from both sides, in place; returns how many they are.

    A line that was drawn and photographed has noise on it; one on a drawing has none beside it, either.
    """
    if min(values.shape) < FEWEST_LINES:
        return 0
    one_value = np.r_[False, (values == values[0]).all(axis=0), False]
    starts, ends = (np.flatnonzero(np.diff(one_value.astype(np.int8)) == sign) for sign in (1, -1))
    filled = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if end - start > MOST_ADJACENT or start == 0 or end == values.shape[1]:
            continue
        beside = values[:, [start - 1, end]]
        if np.max((beside[1:] == beside[:-1]).mean(axis=0)) >= MOST_EQUAL:
            continue
        left, right = (np.where(np.isnan(beside[:, k]), beside[:, 1 - k], beside[:, k]) for k in (0, 1))
        for column in range(start, end):
            part = (column + 1 - start) / (end + 1 - start)
            values[:, column] = (1.0 - part) * left + part * right
        changed[:, start:end] = True
        filled += end - start
    return filled


def find_offsets(values: FloatArray) -> FloatArray | None:
    """What is added to each column (W,) from the top to the bottom of a plane (H, W); None if that is nothing.

    A sensor adds a number of its own to every column, as weak as its noise, and no two of them have to do with each
    other. The differences from both neighbours, in bands of rows, tell that: they agree between far bands as between
    near ones, unlike edges; they are not alike some columns further, unlike gratings and blinds; and they are not
    those of a few columns, unlike lines that were drawn.
    """
    height, width = values.shape
    if height < FEWEST_LINES * BANDS // 2 or width < 2 * FEWEST_LINES:
        return None
    if np.isnan(np.min(values)):
        if np.isnan(values).mean() > MOST_MISSING:
            return None
        values = values.copy()
        fill_missing(values)
    some = values[:: max(1, height // ROWS_LOOKED_AT)]
    bands = [_differences(rows) for rows in np.array_split(some, BANDS)]
    medians = np.stack([np.median(band, axis=0) for band in bands])  # (bands, W - 2)
    covariances = medians @ medians.T / (width - 2)
    apart = np.abs(np.subtract.outer(np.arange(BANDS), np.arange(BANDS)))
    own, near, far = (float(covariances[where].mean()) for where in (apart == 0, apart == 1, apart >= BANDS // 2))
    if far <= CLEARLY * own / np.sqrt(width) or far < ALIKE * near:
        return None
    mean = medians.mean(axis=0)
    noise = float(np.median(np.abs(np.concatenate(bands) - mean))) / 0.6745
    energy = np.sort(np.square(mean))[::-1]
    sparse = energy[: max(1, len(energy) // 50)].sum() > MOST_OF_FEW * energy.sum()
    spectrum = np.abs(np.fft.rfft(mean, 2 * len(mean))) ** 2
    alike = np.fft.irfft(spectrum)[: len(mean) // 2] / energy.sum()
    expected = np.zeros_like(alike)
    expected[:3] = 1.0, -2.0 / 3.0, 1.0 / 6.0  # of independent offsets
    if sparse or far > MOST_OF_NOISE**2 * noise**2 or np.abs(alike - expected).max() > CLEARLY / np.sqrt(width):
        return None
    return _offsets_of_differences(
        np.median(_differences(values), axis=0), far / 1.5, (own - far) / height * len(some) / BANDS
    )


def _differences(values: FloatArray) -> FloatArray:
    """Of every pixel but those at the ends of rows from the mean of both neighbours."""
    return np.asarray(values[:, 1:-1] - 0.5 * (values[:, :-2] + values[:, 2:]))


def _offsets_of_differences(differences: FloatArray, variance: float, error: float) -> FloatArray:
    """The likeliest independent offsets (W,) of a variance, by differences (W - 2,) of which each has an error."""
    from scipy.linalg import solveh_banded  # noqa: PLC0415 (slow to import, and stripes are rare)

    width = len(differences) + 2
    kernel = np.array([-0.5, 1.0, -0.5])
    right, bands = np.zeros(width), np.zeros((3, width))
    for k in range(3):
        right[k : k + width - 2] += kernel[k] * differences
        for j in range(k, 3):
            bands[2 - (j - k), j : j + width - 2] += kernel[k] * kernel[j]
    bands[2] += max(error, 1e-6 * variance) / variance
    return np.asarray(solveh_banded(bands, right), np.float32)


def rule_of(planes: NDArray[Any], full: float) -> Rule:
    """The rule for the planes (..., H, W) of a channel, from some squares of them, `full` being full scale."""
    found = [planes[places] for places in places_of_rule(planes.shape)]
    return rule_of_squares(found, full, planes.shape[-2] * planes.shape[-1])


def places_of_rule(shape: Sequence[int]) -> list[Places]:
    """The squares of planes (..., H, W) from which the rule is told."""
    places = squares(shape)
    area = max(1, int(np.prod([place.stop - place.start for place in places[0]])))
    chosen = np.unique(np.linspace(0, len(places) - 1, max(1, LOOKED_AT // area)).round().astype(int))
    return [places[k] for k in chosen]


def rule_of_squares(squares_found: Sequence[NDArray[Any]], full: float, pixels: int) -> Rule:
    """The rule for images of so many pixels, of which these are squares (..., h, w), `full` being full scale."""
    found = [in_unit_range(plane_of(square), full) for square in squares_found]
    every = np.concatenate([square.reshape(-1) for square in found])
    steps = np.diff(np.unique(every[:: max(1, every.size // DIFFERENT)]))
    step = float(np.min(steps, initial=np.inf, where=steps > 0))
    step = step if np.isfinite(step) else 0.0
    isolation = np.concatenate([find_isolated(square, float(STEPS[0]), step).isolation for square in found])
    return Rule(_threshold(isolation, every.size, pixels), step)


def _threshold(found: FloatArray, looked_at: int, pixels: int) -> float:
    """The isolation beyond which, of all that an image of so many pixels holds, `FALSE_ALARMS` are there by chance.

    Counted are those `found` in so many pixels `looked_at`. From step to step the ratio of counts falls as it fell
    before: that is what noise does. Beside noise there is content, where noise does not rule.
    """
    counts = np.histogram(found, STEPS)[0]
    first, second = (
        (after + PSEUDO_COUNT * usual) / (before + PSEUDO_COUNT)
        for before, after, usual in zip(counts[:-1], counts[1:], RATIOS, strict=True)
    )
    bend, beyond = min(1.0, second / first), np.arange(0.0, MOST_STEPS, 0.05)  # steps beyond the last
    last = max(float(counts[-1]), RATIOS[1]) * pixels / looked_at
    own = last * second ** (beyond + 1.0) * bend ** ((beyond + 1.0) * (beyond + 2.0) / 2.0)
    isolation = LEAST * (STEPS[1] / STEPS[0]) ** beyond
    ruled = min(1.0, float(counts[0]) / (IN_NOISE * looked_at))
    content = pixels * SPARKLES * (1.0 - ruled) ** 2 * (isolation / SPARKLES_AT) ** -SPARKLES_POWER
    beyond_it = (len(found) - np.searchsorted(np.sort(found), isolation)) * pixels / looked_at
    enough = np.flatnonzero(own + content < FALSE_ALARMS * np.maximum(beyond_it, 1.0))
    # Never below what a few photographs hold without any noise, such as the glint in an eye or on a cup.
    return max(float(isolation[enough[0]]), SPARKLES_AT) if len(enough) else float(isolation[-1])


def find_isolated(plane: FloatArray, least: float, step: float) -> Isolated:
    """The pixels (H, W) that are more isolated than `least`, in surroundings that vary; NaN are none of them.

    `step` is the least difference between grey levels: no spread is smaller.
    """
    if min(plane.shape) <= REACH:
        nothing = np.zeros(0, np.intp)
        return Isolated(nothing, nothing, np.zeros(0), np.zeros(0, bool), np.zeros(0))
    padded = np.pad(plane, REACH, mode="reflect")
    parts = []
    for start in range(0, len(plane), ROWS_AT_ONCE):
        own, *others = _likely(padded[start : start + ROWS_AT_ONCE + 2 * REACH], least, step)
        parts.append((own + start, *others))
    rows, columns, gaps = (np.concatenate(each) for each in zip(*parts, strict=True))
    windows = sliding_window_view(padded, (2 * REACH + 1,) * 2)[rows, columns].reshape(len(rows), len(_DISTANCE))
    if len(unknown := np.flatnonzero(np.isnan(windows).any(axis=1))):
        some = windows[unknown]
        windows[unknown] = np.where(np.isnan(some), np.nanmean(some[:, _OTHERS], axis=1, keepdims=True), some)
    ground = windows[:, _FAR].mean(axis=1)
    rest = np.linalg.norm((windows[:, _OTHERS] - ground[:, None]) @ _REST, axis=1)
    isolation = gaps / np.maximum(rest, max(step, float(np.finfo(np.float32).tiny)))
    height = windows[:, _CENTRE] - ground
    shared = (windows[:, _TOUCHING].mean(axis=1) - ground) * np.sign(height)
    chosen = np.flatnonzero((isolation > least) & (shared <= SHARED * np.abs(height)))
    chosen = chosen[_hold_noise(windows[chosen])]
    filled = np.asarray(np.median(windows[chosen][:, _AROUND], axis=1), np.float32)
    return Isolated(rows[chosen], columns[chosen], isolation[chosen], height[chosen] > 0.0, filled)


def _likely(padded: FloatArray, least: float, step: float) -> tuple[IntArray, IntArray, FloatArray]:
    """Rows and columns, inside some padded rows, of pixels that may be so isolated, and how far beyond the ring."""
    values = padded[REACH:-REACH, REACH:-REACH]
    lowest, highest = _ends_of_ring(padded)  # of pixels from -2 to +2 beyond the edges
    inside = (slice(REACH - 1, 1 - REACH),) * 2
    gap = np.maximum(values - highest[inside], lowest[inside] - values)
    spread = np.subtract(highest, lowest, out=highest)
    rows, columns = np.nonzero(gap > (least / _RANGE) * np.maximum(spread[inside], _RANGE * step))
    around = [spread[rows + i, columns + j] for i in (0, 4) for j in (0, 4)]
    likely = gap[rows, columns] > (least / _RANGE) * np.fmax.reduce(around, axis=0)
    rows, columns = rows[likely], columns[likely]
    return rows, columns, gap[rows, columns]


def _hold_noise(windows: FloatArray) -> NDArray[np.bool_]:
    """Whether most neighbours in windows (n, 49) differ: those of drawings and of clipped pixels do not."""
    shaped = windows.reshape(-1, 2 * REACH + 1, 2 * REACH + 1)
    equal = [(np.diff(shaped, axis=axis) == 0).mean(axis=(1, 2)) for axis in (1, 2)]
    return np.asarray(equal[0] + equal[1] < 2.0 * MOST_EQUAL)


def _ends_of_ring(padded: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The lowest and the highest of the eight neighbours of every pixel but those at the edges; NaN are none."""
    found = []
    for end in (np.fmin, np.fmax) if np.isnan(np.min(padded)) else (np.minimum, np.maximum):
        beside = end(padded[:-2], padded[2:])  # above and below
        column = end(beside, padded[1:-1])
        found.append(end(end(column[:, :-2], column[:, 2:]), beside[:, 1:-1]))
    return found[0], found[1]
