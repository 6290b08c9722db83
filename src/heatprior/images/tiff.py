"""TIFF: 8 and 16 bits and floats, grey and colour, pages and hyperstacks, with every tag that was there.

A denoised TIFF is a copy of the file that it came from, in which only the pixels are replaced: descriptions, ImageJ's
and OME's metadata, resolution, profiles and private tags stay, byte for byte. Other images become plain TIFFs.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError, OutputFileError
from heatprior.images import tiff_pixels
from heatprior.images.model import Carried, ImageFile, check_type, parted

MIN_IS_WHITE, MIN_IS_BLACK, RGB, PALETTE, Y_CB_CR = 0, 1, 2, 3, 6
TRANSPARENCY = (1, 2)  # kinds of extra samples: alpha, multiplied into the colours or not
ICC_PROFILE, X_RESOLUTION, Y_RESOLUTION, RESOLUTION_UNIT = 34675, 282, 283, 296
UNDEFINED = 7  # the type of bytes that only some know how to read
INCHES = {2: 1.0, 3: 2.54}  # of the unit of resolution: 2 is the inch, 3 the centimetre


class Origin(NamedTuple):
    """The file that the pixels come from, when it was read, and where its axis of samples is, if it has any."""

    path: Path
    stamp: tuple[int, int]
    sample_axis: int | None


def read(path: Path) -> ImageFile:
    """The image or the stack of images; where it comes from in `native`."""
    from tifffile import TiffFile  # noqa: PLC0415 (slow to import)

    with TiffFile(path) as file:
        series, page = _the_series(file)
        samples = tiff_pixels.read(path, series)
        axes = series.axes
        carried = Carried(_value(page, ICC_PROFILE), None, _dots_per_inch(page))
        brightness = _brightness(page, file, samples.shape[axes.index("S")] if "S" in axes else 1)
    samples = samples.astype(samples.dtype.newbyteorder("="), copy=False)
    origin = Origin(path.resolve(), _stamp(path), axes.index("S") if "S" in axes else None)
    if origin.sample_axis is None:
        return ImageFile(path, samples, False, None, carried, origin)
    if brightness is None:  # samples that are channels of their own: independent images
        return ImageFile(path, np.moveaxis(samples, origin.sample_axis, 0), False, None, carried, origin)
    pixels, colour, others = parted(np.moveaxis(samples, origin.sample_axis, -1), brightness)
    return ImageFile(path, pixels, colour, others, carried, origin)


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> None:
    """Write `pixels` into a copy of the TIFF that `like` came from, or else into a plain one."""
    samples = like.samples(pixels)
    if not isinstance(like.native, Origin):
        _write_plain(path, samples, like)
        return
    origin, stamp, axis = like.native
    if axis is not None:
        # Channels of their own were moved to the front, all others to the end.
        independent = not like.colour and like.others is None
        samples = np.moveaxis(samples, 0 if independent else -1, axis)
    try:
        shutil.copyfile(origin, path)
    except FileNotFoundError as error:
        raise OutputFileError(f"{origin} is gone; its copy was to hold the result") from error
    if _stamp(origin) != stamp:
        raise OutputFileError(f"{origin} has changed since it was read; begin again")
    tiff_pixels.replace(path, samples)


def _the_series(file: Any) -> tuple[Any, Any]:
    """The one image or stack of the file, if that is all it holds; and its first page."""
    if len(file.series) != 1:
        raise ImageFileError(f"it holds {len(file.series)} images of different kinds; save one per file")
    series = file.series[0]
    pages = list(series.pages)
    if len(series.levels) > 1 or any(page is None for page in pages) or series.is_multifile:
        raise ImageFileError("it is a pyramid of sizes, lacks pages, or is one of several files; save it as one image")
    page = series.keyframe
    check_type(page.dtype or np.dtype("V1"))
    if page.bitspersample != 8 * page.dtype.itemsize or page.fillorder != 1 or page.imagedepth != 1:
        raise ImageFileError(f"it is packed with {page.bitspersample} bits per pixel; convert it to 8 or 16 bits")
    if series.axes.replace("S", "")[-2:] != "YX" or 0 in series.shape:
        raise ImageFileError(f"its axes are {series.axes}, {series.shape}; expected images with rows and columns")
    return series, page


def _brightness(page: Any, file: Any, samples: int) -> int | None:
    """How many of the samples of a pixel are brightness: 1, 3, or None if each is a channel of its own."""
    photometric = int(page.photometric)
    if photometric in (RGB, Y_CB_CR) and samples >= 3:
        return 3
    # ImageJ keeps a colour table for showing beside grey values.
    if photometric in (MIN_IS_WHITE, MIN_IS_BLACK) or (photometric == PALETTE and file.is_imagej):
        transparent = samples == 2 and any(int(kind) in TRANSPARENCY for kind in page.extrasamples)
        return 1 if transparent or samples == 1 else None
    raise ImageFileError(f"its colours are {getattr(page.photometric, 'name', photometric)}; convert it to RGB or grey")


def _dots_per_inch(page: Any) -> tuple[float, float] | None:
    unit = INCHES.get(int(_value(page, RESOLUTION_UNIT) or 1))
    across, down = _value(page, X_RESOLUTION), _value(page, Y_RESOLUTION)
    if unit is None or not across or not down or not (across[1] and down[1]):
        return None
    return across[0] / across[1] * unit, down[0] / down[1] * unit


def _value(page: Any, code: int) -> Any:
    tag = page.tags.get(code)
    return tag.value if tag is not None else None


def _stamp(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_size, about.st_mtime_ns


def _write_plain(path: Path, samples: NDArray[Any], like: ImageFile) -> None:
    from tifffile import imwrite  # noqa: PLC0415

    icc = like.carried.icc
    several = like.colour or like.others is not None
    count = (samples.shape[-1] - (3 if like.colour else 1)) if several else 0
    imwrite(
        path,
        samples,
        photometric="rgb" if like.colour else "minisblack",
        planarconfig="contig" if several else None,
        extrasamples=["unassalpha"] * count or None,
        resolution=like.carried.dpi,
        resolutionunit="INCH" if like.carried.dpi else None,
        extratags=[(ICC_PROFILE, UNDEFINED, len(icc), icc, True)] if icc else [],
        software=False,
        metadata=None,
    )
