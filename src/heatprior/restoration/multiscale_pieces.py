"""A piece of an image too large for memory, denoised at several scales: the same bits whatever the pieces are.

merged = fine + doubled(crossover(coarse − halved(fine))), where `coarse` is the halved image denoised in the same way;
after the last step, and if the prior's card says so between the steps as well. All three filters are short
(`local_scales`), so going back from the wanted pixels, scale by scale, gives what has to be denoised at each, and then
what has to be read. As `restoration/scales.py`, but for where filters are cut off.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.noise_model import Noise, Rows
from heatprior.pixels.gaps import Window, fill_nearby
from heatprior.priors.protocol import Prior
from heatprior.restoration.local_scales import (
    NOISE_FACTOR,
    crossed_over,
    doubled,
    halved,
    reads_of_crossover,
    reads_of_doubling,
    reads_of_halving,
)
from heatprior.restoration.pieces import Way
from heatprior.restoration.recipes import LEAST_SIDE
from heatprior.restoration.scales import BETWEEN, Crossover, crossover_between, crossover_on


class PieceByPiece(Protocol):
    """How an image (H, W) is denoised where only pieces of it are here."""

    def reads(self, wanted: Window) -> Window:
        """What has to be read of the image for `wanted` to be right."""
        ...

    def denoise(self, image: FloatArray, noise: Noise, wanted: Window) -> FloatArray:
        """The pixels `wanted`, of an image of grey levels 0 to 1 of which what `reads` says is here, and its noise."""
        ...


def way_of(prior: Prior, method: str, shape: tuple[int, int], fillings: int = 0, scales: int = 1) -> PieceByPiece:
    """At so many scales, or as many as an image of this shape holds, if these are fewer."""
    shapes = _shapes(shape, scales, LEAST_SIDE * max(prior.patch_shape, default=1))
    if len(shapes) == 1:
        return Way(prior, method, shape, fillings)
    return MultiscaleWay(tuple(Way(prior, method, each, fillings * (each == shape)) for each in shapes))


def _shapes(shape: tuple[int, int], most: int, least_side: int) -> list[tuple[int, int]]:
    shapes = [shape]
    while len(shapes) < most:
        half = (-(-shapes[-1][0] // 2), -(-shapes[-1][1] // 2))
        if min(half) < least_side:
            break
        shapes.append(half)
    return shapes


class Needs(NamedTuple):
    """Windows of one scale: of the merged result, of what is denoised for it, and of the noisy image for both."""

    merged: Window
    fine: Window
    noisy: Window


class Reach(NamedTuple):
    """What merging with a coarser scale takes, for images of this shape and half of it."""

    shape: tuple[int, int]
    half: tuple[int, int]

    def of_coarse(self, wanted: Window) -> Window:
        """Of the coarse image, for the pixels `wanted` of the fine one."""
        return reads_of_crossover(reads_of_doubling(wanted, self.half), self.half)

    def reads(self, wanted: Window) -> Window:
        """Of the fine one, likewise."""
        return _hull(wanted, reads_of_halving(self.of_coarse(wanted), self.shape))


class WithCoarse(NamedTuple):
    """Merging with a coarse image, which is known in a window of it."""

    reach: Reach
    coarse: FloatArray
    window: Window
    crossover: Crossover

    def reads(self, wanted: Window) -> Window:
        """Of the fine image, for the pixels `wanted` of the merged one."""
        return self.reach.reads(wanted)

    def merged(self, estimate: FloatArray, here: Window, wanted: Window) -> FloatArray:
        """The pixels `wanted`, where the fine image is known `here`."""
        (shape, half), below = self.reach, self.reach.of_coarse(wanted)
        difference = self.coarse[_within(below, self.window)] - halved(estimate, here, below, shape)
        decided = reads_of_doubling(wanted, half)
        part = crossed_over(difference, below, decided, half, self.crossover)
        result = doubled(part, decided, wanted, half)
        result += estimate[_within(wanted, here)]
        return result


@dataclass(frozen=True, eq=False)
class MultiscaleWay:
    """A `Way` for every scale, the finest first."""

    ways: tuple[Way, ...]

    @cached_property
    def _card(self) -> dict[str, object]:
        return dict(self.ways[0].prior.card)

    def _between(self, reach: Reach) -> Reach | None:
        return reach if self._card.get(BETWEEN) is not None and self.ways[0].method != "eb" else None

    def needs(self, wanted: Window) -> list[Needs]:
        """Of every scale."""
        merged, fine, own = [wanted], [], []
        for way, coarser in pairwise(self.ways):
            reach = Reach(way.shape, coarser.shape)
            between = self._between(reach)
            fine.append(reach.reads(merged[-1]))
            own.append(way.reads(fine[-1], between))
            below = reach.of_coarse(merged[-1])
            if between is not None:
                for window in way.windows(fine[-1], between)[1:]:
                    below = _hull(below, reach.of_coarse(way.mirrored.read_by(window)))
            merged.append(below)
        fine.append(merged[-1])
        noisy = [self.ways[-1].reads(fine[-1])]
        for way, window in zip(self.ways[-2::-1], reversed(own), strict=True):
            halving = way.with_fillings(reads_of_halving(noisy[-1], way.shape))
            noisy.append(_from_even_places(_hull(window, halving)))
        return [Needs(*windows) for windows in zip(merged, fine, reversed(noisy), strict=True)]

    def reads(self, wanted: Window) -> Window:
        """What has to be read of the image for `wanted` to be right."""
        return self.needs(wanted)[0].noisy

    def windows(self, wanted: Window) -> list[Window]:
        """What is given to each step, at each scale."""
        *finer, coarsest = self.needs(wanted)
        found = []
        for (way, coarser), need in zip(pairwise(self.ways), finer, strict=True):
            found += way.windows(need.fine, self._between(Reach(way.shape, coarser.shape)))
        return found + self.ways[-1].windows(coarsest.fine)

    def denoise(self, image: FloatArray, noise: Noise, wanted: Window) -> FloatArray:
        """The pixels `wanted`, of an image of grey levels 0 to 1 of which what `reads` says is here, and its noise."""
        needs = self.needs(wanted)
        inside = image[_within(wanted, needs[0].noisy)]
        if np.isnan(inside.min()) and np.isnan(inside).all():
            return np.full(inside.shape, np.nan, np.float32)
        return self._merged(0, image, noise, needs)

    def _merged(self, scale: int, image: FloatArray, noise: Noise, needs: list[Needs]) -> FloatArray:
        """The merged result of this scale and those below it, in the window that is needed."""
        way, need = self.ways[scale], needs[scale]
        if scale + 1 == len(self.ways):
            read = _within(way.reads(need.fine), need.noisy)
            return way.denoise(image[read], _cut(noise, read), need.fine)
        below, shape = needs[scale + 1], way.shape
        smaller = halved(_filled(image), need.noisy, below.noisy, shape)
        coarse = self._merged(scale + 1, smaller, _halved_noise(noise, need.noisy, below.noisy, shape), needs)
        reach = Reach(shape, self.ways[scale + 1].shape)
        last = WithCoarse(reach, coarse, below.merged, crossover_on(self._card, noise))
        crossover = crossover_between(self._card, noise) if self._between(reach) else None
        between = None if crossover is None else last._replace(crossover=crossover)
        read = _within(way.reads(need.fine, between), need.noisy)
        fine = way.denoise(image[read], _cut(noise, read), need.fine, between)
        return last.merged(fine, need.fine, need.merged)


def _filled(image: FloatArray) -> FloatArray:
    if not np.isnan(image.min()):
        return image
    whole = np.array(image, np.float32)
    fill_nearby(whole)
    return whole


def _halved_noise(noise: Noise, here: Window, wanted: Window, shape: tuple[int, int]) -> Noise:
    """Of the pixels `wanted` of the halved image."""
    rows, columns = (
        slice(2 * place.start, min(2 * place.stop, length)) for place, length in zip(wanted, shape, strict=True)
    )
    cut = _cut(noise, _within((rows, columns), here))
    return cut.halved((rows.stop - rows.start, columns.stop - columns.start), NOISE_FACTOR)


def _cut(noise: Noise, window: Window) -> Noise:
    """Of a window of the pixels whose noise this is."""
    places = np.arange(window[0].start, window[0].stop)
    return noise.rearranged(lambda read, rows: read(_as_slice(places[rows]))[:, window[1]])


def _as_slice(places: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Rows:
    """The same rows, as a slice where they are successive, so that they are not copied."""
    successive = len(places) > 0 and bool((np.diff(places) == 1).all())
    return slice(int(places[0]), int(places[-1]) + 1) if successive else places


def _from_even_places(window: Window) -> Window:
    rows, columns = (slice(place.start // 2 * 2, place.stop) for place in window)
    return rows, columns


def _hull(first: Window, second: Window) -> Window:
    rows, columns = (slice(min(a.start, b.start), max(a.stop, b.stop)) for a, b in zip(first, second, strict=True))
    return rows, columns


def _within(window: Window, outer: Window) -> Window:
    rows, columns = (slice(a.start - b.start, a.stop - b.start) for a, b in zip(window, outer, strict=True))
    return rows, columns
