"""How an image is denoised: half-quadratic splitting at several scales, window by window or all at once, section 4.3.

Each step of the prior replaces patches by their posterior means, averaged where patches overlap (EB-PA), at falling
noise levels; between the steps the estimate is drawn to what was observed: x ← w_k y + (1 − w_k) EB-PA(x, level_k
sigma), from x = y (EPLL's scheme, with one step of empirical Bayes as the inner solution). One step of level 1 and
weight 0 is empirical Bayes by itself.

A pixel of the result follows from the patches that hold it, these from the cells in which patches are computed
(`Prior.cells`), these from the pixels of the step before, and so on: `windows` goes that way back, step by step and
scale by scale, and so finds what has to be read. So a window of a large image has the same bits as the whole, and the
whole is one window. Beyond the edges of the image pixels are mirrored, beyond those of a window never.

Of a colour the brightness comes first. A prior that `takes_guide` denoises the differences beside it, at every scale
beside what the brightness has become there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from heatprior.arrays import FloatArray, IntArray
from heatprior.border.gaps import GAP_SCALES, REACH, UNIT, Mirrored, Window, check_not_empty, fill_missing
from heatprior.errors import InvalidInputError
from heatprior.kernels.patches import Grid, Progress, part_of, span_of
from heatprior.kernels.threads import for_each
from heatprior.locks import cached_property
from heatprior.noise_value import Noise, as_noise
from heatprior.priors.protocol import Prior
from heatprior.priors.schedules import Schedules
from heatprior.restoration import pyramid
from heatprior.restoration.pyramid import BETWEEN, Merging, crossover_at, crossover_table, cut_noise, join, shift

MOST_SCALES = 4  # of which the last two hardly change an image; each further one reads twice as far around a window
LEAST_SIDE = 4  # patches that the shorter side of the smallest size holds: below it there is hardly any noise left
COARSE_PART = 0.2  # of the time of an image and its halves: theirs
ROWS_AT_ONCE = 64
FARTHEST = 5.0  # standard deviations of the noise, between what was observed and the result
ONE_STEP = Schedules.constant((1.0,), (0.0,))  # empirical Bayes
NOT_LOCAL = "this prior looks at the whole image at once, which blocks cannot; take one on patches, such as 'mixture'"


@dataclass(frozen=True, eq=False)
class Splitting:
    """Half-quadratic splitting of an image (H, W) at one scale, of which all or only a window may be here."""

    prior: Prior
    shape: tuple[int, int]  # of the whole image
    schedules: Schedules
    margin: int  # pixels by which the image is mirrored beyond its edges
    grids: tuple[Grid, ...]  # the patches of every step
    fillings: int = 0  # how many times over missing pixels may be filled: never in integers, twice in colours

    @cached_property
    def mirrored(self) -> Mirrored:
        """The whole image beyond its edges."""
        return Mirrored(self.shape, self.margin)

    def windows(self, wanted: Window, between: Merging | None = None) -> list[Window]:
        """Of the mirrored image, for every step, what it needs to be given, so that in the end `wanted` is right."""
        rows, columns = self.mirrored.shape
        if wanted == everything(self.shape):
            return [everything((rows, columns))] * len(self.grids)
        size = max(self.prior.patch_shape, default=1)
        found: list[Window] = []
        window = self._in_mirrored(wanted)
        for grid in reversed(self.grids):
            if found and between is not None:
                window = self._in_mirrored(between.reads(self.mirrored.read_by(window)))
            cells = self.prior.cells((rows, columns), grid)
            if cells is None:
                raise InvalidInputError(NOT_LOCAL)
            window = _round(window[0], cells.rows, size), _round(window[1], cells.columns, size)
            found.append(window)
        return found[::-1]

    def _in_mirrored(self, window: Window) -> Window:
        """Where a window of the image is in the mirrored one."""
        inside = self.mirrored.inside
        rows, columns = (slice(w.start + i.start, w.stop + i.start) for w, i in zip(window, inside, strict=True))
        return rows, columns

    def reads(self, wanted: Window, between: Merging | None = None) -> Window:
        """What has to be read of the image for `wanted` to be right."""
        return self.with_fillings(self.guides(wanted, between))

    def guides(self, wanted: Window, between: Merging | None = None) -> Window:
        """What the steps look at, of the brightness beside which a colour difference is denoised."""
        return self.mirrored.read_by(self.windows(wanted, between)[0])

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

    def denoise(
        self,
        image: FloatArray,
        noise: Noise,
        wanted: Window,
        between: Merging | None = None,
        progress: Progress | None = None,
        guide: FloatArray | None = None,
    ) -> FloatArray:
        """The pixels `wanted`, of an image of grey levels 0 to 1 of which what `reads` says is here, and its noise.

        `between` has its say after every step but the last; the image is then mirrored anew. Where pixels are missing
        (NaN) the data have none: the prior fills them. Of a `guide` is here what `guides` says.
        """
        windows, here = self.windows(wanted, between), self.reads(wanted, between)
        corner, before = (here[0].start, here[1].start), windows[0]
        whole = fill_gaps(image)
        x = _copy(whole, self.mirrored.part(before, corner))
        for step, window in enumerate(windows):
            part = self.mirrored.part(window, corner)
            if step and between is not None:
                x = self._merge(x, before, window, between)
            elif window != before:
                x = np.ascontiguousarray(x[shift(window, before)])
            corner_of_grid = (window[0].start, window[1].start)
            grid, before = self.grids[step].of_piece(self.mirrored.shape, corner_of_grid), window
            levels = noise.rearrange(part.rows)
            own, more = part_of(progress, step, len(windows)), dict[str, Any]()
            if guide is not None:
                beside = self.guides(wanted, between)
                more["guide"] = _copy(guide, self.mirrored.part(window, (beside[0].start, beside[1].start)))
            x = self.prior.denoise_step(x, noise_of_step(self.schedules, step, levels), own, grid=grid, **more)
            self._draw_to_data(x, image, part, levels, step)
        return x[shift(self._in_mirrored(wanted), before)]

    def _draw_to_data(self, x: FloatArray, image: FloatArray, part: Mirrored, noise: Noise, step: int) -> None:
        """The data's half of a step: x ← x + w (y − x), and never farther from y than noise reaches; in place.

        Where y is missing x stays. Noise does not reach that far, so this holds back a prior that knows nothing like
        the image, as a chessboard of single pixels.
        """

        def draw(start: int) -> None:
            rows = slice(start, start + ROWS_AT_ONCE)
            sigma = noise.rows(rows)
            weight, most = (
                values.astype(np.float32) for values in (self.schedules.weight(step, sigma), FARTHEST * sigma)
            )
            observed = part.rows(image.__getitem__, rows).astype(np.float32, copy=False)
            change = observed - x[rows]
            change -= np.clip((1.0 - weight) * change, -most, most)
            np.copyto(change, 0.0, where=np.isnan(change))
            x[rows] += change

        for_each(draw, range(0, len(x), ROWS_AT_ONCE))

    def _merge(self, x: FloatArray, here: Window, window: Window, between: Merging) -> FloatArray:
        """A window of the mirrored estimate, of which x is known here, once a coarser scale has had its say."""
        wanted = self.mirrored.read_by(window)
        known = between.reads(wanted)
        inside = x[shift(self._in_mirrored(known), here)]
        merged = between.merge(inside, known, wanted)
        return _copy(merged, self.mirrored.part(window, (wanted[0].start, wanted[1].start)))


class Needs(NamedTuple):
    """Windows of one scale: of the merged result, of what is denoised for it, of a guide, and of the noisy image."""

    merged: Window
    fine: Window
    guide: Window
    noisy: Window


@dataclass(frozen=True, eq=False)
class Pipeline:
    """A prior, an image's shape, and how it is denoised: in which steps, at how many scales, by which patches."""

    prior: Prior
    shape: tuple[int, int]
    schedules: Schedules | None = None  # those of the prior
    most_scales: int = MOST_SCALES
    margin: int | None = None  # of a patch, less one
    grids: tuple[Grid, ...] = ()  # those of the schedules
    fillings: int = 0
    in_colour: bool = False  # windows are of brightness and differences

    @property
    def is_guided(self) -> bool:
        """Whether differences of colour are denoised beside the brightness."""
        return bool(getattr(self.prior, "takes_guide", False))

    @cached_property
    def scales(self) -> tuple[Splitting, ...]:
        """The finest first: as many as the image holds, at most `most_scales`."""
        size = max(self.prior.patch_shape, default=1)
        schedules = self.prior.schedules if self.schedules is None else self.schedules
        margin = size - 1 if self.margin is None else self.margin
        grids = self.grids or tuple(schedules.grid(step) for step in range(schedules.steps))
        shapes = shapes_of_scales(self.shape, self.most_scales if self.prior.patch_shape else 1, size)
        return tuple(
            Splitting(self.prior, shape, schedules, margin, grids, self.fillings * (shape == self.shape))
            for shape in shapes
        )

    def _merging(self, scale: int) -> Merging:
        return Merging(self.scales[scale].shape, self.scales[scale + 1].shape)

    def merging_between(self, scale: int) -> Merging | None:
        """What takes part between the steps of a scale, if anything does."""
        several = scale + 1 < len(self.scales) and len(self.scales[scale].grids) > 1
        return self._merging(scale) if several and self.prior.card.get(BETWEEN) is not None else None

    def needs(self, wanted: Window, guides: Sequence[Window] = ()) -> list[Needs]:
        """Of every scale; `guides` are what is wanted of their merged results besides."""
        merged, fine, looked_at = [join(wanted, guides[0]) if guides else wanted], [], []
        for number, scale in enumerate(self.scales[:-1]):
            merging, between = self._merging(number), self.merging_between(number)
            fine.append(merging.reads(merged[-1]))
            looked_at.append(scale.guides(fine[-1], between))
            below = merging.reads_of_coarse(merged[-1])
            if between is not None:
                for window in scale.windows(fine[-1], between)[1:]:
                    below = join(below, merging.reads_of_coarse(scale.mirrored.read_by(window)))
            merged.append(join(below, guides[number + 1]) if guides else below)
        fine.append(merged[-1])
        looked_at.append(self.scales[-1].guides(fine[-1]))
        noisy = [self.scales[-1].with_fillings(looked_at[-1])]
        for scale, window in zip(self.scales[-2::-1], looked_at[-2::-1], strict=True):
            halving = scale.with_fillings(pyramid.sources(noisy[-1], pyramid.of_halving, scale.shape))
            both = join(scale.with_fillings(window), halving)
            rows, columns = (slice(place.start // 2 * 2, place.stop) for place in both)  # from even places on
            noisy.append((rows, columns))
        return [Needs(*windows) for windows in zip(merged, fine, looked_at, reversed(noisy), strict=True)]

    def _needs_of_brightness(self, needs: list[Needs]) -> list[Needs]:
        """What differences that need this need of the brightness: the same, and its results where they look at it."""
        return self.needs(needs[0].merged, [need.guide for need in needs]) if self.is_guided else needs

    def reads(self, wanted: Window) -> Window:
        """What has to be read of the image for `wanted` to be right."""
        needs = self.needs(wanted)
        return (self._needs_of_brightness(needs) if self.in_colour else needs)[0].noisy

    def denoise(
        self,
        image: FloatArray,
        noise: float | FloatArray | Noise,
        wanted: Window | None = None,
        progress: Progress | None = None,
    ) -> FloatArray:
        """The pixels `wanted`, of an image of grey levels 0 to 1 of which what `reads` says is here, and its noise.

        Without `wanted` it is the whole image that is here: then one without a single pixel is refused.
        """
        return self.denoise_planes([image], [as_noise(noise)], progress, wanted)[0]

    def denoise_planes(
        self,
        planes: Sequence[FloatArray],
        noises: Sequence[Noise],
        progress: Progress | None = None,
        wanted: Window | None = None,
    ) -> list[FloatArray]:
        """The same of the planes of a colour: its brightness, and its differences beside that."""
        check_holds_a_patch(self.shape, self.prior)
        if wanted is None:
            wanted = everything(self.shape)
            for plane in planes:
                check_not_empty(plane)
        needs = self.needs(wanted)
        several = self._needs_of_brightness(needs) if self.in_colour or len(planes) > 1 else needs
        here, found, guides = several[0].noisy, [], list[FloatArray]()
        for number, (plane, noise) in enumerate(zip(planes, noises, strict=True)):
            own, beside = (needs, guides) if number else (several, [])
            inside = plane[shift(wanted, here)]
            if np.isnan(inside.min()) and np.isnan(inside).all():
                found.append(np.full(inside.shape, np.nan, np.float32))
                continue
            read, part = shift(own[0].noisy, here), part_of(progress, number, len(planes))
            results = self._denoise_scales(plane[read], cut_noise(noise, read), own, beside, part)
            found.append(results[0][shift(wanted, own[0].merged)])
            if self.is_guided and number == 0:
                places = [shift(need.guide, one.merged) for need, one in zip(needs, own, strict=True)]
                guides = [result[place] for result, place in zip(results, places, strict=True)]
        return found

    def _denoise_scales(
        self,
        image: FloatArray,
        noise: Noise,
        needs: list[Needs],
        guides: Sequence[FloatArray],
        progress: Progress | None,
    ) -> list[FloatArray]:
        """The results of all scales, the finest first."""
        images, noises, results = [image], [noise], list[FloatArray]()
        for scale, need, below in zip(self.scales, needs, needs[1:], strict=False):
            images.append(pyramid.halve(fill_gaps(images[-1]), need.noisy, below.noisy, scale.shape))
            noises.append(pyramid.halve_noise(noises[-1], need.noisy, below.noisy, scale.shape))
        coarsest = len(self.scales) - 1
        for number in range(coarsest, -1, -1):
            begin = 0.0 if number == coarsest else COARSE_PART ** (number + 1)
            part, guide = span_of(progress, begin, COARSE_PART**number), guides[number] if guides else None
            scale, need, own, noise = self.scales[number], needs[number], images.pop(), noises.pop()
            last = between = None
            if results:  # of the next coarser scale
                half, known, card = self.scales[number + 1].shape, needs[number + 1].merged, self.prior.card
                last = Merging(scale.shape, half, crossover_at(crossover_table(card), noise), results[0], known)
                between = self.merging_between(number)
                if between is not None:
                    between = last._replace(crossover=crossover_at(crossover_table(card, BETWEEN), noise))
            read = shift(scale.reads(need.fine, between), need.noisy)
            fine = scale.denoise(own[read], cut_noise(noise, read), need.fine, between, part, guide)
            results.insert(0, fine if last is None else last.merge(fine, need.fine, need.merged))
        return results


def noise_of_step(schedules: Schedules, step: int, noise: Noise) -> Noise:
    """level_k sigma; the range of a map is that of all steps, so that they can share tables."""
    levels = np.array(schedules.levels)
    lowest, highest = float(levels.min()) * noise.lowest, float(levels.max()) * noise.highest
    return noise.change(lambda sigma: np.asarray(schedules.level(step, sigma) * sigma), lowest, highest)


def check_holds_a_patch(shape: tuple[int, ...], prior: Prior) -> None:
    """Refuse images that are smaller than a patch."""
    size = max(prior.patch_shape, default=1)
    if len(shape) != 2 or min(shape) < size:
        raise InvalidInputError(
            f"the image has shape {shape} but the prior acts on patches of {size}×{size} pixels; "
            "give a larger image, or a prior on smaller patches"
        )


def everything(shape: tuple[int, int]) -> Window:
    """The window that is the whole image."""
    return slice(0, shape[0]), slice(0, shape[1])


def shapes_of_scales(shape: tuple[int, int], most: int, size: int) -> list[tuple[int, int]]:
    """The shapes of an image and of its halves, as far as they hold enough patches of size×size pixels."""
    shapes = [shape]
    while len(shapes) < most and min(half := halve_shape(shapes[-1])) >= LEAST_SIDE * size:
        shapes.append(half)
    return shapes


def halve_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """Of an image at half its size."""
    return -(-shape[0] // 2), -(-shape[1] // 2)


def fill_gaps(image: FloatArray) -> FloatArray:
    """The image with NaN filled from nearby, or itself if there are none."""
    if not np.isnan(image.min()):
        return image
    whole = np.array(image, np.float32)
    fill_missing(whole, GAP_SCALES)
    return whole


def _copy(image: FloatArray, mirrored: Mirrored) -> FloatArray:
    """The image, mirrored, in float32."""
    target = np.empty(mirrored.shape, np.float32)
    for start in range(0, len(target), ROWS_AT_ONCE):
        target[start : start + ROWS_AT_ONCE] = mirrored.rows(image.__getitem__, slice(start, start + ROWS_AT_ONCE))
    return target


def _round(pixels: slice, edges: IntArray, size: int) -> slice:
    """The pixels of all cells with a patch that holds one of these pixels, along one side."""
    first, end = max(pixels.start - size + 1, 0), min(pixels.stop, int(edges[-1]))
    begin_of = int(edges[np.searchsorted(edges, first, side="right") - 1])
    end_of = int(edges[np.searchsorted(edges, end, side="left")])
    return slice(begin_of, end_of + size - 1)
