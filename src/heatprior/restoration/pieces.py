"""A piece of an image too large for memory, denoised with the same bits as if the whole were here.

A pixel of the result follows from the patches that hold it, these from the cells in which patches are computed
(`Prior.cells`), these from the pixels of the step before, and so on: `windows` goes that way back, step by step, and
so finds what has to be read. Where a coarser scale has its say between the steps (`Merging`), what that takes is on the
way. Beyond the edges of the whole image pixels are mirrored, beyond those of a piece never.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.errors import InvalidInputError
from heatprior.kernels.grids import EVERY, Grid
from heatprior.noise_model import Noise
from heatprior.pixels.gaps import REACH, UNIT, Mirrored, Window, fill_nearby
from heatprior.priors.protocol import Prior
from heatprior.restoration.splitting import begin, check_holds_a_patch, copy_rows, observed, split_once


class Reaching(Protocol):
    """How far something that is done to an estimate between two steps reaches."""

    def reads(self, wanted: Window) -> Window:
        """Of the estimate, what has to be known for `wanted` to be right."""
        ...


class Merging(Reaching, Protocol):
    """And what is done."""

    def merged(self, estimate: FloatArray, here: Window, wanted: Window) -> FloatArray:
        """The pixels `wanted`, where the estimate is known `here`."""
        ...


NOT_LOCAL = "this prior looks at the whole image at once, which blocks cannot; take one on patches, such as 'mixture'"


@dataclass(frozen=True, eq=False)
class Way:
    """How an image (H, W) is denoised where only pieces of it are here: with a prior, by a method, at one scale."""

    prior: Prior
    method: str
    shape: tuple[int, int]  # of the whole image
    fillings: int = 0  # how many times over missing pixels may be filled: never in integers, twice in colours

    @cached_property
    def grids(self) -> list[Grid]:
        """The patches of every step."""
        schedules = self.prior.schedules
        return [EVERY] if self.method == "eb" else [schedules.grid(step) for step in range(schedules.steps)]

    @cached_property
    def mirrored(self) -> Mirrored:
        """The whole image beyond its edges."""
        return Mirrored(self.shape, 0 if self.method == "eb" else max(self.prior.patch_shape, default=1) - 1)

    def windows(self, wanted: Window, between: Reaching | None = None) -> list[Window]:
        """Of the mirrored image, for every step, what it needs to be given, so that in the end `wanted` is right."""
        mirrored = self.mirrored
        whole, size = (mirrored.shape[0], mirrored.shape[1]), max(self.prior.patch_shape, default=1)
        found: list[Window] = []
        for grid in reversed(self.grids):
            if found:
                window = found[-1] if between is None else self._in_mirrored(between.reads(mirrored.read_by(found[-1])))
            else:
                window = self._in_mirrored(wanted)
            cells = self.prior.cells(whole, grid)
            if cells is None:
                raise InvalidInputError(NOT_LOCAL)
            rows, columns = (_rounded(place, edges, size) for place, edges in zip(window, cells, strict=True))
            found.append((rows, columns))
        return found[::-1]

    def _in_mirrored(self, window: Window) -> Window:
        """Where a window of the image is in the mirrored one."""
        return _shifted(window, [-inside.start for inside in self.mirrored.inside])

    def reads(self, wanted: Window, between: Reaching | None = None) -> Window:
        """What has to be read of the image for `wanted` to be right."""
        return self.with_fillings(self.mirrored.read_by(self.windows(wanted, between)[0]))

    def with_fillings(self, window: Window) -> Window:
        """A window, and from where missing pixels of it may be filled."""
        if not self.fillings:
            return window
        reach = self.fillings * REACH
        rows, columns = (
            slice(max(0, (place.start - reach) // UNIT * UNIT), min(length, place.stop + reach))
            for place, length in zip(window, self.shape, strict=True)
        )
        return rows, columns

    def denoise(self, image: FloatArray, noise: Noise, wanted: Window, between: Merging | None = None) -> FloatArray:
        """The pixels `wanted`, of an image of grey levels 0 to 1 of which what `reads` says is here, and its noise."""
        check_holds_a_patch(np.broadcast_to(np.float32(0.0), self.shape), self.prior)
        missing = bool(np.isnan(image.min()))
        if missing and np.isnan(image).all():
            return np.full([place.stop - place.start for place in wanted], np.nan, np.float32)
        windows, here = self.windows(wanted, between), self.reads(wanted, between)
        corner = (here[0].start, here[1].start)
        if self.method == "eb":
            x = self._once(image, noise, windows, corner, missing=missing)
        else:
            x = self._split(image, noise, windows, corner, between, missing=missing)
        return x[_shifted(self._in_mirrored(wanted), [place.start for place in windows[-1]])]

    def _once(
        self, image: FloatArray, noise: Noise, windows: list[Window], corner: tuple[int, int], *, missing: bool
    ) -> FloatArray:
        """One step of empirical Bayes of a window."""
        if missing:
            image = np.array(image, np.float32)
            fill_nearby(image)
        part = self.mirrored.part(windows[0], corner)
        x = np.ascontiguousarray(part.rows(image.__getitem__, slice(None)), np.float32)
        result = np.empty_like(x)

        def store(rows: slice, change: FloatArray) -> None:
            np.add(x[rows], change, out=result[rows])

        self.prior.denoise_step(x, noise.rearranged(part.rows), store, grid=self._grid(0, windows[0]))
        return result

    def _split(
        self,
        image: FloatArray,
        noise: Noise,
        windows: list[Window],
        corner: tuple[int, int],
        between: Merging | None,
        *,
        missing: bool,
    ) -> FloatArray:
        """Half-quadratic splitting, in a smaller window at every step."""
        before = windows[0]
        x, data_term = begin(image, self.mirrored.part(before, corner))
        for step, window in enumerate(windows):
            part = self.mirrored.part(window, corner)
            if step and between is not None:
                x = self._merged(x, before, window, between)
            elif window != before:
                x = np.ascontiguousarray(x[_shifted(window, [place.start for place in before])])
            if window != before:
                data_term = observed(image, part, missing=missing)
            grid, before = self._grid(step, window), window
            split_once(x, noise.rearranged(part.rows), self.prior, data_term, self.prior.schedules, step, grid)
        return x

    def _merged(self, x: FloatArray, here: Window, window: Window, between: Merging) -> FloatArray:
        """A window of the mirrored estimate, of which x is known here, once a coarser scale has had its say."""
        wanted = self.mirrored.read_by(window)
        known = between.reads(wanted)
        inside = x[_shifted(self._in_mirrored(known), [place.start for place in here])]
        part = self.mirrored.part(window, (wanted[0].start, wanted[1].start))
        result = np.empty(part.shape, np.float32)
        copy_rows(between.merged(inside, known, wanted), part, result)
        return result

    def _grid(self, step: int, window: Window) -> Grid:
        whole = self.mirrored.shape
        return self.grids[step].of_piece((whole[0], whole[1]), (window[0].start, window[1].start))


def _rounded(pixels: slice, edges: IntArray, size: int) -> slice:
    """The pixels of all cells with a patch that holds one of these pixels, along one side."""
    first, end = max(pixels.start - size + 1, 0), min(pixels.stop, int(edges[-1]))
    begin_of = int(edges[np.searchsorted(edges, first, side="right") - 1])
    end_of = int(edges[np.searchsorted(edges, end, side="left")])
    return slice(begin_of, end_of + size - 1)


def _shifted(window: Sequence[slice], by: Sequence[int]) -> Window:
    rows, columns = (slice(place.start - d, place.stop - d) for place, d in zip(window, by, strict=True))
    return rows, columns
