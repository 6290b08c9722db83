"""An open picture: its pixels, frame by frame and reduced, what is known of its noise, its results; and 8-bit views."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from heatprior.arrays import FloatArray
from heatprior.border.entry import enter
from heatprior.data.trials import photograph
from heatprior.display import contrast
from heatprior.errors import ImageFileError, InvalidInputError
from heatprior.images import ImageFile, read_image
from heatprior.locks import cached_property
from heatprior.noise.estimation import NoiseReport, noise_levels_of

MOST_PIXELS = 300_000_000  # of all frames and channels of a file
NO_RESULT = "there is no such result any more; start it again"
MID_GREY = 128  # of missing pixels
SAMPLED = 1 << 18  # pixels from which the contrast is taken
LARGEST_VIEW = 4096  # pixels along a side of what is sent
LARGEST_STEP = 64
LEVEL_COLOURS = "magma"
BMP = "image/bmp"  # the media type of `encode_bmp`
ROWS = 1024  # reduced at a time, two to one
SIGMA = 22.0  # of 255
SEED = 22


@dataclass(frozen=True)
class FrameNoise:
    """The noise of one frame: at first one level from a part of it, then an estimate from all of it."""

    report: NoiseReport
    from_part: bool
    doubts: tuple[str, ...] = ()
    brightness: float = 0.0  # the median, in the units of the image

    @property
    def is_constant(self) -> bool:
        """Whether each channel has one level."""
        return all(np.ndim(channel.sigma) == 0 for channel in self.report.channels)

    @property
    def levels(self) -> FloatArray:
        """The average level of each channel, in the units of the image."""
        found = [np.sqrt(np.mean(np.square(channel.sigma))) for channel in self.report.channels]
        return np.array(found) * self.report.white


@dataclass(frozen=True)
class Result:
    """A picture denoised or restored as a whole: where its pixels are, and what their file is written like."""

    pixels: Path  # .npy
    like: ImageFile
    error: Path | None = None  # .npy of the standard error of each pixel, if that was asked for

    def remove(self) -> None:
        """Delete its files."""
        for path in (self.pixels, self.error):
            if path is not None:
                path.unlink(missing_ok=True)

    def load(self) -> NDArray[Any]:
        """The pixels, read from the disk as they are wanted."""
        try:
            return np.asanyarray(np.load(self.pixels, mmap_mode="r"))
        except FileNotFoundError:  # the picture was closed meanwhile
            raise InvalidInputError(NO_RESULT) from None


class OpenedPicture:
    """The pixels of a file in memory, and what was found out about them."""

    def __init__(self, number: str, path: Path, name: str) -> None:
        self.number, self.path, self.name = number, path, name
        self.image: ImageFile = read_image(path)
        if self.image.pixels.size > MOST_PIXELS:
            raise ImageFileError(
                f"it has {self.image.pixels.size / 1e6:.0f} million values but the page takes "
                f"{MOST_PIXELS / 1e6:.0f} million; use heatprior denoise, or cut it into parts"
            )
        self.values = self.image.values()
        self.noise: dict[tuple[int, str], FrameNoise] = {}  # of a frame, by the kind that was asked for
        self.results: dict[str, Result] = {}
        self.last_look: tuple[Any, NDArray[Any]] | None = None  # what it was of, and its pixels
        self._lock = RLock()
        self._made = 0
        self._map: tuple[FrameNoise, FloatArray] | None = None
        self._reduced: dict[tuple[int, int, str | None], NDArray[Any]] = {}
        self._ends: dict[int, tuple[float, float]] = {}

    @cached_property
    def white(self) -> float:
        """The value of full scale: one for all frames, as when they are denoised together."""
        return enter(self.values, channel_axis=self.image.channel_axis).full

    @property
    def frame_shape(self) -> tuple[int, ...]:
        """The shape of a frame: (H, W), or (H, W, 3)."""
        return self.values.shape[-3:] if self.image.colour else self.values.shape[-2:]

    @property
    def frames(self) -> int:
        """How many pictures the file holds."""
        return int(np.prod(self.values.shape[: self.values.ndim - len(self.frame_shape)]))

    def frame(self, number: int, pixels: NDArray[Any] | None = None) -> NDArray[Any]:
        """One of the pictures, of the file or of other `pixels` with as many frames."""
        source = self.values if pixels is None else pixels
        stack = source.reshape(-1, *source.shape[source.ndim - len(self.frame_shape) :])
        chosen: NDArray[Any] = stack[min(max(number, 0), self.frames - 1)]
        return chosen

    @property
    def channel_axis(self) -> int | None:
        """The axis of channels of a frame."""
        return -1 if self.image.colour else None

    def ends(self, number: int) -> tuple[float, float]:
        """The values shown as black and white."""
        if number not in self._ends:
            self._ends[number] = contrast_range(self.frame(number))
        return self._ends[number]

    def reduce(self, number: int, step: int, result: str | None = None) -> NDArray[Any]:
        """A frame, of the file or of a result, as means over step×step pixels; those of one frame are kept."""
        if step == 1:
            return self.frame(number, None if result is None else self.result(result).load())
        with self._lock:
            key = (number, step, result)
            if key not in self._reduced:
                self._reduced = {other: pixels for other, pixels in self._reduced.items() if other[0] == number}
                self._reduced[key] = halve(self.reduce(number, step // 2, result))
            return self._reduced[key]

    def shape_of(self, result: str | None) -> tuple[int, ...]:
        """The shape of a frame, of the file or of a result, which may be larger."""
        shape = self.values.shape if result is None else self.result(result).load().shape
        return shape[len(shape) - len(self.frame_shape) :]

    def result(self, name: str) -> Result:
        """Return the result of this name."""
        if name not in self.results:
            raise InvalidInputError(NO_RESULT)
        return self.results[name]

    def add(self, pixels: NDArray[Any], like: ImageFile, error: FloatArray | None = None) -> str:
        """Keep a result on the disk, and remove all older ones but the last."""
        with self._lock:
            self._made += 1
            name = f"r{self._made}"
            path = self.path.parent / f".{name}.npy"  # no file that was given has this name: they are not hidden
            np.save(path, pixels)
            if error is not None:
                np.save(path.with_suffix(".error.npy"), error)
            for old in list(self.results)[:-1]:
                self.results.pop(old).remove()
            self._reduced = {key: kept for key, kept in self._reduced.items() if key[2] is None}
            self.results[name] = Result(path, like, None if error is None else path.with_suffix(".error.npy"))
            return name

    def error_map(self, number: int, result: str) -> FloatArray:
        """The standard error of every pixel of a frame of a result, (H, W); of colours the root mean square."""
        errors = self.result(result).error
        if errors is None:
            raise InvalidInputError("the errors of this result were not estimated; ask for them, and denoise it again")
        frame = self.frame(number, np.load(errors, mmap_mode="r"))
        return np.sqrt(np.square(frame).mean(axis=-1)) if self.image.colour else np.asarray(frame)

    def level_map(self, noise: FrameNoise) -> FloatArray:
        """The noise level around every pixel of a frame, (H, W); of colours the root mean square."""
        with self._lock:
            if self._map is None or self._map[0] is not noise:
                levels = noise_levels_of(noise.report, self.frame_shape, self.channel_axis)
                if self.image.colour:
                    levels = np.sqrt(np.square(levels, out=levels).mean(axis=-1))
                self._map = (noise, levels)
            return self._map[1]


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

    def grow(self, margin: int, shape: tuple[int, ...]) -> Region:
        """The region with `margin` more reduced pixels on each side, within the picture."""
        more = margin * self.step
        left, top = max(0, self.x - more), max(0, self.y - more)
        right, bottom = min(shape[1], self.x + self.width + more), min(shape[0], self.y + self.height + more)
        return Region(left, top, right - left, bottom - top, self.step)

    @property
    def window(self) -> tuple[slice, slice]:
        """Rows and columns of the region in a picture reduced by its step."""
        ends = [-(-end // self.step) for end in (self.y + self.height, self.x + self.width)]
        return slice(self.y // self.step, ends[0]), slice(self.x // self.step, ends[1])


def halve(pixels: NDArray[Any]) -> FloatArray:
    """Means over 2×2 pixels (H, W) or (H, W, C), in float32; at an odd edge over those that exist."""
    if pixels.ndim > 2:
        return np.stack([halve(channel) for channel in np.moveaxis(pixels, -1, 0)], axis=-1)
    bands = (np.asarray(pixels[top : top + ROWS], np.float32) for top in range(0, len(pixels), ROWS))
    return np.concatenate([np.asarray(Image.fromarray(band).reduce(2)) for band in bands])


def contrast_range(pixels: NDArray[Any]) -> tuple[float, float]:
    """The values to show as black and white, from some of the pixels."""
    step = max(1, int(np.sqrt(pixels.size / SAMPLED)))
    black, white = contrast(pixels[::step, ::step])
    return black, white if white > black else black + 1.0


def quantise(pixels: NDArray[Any], black: float, white: float) -> NDArray[np.uint8]:
    """Map black to 0 and white to 255; missing pixels are mid-grey."""
    if pixels.dtype == np.uint8 and (black, white) == (0.0, 255.0):
        return np.ascontiguousarray(pixels)
    levels = np.asarray(pixels, np.float32)
    levels = (levels - np.float32(black)) * np.float32(255.0 / (white - black))
    np.clip(levels, 0.0, 255.0, out=levels)
    np.rint(levels, out=levels)
    np.nan_to_num(levels, copy=False, nan=MID_GREY)
    return levels.astype(np.uint8)


def colourise(levels: FloatArray, low: float, high: float) -> NDArray[np.uint8]:
    """Show a map (H, W) in colours from dark (`low`) to light (`high`)."""
    from matplotlib import colormaps  # noqa: PLC0415 (slow to import, and only wanted for maps)

    return np.ascontiguousarray(colormaps[LEVEL_COLOURS](quantise(levels, low, high), bytes=True)[..., :3])


def encode_bmp(pixels: NDArray[np.uint8]) -> bytes:
    """Encode (H, W) or (H, W, 3) as BMP: it stays on this computer, and compressing takes a tenth of a second."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "BMP")
    return buffer.getvalue()


def write_sample(path: Path) -> None:
    """Write a photograph, in colour and 8 bits, with white noise."""
    clean = photograph()
    noisy = clean + SIGMA * np.random.default_rng(SEED).standard_normal(clean.shape)
    Image.fromarray(np.clip(np.rint(noisy), 0, 255).astype(np.uint8)).save(path)
