"""Missing pixels of files: a value that stands for none (GDAL_NODATA, BLANK, padding), and infinities.

Among floats they become NaN, which is what missing means everywhere else; integers cannot say it, so a mask does.
Written again, each is what it was. A pixel that is there never takes the value that stands for none: it steps aside to
the next one, as gdalwarp has it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Missing(NamedTuple):
    """Where pixels are missing, the values that stood there (in the order of the mask), and the one that is taken."""

    mask: NDArray[np.bool_]
    values: NDArray[Any]
    taken: Any = None

    def restored(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """A copy of `pixels` in which what is missing is as it was, and nothing else looks missing."""
        whole = np.array(pixels)
        if self.taken is not None:
            _step_aside(whole, self.taken)
        whole[self.mask] = self.values
        return whole

    def left_out(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """`pixels` as a reader gives them: floats with NaN for what is missing, integers as they are."""
        if pixels.dtype.kind != "f":
            return pixels
        return np.where(self.mask, pixels.dtype.type(np.nan), pixels)


def part_missing(pixels: NDArray[Any], nodata: float | None = None) -> tuple[NDArray[Any], Missing | None]:
    """`pixels` with NaN for missing ones if they are floats, and what stood there; None if nothing is to remember."""
    taken = _as_pixel(nodata, pixels.dtype)
    mask = None
    if pixels.dtype.kind == "f" and not _is_finite(pixels):
        mask = np.isinf(pixels)
    if taken is not None:
        stands_for_none = pixels == taken
        mask = stands_for_none if mask is None else mask | stands_for_none
    if mask is None or (taken is None and not mask.any()):
        return pixels, None
    missing = Missing(mask, pixels[mask], taken)
    return missing.left_out(pixels), missing


def _is_finite(pixels: NDArray[Any]) -> bool:
    """Without an array of the size of the image."""
    with np.errstate(invalid="ignore"):
        return bool(np.isfinite([np.min(pixels), np.max(pixels)]).all())


def _as_pixel(value: float | None, dtype: np.dtype[Any]) -> Any:
    """The value as a pixel has it, or None if none can."""
    if value is None or not np.isfinite(value):  # NaN and infinities are missing anyhow
        return None
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            pixel = dtype.type(value)
        return pixel if np.isfinite(pixel) else None
    limits = np.iinfo(dtype)
    return dtype.type(int(value)) if value == int(value) and limits.min <= value <= limits.max else None


def _step_aside(pixels: NDArray[Any], taken: Any) -> None:
    """Move pixels off `taken`, in place, by the least step towards zero, or up from it."""
    here = pixels == taken
    if not here.any():
        return
    if pixels.dtype.kind == "f":
        pixels[here] = np.nextafter(taken, pixels.dtype.type(0 if taken else 1))
    else:
        pixels[here] = taken - 1 if taken > 0 else taken + 1
