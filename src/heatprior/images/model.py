"""What an image file holds: its pixels as they are, and what must come along when they are written again."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError

DTYPES = tuple(np.dtype(name) for name in ("uint8", "uint16", "float32", "float64"))


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
    what only the module of its format understands; it makes a file of the same format complete.
    """

    path: Path
    pixels: NDArray[Any]
    colour: bool
    others: NDArray[Any] | None = None
    carried: Carried = NOTHING
    native: object = None

    @property
    def channel_axis(self) -> int | None:
        """Where red, green and blue are, if they are."""
        return self.pixels.ndim - 1 if self.colour else None

    @property
    def is_stack(self) -> bool:
        """Whether there is more than one picture."""
        return self.pixels.ndim > (3 if self.colour else 2)

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
    logger = logging.getLogger("tifffile")
    silent = logger.disabled
    logger.disabled = True  # decoders grumble about metadata that plays no role here
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except ImageFileError as error:
        raise error if str(path) in str(error) else ImageFileError(f"cannot read {path}: {error}") from error
    except MemoryError:
        raise
    except Exception as error:  # decoders raise all sorts: OSError, SyntaxError, struct.error, zlib.error, …
        missing = isinstance(error, FileNotFoundError)
        why = "there is no such file" if missing else f"it is damaged or no image ({type(error).__name__}: {error})"
        raise ImageFileError(f"cannot read {path}: {' '.join(why.split())}; get a fresh copy") from error
    finally:
        logger.disabled = silent
