"""A piece of an image too large for memory, denoised at several scales: the same bits whatever the pieces are.

merged = fine + doubled(crossover(coarse − halved(fine))), where `coarse` is the halved image denoised in the same way.
All three filters are short (`local_scales`), so going back from the wanted pixels, scale by scale, gives what has to be
denoised at each, and then what has to be read. As `restoration/scales.py`, but for where filters are cut off.
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
from heatprior.restoration.scales import crossover_on


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


@dataclass(frozen=True, eq=False)
class MultiscaleWay:
    """A `Way` for every scale, the finest first."""

    ways: tuple[Way, ...]

    @cached_property
    def _card(self) -> dict[str, object]:
        return dict(self.ways[0].prior.card)

    def needs(self, wanted: Window) -> list[Needs]:
        """Of every scale."""
        merged, fine = [wanted], []
        for way, coarser in pairwise(self.ways):
            decided = reads_of_doubling(merged[-1], coarser.shape)
            below = reads_of_crossover(decided, coarser.shape)
            fine.append(_hull(merged[-1], reads_of_halving(below, way.shape)))
            merged.append(below)
        fine.append(merged[-1])
        noisy = [self.ways[-1].reads(fine[-1])]
        for way, window in zip(self.ways[-2::-1], fine[-2::-1], strict=True):
            halving = way.with_fillings(reads_of_halving(noisy[-1], way.shape))
            noisy.append(_from_even_places(_hull(way.reads(window), halving)))
        return [Needs(*windows) for windows in zip(merged, fine, reversed(noisy), strict=True)]

    def reads(self, wanted: Window) -> Window:
        """What has to be read of the image for `wanted` to be right."""
        return self.needs(wanted)[0].noisy

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
        read = _within(way.reads(need.fine), need.noisy)
        fine = way.denoise(image[read], _cut(noise, read), need.fine)
        if scale + 1 == len(self.ways):
            return fine
        below, shape, half = needs[scale + 1], way.shape, self.ways[scale + 1].shape
        smaller = halved(_filled(image), need.noisy, below.noisy, shape)
        coarse = self._merged(scale + 1, smaller, _halved_noise(noise, need.noisy, below.noisy, shape), needs)
        coarse -= halved(fine, need.fine, below.merged, shape)
        decided = reads_of_doubling(need.merged, half)
        part = crossed_over(coarse, below.merged, decided, half, crossover_on(self._card, noise))
        result = doubled(part, decided, need.merged, half)
        result += fine[_within(need.merged, need.fine)]
        return result


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
