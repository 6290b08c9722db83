"""An image as read from a file: its pixels, and everything that must accompany them when they are written again.

Missing pixels: a file may declare a value that stands for none (GDAL_NODATA, BLANK, padding), and floats may be
infinite. Among floats such pixels become NaN, which is what missing means everywhere else; integers cannot say it, so
a mask does. Written again, each is what it was. A valid pixel never takes the value that stands for none: it moves to
the next one, as in gdalwarp.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import ChannelAxis
from heatprior.errors import ImageFileError, InvalidInputError

DTYPES = tuple(
    np.dtype(name) for name in ("uint8", "uint16", "uint32", "int16", "int32", "float16", "float32", "float64")
)
INTEGERS = tuple(np.dtype(name) for name in ("uint8", "uint16", "int16", "uint32", "int32"))  # by size


class Metadata(NamedTuple):
    """Metadata that every format knows: colour profile, EXIF (as in JPEG, from "Exif" on), dots per inch."""

    icc: bytes | None = None
    exif: bytes | None = None
    dpi: tuple[float, float] | None = None


NO_METADATA = Metadata()


class Missing(NamedTuple):
    """Where pixels are missing, their values in the file (in the order of the mask), and the value that marks them."""

    mask: NDArray[np.bool_]
    values: NDArray[Any]
    marker: Any = None

    def put_back(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """A copy of `pixels` in which missing pixels are as they were in the file, and no others look missing."""
        whole = np.array(pixels)
        taken = whole == self.marker if self.marker is not None else np.False_
        if taken.any() and whole.dtype.kind == "f":  # moved by the least step towards zero, or up from it
            whole[taken] = np.nextafter(self.marker, whole.dtype.type(0 if self.marker else 1))
        elif taken.any():
            whole[taken] = self.marker - 1 if self.marker > 0 else self.marker + 1
        whole[self.mask] = self.values
        return whole

    def blank(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """`pixels` as a reader returns them: floats with NaN for missing pixels, integers unchanged."""
        if pixels.dtype.kind != "f":
            return pixels
        return np.where(self.mask, pixels.dtype.type(np.nan), pixels)


@dataclass(frozen=True)
class ImageFile:
    """An image as read: pixels (…, H, W), or (…, H, W, 3) if `colour`, in the file's own type and units."""

    path: Path
    pixels: NDArray[Any]
    colour: bool
    others: NDArray[Any] | None = None  # (…, H, W, n), samples beside brightness, such as transparency: passed through
    metadata: Metadata = NO_METADATA
    native: Any = None  # what else a complete file of the same format needs; None for an image of another format
    missing: Missing | None = None  # the pixels that the file declares invalid (NaN among floats)
    multiplied_by: int | None = None  # the sample among `others` by which pixels are multiplied, as TIFF may have it
    sigma: NDArray[Any] | None = None  # the noise level of each pixel, if the file has it
    stack_axes: str = ""  # names of the axes in front of rows, such as TZC, as far as the file has them

    def depth_axis(self, name: str) -> int:
        """The axis of depth (Z) or of time (T); of "ANY", depth if the file has it, or else time, or its one axis."""
        count = len(self.stack)
        names = self.stack_axes if len(self.stack_axes) == count else "Q" * count
        if count == 0:
            raise InvalidInputError("it is a single image, not a stack of slices; denoise it as an image")
        for wanted in "ZT" if name == "ANY" else name:
            if wanted in names:
                return names.index(wanted)
        if set(names) <= {"Q", "I"} and count == 1:  # which nobody has named
            return 0
        words = {"Z": "depth", "T": "time", "C": "channels", "ANY": "depth or time"}
        known = ", ".join(words.get(one, "unknown") for one in names)
        raise InvalidInputError(f"the axes of its stack are {known}, not {words[name]}; give another axis")

    @property
    def channel_axis(self) -> ChannelAxis:
        """The axis of red, green and blue; none for grey images, () for stacks of them, which may look like colours."""
        return self.pixels.ndim - 1 if self.colour else () if self.pixels.ndim > 2 else None

    @property
    def stack(self) -> tuple[int, ...]:
        """The shape of a stack, that of images left out; () for one image."""
        return self.pixels.shape[: self.pixels.ndim - (3 if self.colour else 2)]

    @property
    def middle(self) -> tuple[int, ...]:
        """The index of the middle image of a stack."""
        return tuple(count // 2 for count in self.stack)

    @property
    def has_gaps(self) -> bool:
        """Whether the pixels are integers some of which stand for missing ones."""
        return self.missing is not None and self.pixels.dtype.kind != "f" and bool(self.missing.mask.any())

    def values(self) -> NDArray[Any]:
        """The pixels with NaN for missing ones: unchanged, or as floats if some of the integers are missing."""
        if self.missing is None or not self.has_gaps:
            return self.pixels
        return np.where(self.missing.mask, np.nan, self.pixels).astype(self.values_dtype)

    @property
    def values_dtype(self) -> np.dtype[Any]:
        """The type of `values()`."""
        if not self.has_gaps:
            return self.pixels.dtype
        return np.dtype(np.float32 if self.pixels.dtype.itemsize < 4 else np.float64)

    def describe(self) -> str:
        """Size (width×height), colour and type in a few words."""
        shape = self.pixels.shape[:-1] if self.colour else self.pixels.shape
        size = f"{shape[-1]}×{shape[-2]}"
        count = f"{'×'.join(map(str, self.stack))} images of " if self.stack else ""
        bits = 8 * self.pixels.dtype.itemsize
        kind = {"u": f"{bits} bits", "i": f"{bits} bits, signed"}.get(self.pixels.dtype.kind, f"{bits}-bit floats")
        return f"{count}{size} pixels, {'colour' if self.colour else 'grey'}, {kind}"

    def samples(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """`pixels` joined with `others` again: (…, H, W), or (…, H, W, channels)."""
        if self.others is None:
            return pixels
        return np.concatenate([pixels if self.colour else pixels[..., None], self.others], axis=-1)

    def divide(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """`pixels` without the transparency by which they are multiplied; where nothing is to be seen they are 0."""
        if self.others is None or self.multiplied_by is None:
            return pixels
        alpha = self.others[..., self.multiplied_by].astype(np.float64)
        alpha = alpha[..., None] if self.colour else alpha
        full = 1.0 if pixels.dtype.kind == "f" else np.iinfo(pixels.dtype).max
        plain = np.divide(pixels * float(full), alpha, out=np.zeros(pixels.shape), where=alpha > 0)
        return plain.astype(pixels.dtype) if full == 1.0 else np.rint(np.clip(plain, 0, full)).astype(pixels.dtype)

    def enlarge(self, factor: int) -> ImageFile:
        """An empty image `factor` times as large, with profile, EXIF and resolution only; for 1 itself, no gaps."""
        if factor == 1:
            return replace(self, missing=None)
        height, width = self.pixels.shape[len(self.stack) :][:2]
        shape = (*self.stack, factor * height, factor * width, *((3,) if self.colour else ()))
        others = self.others
        if others is not None:
            others = np.repeat(np.repeat(others, factor, axis=-3), factor, axis=-2)
        dpi = self.metadata.dpi
        return replace(
            self,
            path=self.path.with_suffix(""), pixels=np.empty(shape, self.pixels.dtype), others=others,
            metadata=self.metadata._replace(dpi=dpi and (factor * dpi[0], factor * dpi[1])),
            native=None, missing=None, sigma=None,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"ImageFile({str(self.path)!r}, {self.describe()})"


def split_samples(samples: NDArray[Any], brightness: int) -> tuple[NDArray[Any], bool, NDArray[Any] | None]:
    """Pixels, whether they are colours, and the rest of samples (…, H, W, n), the first 1 or 3 being brightness."""
    colour = brightness == 3
    pixels = samples[..., :3] if colour else samples[..., 0]
    return np.ascontiguousarray(pixels), colour, samples[..., brightness:] if samples.shape[-1] > brightness else None


def check_type(dtype: np.dtype[Any]) -> None:
    """Refuse types of pixels that are not supported."""
    if dtype.newbyteorder("=") not in DTYPES:
        names = ", ".join(str(known) for known in DTYPES)
        raise ImageFileError(f"pixels of type {dtype} have no known scale; expected one of {names}: convert it")


def find_missing(
    pixels: NDArray[Any], nodata: float | None = None, limit: float | None = None
) -> tuple[NDArray[Any], Missing | None]:
    """`pixels`, with NaN for missing ones if they are floats, and the `Missing` that undoes it, or None.

    With a `limit` all values from `nodata` to it stand for none.
    """
    marker = _as_pixel(nodata, pixels.dtype)
    with np.errstate(invalid="ignore"):
        mask = None if np.isfinite([pixels.min(), pixels.max()]).all() else np.isinf(pixels)  # most need no mask
    if marker is not None:
        end = _as_pixel(limit, pixels.dtype)
        low, high = (marker, marker) if end is None else sorted((marker, end))
        mask = ((low <= pixels) & (pixels <= high)) | (np.False_ if mask is None else mask)
    elif mask is None or not mask.any():
        return pixels, None
    missing = Missing(mask, pixels[mask], marker)
    return missing.blank(pixels), missing


def _as_pixel(value: float | None, dtype: np.dtype[Any]) -> Any:
    """The value in the type of the pixels, or None if no pixel can have it."""
    if value is None or not np.isfinite(value):  # NaN and infinities are missing anyhow
        return None
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            pixel = dtype.type(value)
        return pixel if np.isfinite(pixel) else None
    limits = np.iinfo(dtype)
    return dtype.type(int(value)) if value == int(value) and limits.min <= value <= limits.max else None


class Origin(NamedTuple):
    """The file that an image comes from, how its numbers are stored, and which part of the file it is."""

    path: Path
    scale: Scale
    part: int = 0


class Scale(NamedTuple):
    """How numbers are stored: value = slope · stored + intercept, with the type (of either byte order) and range."""

    slope: float
    intercept: float
    dtype: np.dtype[Any]
    low: float
    high: float

    @classmethod
    def of(cls, dtype: np.dtype[Any], slope: float = 1.0, intercept: float = 0.0, bits: int | None = None) -> Scale:
        """The scale of a type, or of an integer type of which only some `bits` are used."""
        if not (math.isfinite(slope) and math.isfinite(intercept) and slope != 0):
            raise ImageFileError(f"its values are {slope:g} x + {intercept:g}, which is no scale; get a fresh copy")
        if dtype.kind == "f":
            return cls(slope, intercept, dtype, -math.inf, math.inf)
        limits = np.iinfo(dtype)
        bits = bits or limits.bits
        signed = dtype.kind == "i"
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        return cls(slope, intercept, dtype, max(low, limits.min), min(high, limits.max))

    @property
    def values_dtype(self) -> np.dtype[Any]:
        """The type of the values: integers if all are whole and fit, else floats, rounded when they are written."""
        native = self.dtype.newbyteorder("=")
        if self.slope == 1 and self.intercept == 0:
            return native if native.kind == "f" or native in INTEGERS else np.dtype(np.float64)
        if self.dtype.kind != "f" and self.slope == 1 and self.intercept == int(self.intercept):
            least, most = self.low + self.intercept, self.high + self.intercept
            for dtype in INTEGERS:
                if np.iinfo(dtype).min <= least and most <= np.iinfo(dtype).max:
                    return dtype
        return np.dtype(np.float32 if self.dtype.itemsize <= 2 else np.float64)

    def values(self, stored: NDArray[Any]) -> NDArray[Any]:
        """Values of stored numbers."""
        dtype = self.values_dtype
        if self.slope == 1 and self.intercept == 0:
            return stored.astype(dtype, copy=False)
        if dtype.kind != "f":
            return (stored.astype(np.int64) + int(self.intercept)).astype(dtype)
        return (stored.astype(np.float64) * self.slope + self.intercept).astype(dtype)

    def encode(self, values: NDArray[Any]) -> NDArray[Any]:
        """The numbers that can be stored nearest to `values`."""
        if self.slope == 1 and self.intercept == 0 and values.dtype == self.dtype.newbyteorder("="):
            fits = self.dtype.kind == "f" or self.high - self.low == np.iinfo(self.dtype).max - np.iinfo(self.dtype).min
            return (values if fits else np.clip(values, self.low, self.high)).astype(self.dtype, copy=False)
        numbers = (values.astype(np.float64) - self.intercept) / self.slope
        if self.dtype.kind == "f":
            return numbers.astype(self.dtype)
        return np.rint(np.clip(np.nan_to_num(numbers), self.low, self.high)).astype(self.dtype)

    def read_back(self, stored: NDArray[Any], missing: Missing | None) -> NDArray[Any]:
        """What a reader will make of stored numbers."""
        values = np.ascontiguousarray(self.values(stored))
        return values if missing is None else missing.blank(values)

    def number(self, value: float) -> float:
        """The value of one stored number."""
        return value * self.slope + self.intercept
