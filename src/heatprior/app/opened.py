"""One picture that was given: its pixels, frame by frame and reduced, what is known of its noise, and its results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.app.screen import ends_of, halved
from heatprior.arrays import FloatArray
from heatprior.errors import ImageFileError, InvalidInputError
from heatprior.images import ImageFile, read_image
from heatprior.noise.estimation import NoiseReport, noise_levels_of

MOST_PIXELS = 300_000_000  # of all frames and channels of a file
NO_RESULT = "there is no such result any more; start it again"


@dataclass(frozen=True)
class FrameNoise:
    """What is known of the noise of one frame: at first from a part of it, and one level; then from all of it."""

    report: NoiseReport
    from_part: bool
    doubts: tuple[str, ...] = ()

    @property
    def is_constant(self) -> bool:
        """Whether each channel has one level."""
        return all(model == "constant" for model in self.report.models)

    @property
    def levels(self) -> FloatArray:
        """Of each channel one number, the average level, in the units of the image."""
        return np.array([channel.level.sigma or float(np.max(channel.sigma)) for channel in self.report.channels]) * (
            self.report.white
        )


@dataclass(frozen=True)
class Result:
    """A picture denoised or restored as a whole: where its pixels are, and what their file is written like."""

    pixels: Path  # .npy
    like: ImageFile
    error: Path | None = None  # .npy of the standard error of each pixel, if that was asked for

    def remove(self) -> None:
        """Its files."""
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
        self.noise: dict[int, FrameNoise] = {}
        self.results: dict[str, Result] = {}
        self.last_look: tuple[Any, NDArray[Any]] | None = None  # what it was of, and its pixels
        self._lock = RLock()
        self._made = 0
        self._map: tuple[FrameNoise, FloatArray] | None = None
        self._reduced: dict[tuple[int, int, str | None], NDArray[Any]] = {}
        self._ends: dict[int, tuple[float, float]] = {}

    @property
    def frame_shape(self) -> tuple[int, ...]:
        """(H, W), or (H, W, 3)."""
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
    def full_scale(self) -> float | None:
        """What people take for white: as the file or its type says; None for floats, which may be of any units."""
        if self.image.white is not None or self.values.dtype.kind == "f":
            return self.image.white
        return float(np.iinfo(self.values.dtype).max)

    @property
    def channel_axis(self) -> int | None:
        """Of a frame."""
        return -1 if self.image.colour else None

    def ends(self, number: int) -> tuple[float, float]:
        """What is shown as black and as white: for 8 bits 0 and 255, else nearly all that occurs."""
        if self.image.pixels.dtype == np.uint8 and not self.image.has_gaps:
            return 0.0, 255.0
        if number not in self._ends:
            self._ends[number] = ends_of(self.frame(number))
        return self._ends[number]

    def reduced(self, number: int, step: int, result: str | None = None) -> NDArray[Any]:
        """A frame, of the file or of a result, reduced by a power of two: means, which have 1/step of its noise.

        Those of one frame are kept.
        """
        if step == 1:
            return self.frame(number, None if result is None else self.result(result).load())
        with self._lock:
            key = (number, step, result)
            if key not in self._reduced:
                self._reduced = {other: pixels for other, pixels in self._reduced.items() if other[0] == number}
                self._reduced[key] = halved(self.reduced(number, step // 2, result))
            return self._reduced[key]

    def shape_of(self, result: str | None) -> tuple[int, ...]:
        """The shape of a frame, of the file or of a result, which may be larger."""
        shape = self.values.shape if result is None else self.result(result).load().shape
        return shape[len(shape) - len(self.frame_shape) :]

    def result(self, name: str) -> Result:
        """One of its results."""
        if name not in self.results:
            raise InvalidInputError(NO_RESULT)
        return self.results[name]

    def add(self, pixels: NDArray[Any], like: ImageFile, error: FloatArray | None = None) -> str:
        """Keep a result, on the disk; older ones but the last go."""
        with self._lock:
            self._made += 1
            name = f"r{self._made}"
            path = self.path.parent / f".{name}.npy"  # no file that was given has this name: they are not hidden
            np.save(path, pixels)
            errors = None
            if error is not None:
                errors = path.with_suffix(".error.npy")
                np.save(errors, error)
            for old in list(self.results)[:-1]:
                self.results.pop(old).remove()
            self._reduced = {key: kept for key, kept in self._reduced.items() if key[2] is None}
            self.results[name] = Result(path, like, errors)
            return name

    def error_map(self, number: int, result: str) -> FloatArray:
        """The standard error of every pixel of a frame of a result, (H, W); of colours the root mean square."""
        errors = self.result(result).error
        if errors is None:
            raise InvalidInputError("the errors of this result were not estimated; ask for them, and denoise it again")
        frame = self.frame(number, np.load(errors, mmap_mode="r"))
        return np.sqrt(np.square(frame).mean(axis=-1)) if self.image.colour else np.asarray(frame)

    def level_map(self, number: int) -> FloatArray:
        """The noise level around every pixel of a frame, (H, W); of colours the root mean square."""
        with self._lock:
            if self._map is None or self._map[0] is not self.noise[number]:
                noise = self.noise[number]
                levels = noise_levels_of(noise.report, self.frame_shape, self.channel_axis)
                if self.image.colour:
                    levels = np.sqrt(np.square(levels, out=levels).mean(axis=-1))
                self._map = (noise, levels)
            return self._map[1]
