"""What a sensor does to single pixels: hot and dead ones, found and filled in before noise is looked at.

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
from heatprior.border.entry import Entered
from heatprior.border.gaps import fill_missing
from heatprior.border.scale import plane_of, squares

FALSE_ALARMS = 0.02  # of the outliers of an image, or of one if it has none
REACH = 3  # pixels around an outlier that tell it: a window of 7×7
STEPS = 1.5 ** np.arange(1.0, 4.1)  # isolations between which pixels are counted: 1.5, 2.25, 3.4, 5.1
LEAST = float(STEPS[-1])  # no pixel less isolated than this is an outlier
SHARED = 0.12  # of the height of an outlier, at most, that the four pixels touching it have on average
MOST_EQUAL = 0.5  # of the neighbours in a window: noise of half a grey level leaves as many equal
LOOKED_AT = 2**18  # pixels, about, in which isolated ones are counted
MOST_STEPS = 12  # beyond the last: an isolation of 650
DIFFERENT = 50_000  # pixels, about, whose values tell the step between grey levels
# What photographs without noise hold: which part of their pixels is beyond 7.6, and the power by which they grow fewer;
# which part lies in the first step in white noise; and the ratios of counts from step to step, for images too small to
# tell. From the 200 photographs of BSDS500's training set (`paper.evaluations.defects fit`, which judges on others).
SPARKLES, SPARKLES_AT, SPARKLES_POWER = 2e-6, 7.6, 3.0
IN_NOISE = 0.0100
RATIOS, PSEUDO_COUNT = (0.20, 0.15), 10.0

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

    hot: int = 0
    dead: int = 0

    def __bool__(self) -> bool:
        return any(self)

    def __str__(self) -> str:
        counts = [(self.hot, "hot"), (self.dead, "dead")]
        said = " and ".join(f"{count} {kind}" for count, kind in counts if count)
        return f"{said} pixel{'s' * (self.hot + self.dead > 1)}" if said else ""

    def describe_mending(self) -> str:
        """What was done about them, in words."""
        return f"{self} filled in"


NO_DEFECTS = Defects()


def mend(entered: Entered) -> tuple[Entered, Defects]:
    """The image with its outliers replaced by the median of their neighbours, and how many they were."""
    channels, mended = entered.channels, None
    hot = dead = 0
    for c in range(entered.colours):
        rule = rule_of(channels[..., c, :, :])
        for image in np.ndindex(channels.shape[:-3]):
            plane = channels[(*image, c)]
            found = find_outliers(plane, rule)
            if not len(found.rows):
                continue
            if mended is None:
                mended = entered._replace(pixels=entered.pixels.copy(order="K"))
            mended.channels[(*image, c)][found.rows, found.columns] = found.filled
            hot, dead = hot + int(found.is_hot.sum()), dead + int((~found.is_hot).sum())
    return mended or entered, Defects(hot, dead)


def rule_of(planes: NDArray[Any]) -> Rule:
    """The rule for the planes (..., H, W) of a channel, from some squares of them."""
    places = squares(planes.shape)
    area = max(1, int(np.prod([place.stop - place.start for place in places[0]])))
    chosen = np.unique(np.linspace(0, len(places) - 1, max(1, LOOKED_AT // area)).round().astype(int))
    return rule_of_squares([plane_of(planes[places[k]]) for k in chosen], planes.shape[-2] * planes.shape[-1])


def rule_of_squares(found: Sequence[NDArray[Any]], pixels: int) -> Rule:
    """The rule for images of so many pixels, of which these are squares (h, w)."""
    every = np.concatenate([square.reshape(-1) for square in found])
    steps = np.diff(np.unique(every[:: max(1, every.size // DIFFERENT)].astype(np.float32)))
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
    return float(isolation[enough[0]]) if len(enough) else float(isolation[-1])


def find_outliers(plane: NDArray[Any], rule: Rule) -> Isolated:
    """The outliers of a plane (H, W) by a rule."""
    return find_isolated(plane, rule.threshold, rule.step)


def find_isolated(plane: NDArray[Any], least: float, step: float) -> Isolated:
    """The pixels (H, W) that are more isolated than `least`, in surroundings that vary; NaN are none of them.

    `step` is the least difference between grey levels: no spread is smaller.
    """
    values = np.array(plane, np.float32)
    missing = np.isnan(values) if plane.dtype.kind == "f" and np.isnan(np.min(plane)) else None
    if min(values.shape) <= REACH or (missing is not None and missing.all()):
        nothing = np.zeros(0, np.intp)
        return Isolated(nothing, nothing, np.zeros(0), np.zeros(0, bool), np.zeros(0))
    if missing is not None:
        fill_missing(values)
    padded = np.pad(values, REACH, mode="reflect")
    lowest, highest = _ends_of_ring(padded)  # of pixels from -2 to +2 beyond the edges
    inside = (slice(REACH - 1, 1 - REACH),) * 2
    gap = np.maximum(values - highest[inside], lowest[inside] - values)
    spread = np.subtract(highest, lowest, out=highest)
    rows, columns = np.nonzero(gap > (least / _RANGE) * np.maximum(spread[inside], _RANGE * step))
    around = [spread[rows + i, columns + j] for i in (0, 4) for j in (0, 4)]
    likely = gap[rows, columns] > (least / _RANGE) * np.max(around, axis=0, initial=0.0)
    if missing is not None:
        likely &= ~missing[rows, columns]
    rows, columns = rows[likely], columns[likely]
    windows = sliding_window_view(padded, (2 * REACH + 1,) * 2)[rows, columns].reshape(len(rows), len(_DISTANCE))
    gaps, centres = gap[rows, columns], windows[:, _CENTRE]
    ground = windows[:, _FAR].mean(axis=1)
    rest = np.linalg.norm((windows[:, _OTHERS] - ground[:, None]) @ _REST, axis=1)
    isolation = gaps / np.maximum(rest, max(step, float(np.finfo(np.float32).tiny)))
    height = centres - ground
    shared = (windows[:, _TOUCHING].mean(axis=1) - ground) * np.sign(height)
    chosen = np.flatnonzero((isolation > least) & (shared <= SHARED * np.abs(height)))
    chosen = chosen[_hold_noise(windows[chosen])]
    filled = np.asarray(np.median(windows[chosen][:, _AROUND], axis=1), np.float32)
    return Isolated(rows[chosen], columns[chosen], isolation[chosen], height[chosen] > 0.0, filled)


def _hold_noise(windows: FloatArray) -> NDArray[np.bool_]:
    """Whether most neighbours in windows (n, 49) differ: those of drawings and of clipped pixels do not."""
    shaped = windows.reshape(-1, 2 * REACH + 1, 2 * REACH + 1)
    equal = [
        (shaped[:, 1:] == shaped[:, :-1]).mean(axis=(1, 2)),
        (shaped[..., 1:] == shaped[..., :-1]).mean(axis=(1, 2)),
    ]
    return np.asarray(equal[0] + equal[1] < 2.0 * MOST_EQUAL)


def _ends_of_ring(padded: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The lowest and the highest of the eight neighbours of every pixel but those at the edges."""
    found = []
    for end in (np.minimum, np.maximum):
        beside = end(padded[:-2], padded[2:])  # above and below
        column = end(beside, padded[1:-1])
        found.append(end(end(column[:, :-2], column[:, 2:]), beside[:, 1:-1]))
    return found[0], found[1]
