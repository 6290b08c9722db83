"""What an image file holds: its pixels as they are, and what must come along when they are written again."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError, OutputFileError
from heatprior.images.missing import Missing

DTYPES = tuple(
    np.dtype(name) for name in ("uint8", "uint16", "uint32", "int16", "int32", "float16", "float32", "float64")
)


class Carried(NamedTuple):
    """What belongs to a picture in any format: colour profile, EXIF (as in JPEG, from "Exif" on), dots per inch."""

    icc: bytes | None = None
    exif: bytes | None = None
    dpi: tuple[float, float] | None = None


NOTHING = Carried()


@dataclass(frozen=True)
class ImageFile:
    """An image as read: pixels (…, H, W), or (…, H, W, 3) if `colour`, in the file's own type and units.

    `others` (…, H, W, n) are samples that are no brightness, such as transparency: they stay as they are. `native` is
    what only the module of its format understands; it makes a file of the same format complete. `missing` are the
    pixels that the file says are none (NaN among floats), and `full_scale` is what the file declares.
    """

    path: Path
    pixels: NDArray[Any]
    colour: bool
    others: NDArray[Any] | None = None
    carried: Carried = NOTHING
    native: object = None
    missing: Missing | None = None
    full_scale: float | None = None

    @property
    def channel_axis(self) -> int | None:
        """Where red, green and blue are, if they are."""
        return self.pixels.ndim - 1 if self.colour else None

    @property
    def is_stack(self) -> bool:
        """Whether there is more than one picture."""
        return self.pixels.ndim > (3 if self.colour else 2)

    @property
    def has_gaps(self) -> bool:
        """Whether these are integers some of which stand for missing pixels."""
        return self.missing is not None and self.pixels.dtype.kind != "f" and bool(self.missing.mask.any())

    @property
    def white(self) -> float | None:
        """Full scale of `values()`, where the file or its type declares it and the values themselves do not."""
        if self.full_scale is None and self.has_gaps:
            return float(np.iinfo(self.pixels.dtype).max)
        return self.full_scale

    def values(self) -> NDArray[Any]:
        """The pixels with NaN for missing ones: themselves, or as floats if they are integers of which some are."""
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
        """Size, kind and type in a few words."""
        shape = self.pixels.shape[:-1] if self.colour else self.pixels.shape
        size = f"{shape[-2]}×{shape[-1]}"
        count = f"{'×'.join(str(side) for side in shape[:-2])} images of " if self.is_stack else ""
        return f"{count}{size} pixels, {'colour' if self.colour else 'grey'}, {self.pixels.dtype}"

    def samples(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """`pixels` with the other samples beside them again: (…, H, W), or (…, H, W, channels)."""
        if self.others is None:
            return pixels
        return np.concatenate([pixels if self.colour else pixels[..., None], self.others], axis=-1)


@dataclass(frozen=True)
class Format:
    """A kind of file: how it is known, read and written, and what it can hold.

    `signature` is a regular expression that the first bytes match. `write` returns the pixels as they must come back,
    if it had to round them, else None. `others` is how many samples a pixel may have beside its brightness, `package`
    what must be installed. A format that is not `free` is written only from a file of its own kind.
    """

    name: str
    suffixes: tuple[str, ...]
    signature: bytes
    read: Callable[[Path], ImageFile]
    write: Callable[[Path, NDArray[Any], ImageFile], NDArray[Any] | None]
    dtypes: tuple[np.dtype[Any], ...] = DTYPES
    colour: bool = True
    stacks: bool = False
    others: int = 0
    lossy: bool = False
    free: bool = True
    package: str | None = None
    extra: str | None = None

    def objection(self, image: ImageFile, *, own: bool) -> str | None:
        """Why the image does not go into this format, or None if it does; `own`: it comes from one."""
        if own:  # as it came, so it goes, whatever others may write
            return None
        if not self.free:
            return f"{self.name} is written from {self.name} only"
        others = 0 if image.others is None else image.others.shape[-1]
        objections = {
            f"{self.name} holds one image, not a stack": image.is_stack and not self.stacks,
            f"{self.name} cannot hold {image.pixels.dtype}": image.pixels.dtype not in self.dtypes,
            f"{self.name} cannot hold colours": image.colour and not self.colour,
            f"{self.name} cannot hold its transparency": others > self.others,
        }
        return next((objection for objection, holds in objections.items() if holds), None)


ANY_NUMBER = 1 << 16  # of other samples


def parted(samples: NDArray[Any], brightness: int) -> tuple[NDArray[Any], bool, NDArray[Any] | None]:
    """Samples (…, H, W, n), of which the first `brightness` (1 or 3) are no transparency, as pixels, colour, others."""
    colour = brightness == 3
    pixels = samples[..., :3] if colour else samples[..., 0]
    return np.ascontiguousarray(pixels), colour, samples[..., brightness:] if samples.shape[-1] > brightness else None


def check_type(dtype: np.dtype[Any]) -> None:
    """Refuse pixels that have no known scale."""
    if dtype.newbyteorder("=") not in DTYPES:
        names = ", ".join(str(known) for known in DTYPES)
        raise ImageFileError(f"pixels of type {dtype} have no known scale; expected one of {names}: convert it")


@contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Whatever a decoder raises on a damaged file, as one line that names the file."""
    with silent_decoders():
        try:
            yield
        except OutputFileError:
            raise
        except ImageFileError as error:
            message = " ".join(str(error).split())
            if str(path) not in message:
                message = f"cannot read {path}: {message}"
            raise ImageFileError(message) from error
        except MemoryError as error:
            raise ImageFileError(
                f"cannot read {path}: it takes more memory than there is; cut it into parts"
            ) from error
        except Exception as error:  # decoders raise all sorts: OSError, SyntaxError, struct.error, zlib.error, …
            raise ImageFileError(f"cannot read {path}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """What is wrong with a file, and how to mend it."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file; check its name"
    if isinstance(error, IsADirectoryError):
        return "it is a folder; give a file in it"
    if isinstance(error, PermissionError):
        return "it may not be read; change its permissions"
    text = " ".join(str(error).split())
    text = text if len(text) <= 200 else f"{text[:200]}…"  # some quote the whole file
    return f"it is damaged or no image ({type(error).__name__}: {text}); get a fresh copy"


@contextmanager
def silent_decoders() -> Iterator[None]:
    """No grumbling of decoders about metadata that plays no role here."""
    loggers = [logging.getLogger(name) for name in ("tifffile", "PIL", "pydicom", "nibabel.global")]
    before = [logger.propagate for logger in loggers]
    nowhere = logging.NullHandler()
    for logger in loggers:  # and those below them, such as PIL.TiffImagePlugin, which `disabled` would let speak
        logger.propagate = False
        logger.addHandler(nowhere)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, propagated in zip(loggers, before, strict=True):
            logger.propagate = propagated
            logger.removeHandler(nowhere)
