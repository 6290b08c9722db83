"""Pixels of any type → what a browser shows: 8 bits in a BMP, reduced by powers of two, within black and white."""

from __future__ import annotations

import io
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError

MID_GREY = 128  # of missing pixels
SAMPLED = 1 << 18  # pixels from which the contrast is taken
LARGEST_VIEW = 4096  # pixels along a side of what is sent
LARGEST_STEP = 64
LEVEL_COLOURS = "magma"
BMP = "image/bmp"  # what browsers are told that `as_bmp` is
ROWS = 512  # reduced at a time


class Region(NamedTuple):
    """A rectangle of the picture, in its pixels, shown at one in `step` of them along each side."""

    x: int
    y: int
    width: int
    height: int
    step: int = 1

    @classmethod
    def within(cls, shape: tuple[int, ...], x: int, y: int, width: int, height: int, step: int) -> Region:
        """The part that lies inside a picture of this shape, on the grid of the step; refuses what is too much."""
        if step < 1 or step > LARGEST_STEP or step & (step - 1):
            raise InvalidInputError(f"step is {step}; expected a power of two up to {LARGEST_STEP}")
        left, top = max(0, x) // step * step, max(0, y) // step * step
        right, bottom = min(shape[1], x + width), min(shape[0], y + height)
        if right <= left or bottom <= top:
            raise InvalidInputError("this part lies outside the picture; show another")
        if max(right - left, bottom - top) > LARGEST_VIEW * step:
            raise InvalidInputError(f"a view has at most {LARGEST_VIEW} pixels along a side; ask for a larger step")
        return cls(left, top, right - left, bottom - top, step)

    def grown(self, margin: int, shape: tuple[int, ...]) -> Region:
        """With `margin` reduced pixels more on each side, as far as the picture goes."""
        more = margin * self.step
        left, top = max(0, self.x - more), max(0, self.y - more)
        right, bottom = min(shape[1], self.x + self.width + more), min(shape[0], self.y + self.height + more)
        return Region(left, top, right - left, bottom - top, self.step)

    @property
    def reduced(self) -> tuple[slice, slice]:
        """Where it is in a picture that is reduced by its step."""
        ends = [-(-end // self.step) for end in (self.y + self.height, self.x + self.width)]
        return slice(self.y // self.step, ends[0]), slice(self.x // self.step, ends[1])


def halved(pixels: NDArray[Any]) -> FloatArray:
    """Means over 2×2 pixels (H, W) or (H, W, C), in float32; at an odd edge over those that there are."""
    height, width = (-(-side // 2) for side in pixels.shape[:2])
    result = np.empty((height, width, *pixels.shape[2:]), np.float32)
    for top in range(0, height, ROWS):
        band = pixels[2 * top : 2 * (top + ROWS)]
        if len(band) % 2:
            band = np.concatenate([band, band[-1:]])
        rows = np.add(band[::2], band[1::2], dtype=np.float32)
        if rows.shape[1] % 2:
            rows = np.concatenate([rows, rows[:, -1:]], axis=1)
        np.add(rows[:, ::2], rows[:, 1::2], out=result[top : top + len(rows)])
    result *= 0.25
    return result


def ends_of(pixels: NDArray[Any]) -> tuple[float, float]:
    """The values to show as black and white, from some of the pixels."""
    from heatprior.pictures.comparisons import contrast  # noqa: PLC0415 (it brings matplotlib)

    step = max(1, int(np.sqrt(pixels.size / SAMPLED)))
    black, white = contrast(pixels[::step, ::step])
    return black, white if white > black else black + 1.0


def in_8_bits(pixels: NDArray[Any], black: float, white: float) -> NDArray[np.uint8]:
    """0 for black to 255 for white; missing pixels are mid-grey."""
    if pixels.dtype == np.uint8 and (black, white) == (0.0, 255.0):
        return np.ascontiguousarray(pixels)
    levels = np.asarray(pixels, np.float32)
    levels = (levels - np.float32(black)) * np.float32(255.0 / (white - black))
    np.clip(levels, 0.0, 255.0, out=levels)
    np.rint(levels, out=levels)
    np.nan_to_num(levels, copy=False, nan=MID_GREY)
    return levels.astype(np.uint8)


def in_colours(levels: FloatArray, low: float, high: float) -> NDArray[np.uint8]:
    """A map (H, W) as colours from dark (`low`) to light (`high`)."""
    return np.asarray(_palette()[in_8_bits(levels, low, high)])


def as_bmp(pixels: NDArray[np.uint8]) -> bytes:
    """(H, W) or (H, W, 3); not packed: it goes no further than this computer, and packing takes a tenth of a second."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "BMP")
    return buffer.getvalue()


@cache
def _palette() -> NDArray[np.uint8]:
    """256 colours of rising brightness."""
    from matplotlib import colormaps  # noqa: PLC0415 (slow to import, and only wanted for maps)

    colours = colormaps[LEVEL_COLOURS](np.linspace(0.0, 1.0, 256))[:, :3]
    return np.asarray(np.rint(255 * colours), np.uint8)
