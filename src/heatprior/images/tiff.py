"""TIFF: integers of 8 to 32 bits and floats, grey and colour, pages and hyperstacks, with every tag that was there.

A denoised TIFF is a copy of the file that it came from, in which only the pixels are replaced: descriptions, ImageJ's
and OME's metadata, resolution, profiles and private tags stay, byte for byte. Other images become plain TIFFs, and so
do those of palettes, inks (CMYK) and fewer bits than 8, which become colours and grey values.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError, OutputFileError
from heatprior.images import metadata, tiff_pixels
from heatprior.images.missing import part_missing
from heatprior.images.model import ANY_NUMBER, Carried, Format, ImageFile, check_type, parted
from heatprior.images.tiff_layout import check_directories, check_pages

MIN_IS_WHITE, MIN_IS_BLACK, RGB, PALETTE, INKS, Y_CB_CR = 0, 1, 2, 3, 5, 6
TRANSPARENCY = (1, 2)  # kinds of extra samples: alpha, multiplied into the colours or not
ICC_PROFILE, X_RESOLUTION, Y_RESOLUTION, RESOLUTION_UNIT, ORIENTATION = 34675, 282, 283, 296, 274
GDAL_NODATA = 42113  # text: the value of pixels that are missing
UNDEFINED, SHORT = 7, 3  # the types of bytes that only some know how to read, and of numbers of two bytes
INCHES = {2: 1.0, 3: 2.54}  # of the unit of resolution: 2 is the inch, 3 the centimetre


class Origin(NamedTuple):
    """The file that the pixels come from, when it was read, its axis of samples, if any, and whether 0 is white."""

    path: Path
    stamp: tuple[int, int]
    sample_axis: int | None
    inverted: bool


def read(path: Path) -> ImageFile:
    """The image or the stack of images; where it comes from in `native`. Pixels are brightness: 0 is black."""
    from tifffile import TiffFile  # noqa: PLC0415 (slow to import)

    check_directories(path)
    with TiffFile(path) as file:
        series = tiff_pixels.alike(file)
        page = series[0].keyframe
        carried = _carried(page)
        if _is_indirect(page, file):
            pixels, colour = tiff_pixels.read_converted(path, [one for part in series for one in part.pages])
            pixels = pixels.reshape(
                tiff_pixels.shape_of(series)[: -1 if "S" in series[0].axes else None] + (3,) * colour
            )
            return ImageFile(
                path, pixels, colour, None, carried._replace(icc=None) if page.photometric == INKS else carried
            )
        _check_page(series[0], page)
        check_pages(path, series)
        samples, axes = tiff_pixels.read(path, file, series), tiff_pixels.axes_of(series)
        brightness = _brightness(page, file, samples.shape[axes.index("S")] if "S" in axes else 1)
        nodata = _nodata(page)
    samples = samples.astype(samples.dtype.newbyteorder("="), copy=False)
    inverted = page.photometric == MIN_IS_WHITE and samples.dtype.kind == "u"
    if inverted:
        white = np.iinfo(samples.dtype).max
        samples, nodata = white - samples, None if nodata is None else white - nodata
    origin = Origin(path.resolve(), _stamp(path), axes.index("S") if "S" in axes else None, inverted)
    colour, others = False, None
    if origin.sample_axis is not None and brightness is None:  # channels of their own: independent images
        samples = np.moveaxis(samples, origin.sample_axis, 0)
    elif origin.sample_axis is not None:
        samples, colour, others = parted(np.moveaxis(samples, origin.sample_axis, -1), brightness or 1)
    pixels, missing = part_missing(samples, nodata)
    return ImageFile(path, pixels, colour, others, carried, origin, missing)


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> None:
    """Write `pixels` into a copy of the TIFF that `like` came from, or else into a plain one."""
    samples = like.samples(pixels)
    if not isinstance(like.native, Origin):
        _write_plain(path, samples, like)
        return
    origin, stamp, axis, inverted = like.native
    if inverted:
        samples = np.iinfo(samples.dtype).max - samples
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


def _is_indirect(page: Any, file: Any) -> bool:
    """Whether samples stand for colours rather than being them, or are packed: Pillow unfolds those."""
    if page.photometric in (MIN_IS_WHITE, MIN_IS_BLACK):
        return page.bitspersample in (1, 2, 4) and page.samplesperpixel == 1
    narrow = page.bitspersample <= 8
    return narrow and (page.photometric == INKS or (page.photometric == PALETTE and not file.is_imagej))


def _check_page(series: Any, page: Any) -> None:
    check_type(page.dtype or np.dtype("V1"))
    if page.bitspersample != 8 * page.dtype.itemsize or page.fillorder != 1 or page.imagedepth != 1:
        raise ImageFileError(f"it is packed with {page.bitspersample} bits per pixel; convert it to 8 or 16 bits")
    if series.axes.replace("S", "")[-2:] != "YX" or 0 in series.shape:
        raise ImageFileError(f"its axes are {series.axes}, {series.shape}; expected images with rows and columns")


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


def _carried(page: Any) -> Carried:
    icc, turned = _value(page, ICC_PROFILE), _value(page, ORIENTATION)
    exif = metadata.exif_of(int(turned)) if isinstance(turned, int) else None
    return Carried(icc if isinstance(icc, bytes) and metadata.is_profile(icc) else None, exif, _dots_per_inch(page))


def _nodata(page: Any) -> float | None:
    text = _value(page, GDAL_NODATA)
    try:
        return None if text is None else float(text)
    except (TypeError, ValueError):
        return None


def _dots_per_inch(page: Any) -> tuple[float, float] | None:
    unit = INCHES.get(int(_value(page, RESOLUTION_UNIT) or 1))
    across, down = _value(page, X_RESOLUTION), _value(page, Y_RESOLUTION)
    try:
        return None if unit is None else metadata.sound_dpi([dots[0] / dots[1] * unit for dots in (across, down)])
    except (TypeError, IndexError, ZeroDivisionError):
        return None


def _value(page: Any, code: int) -> Any:
    tag = page.tags.get(code)
    return tag.value if tag is not None else None


def _stamp(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_size, about.st_mtime_ns


def _write_plain(path: Path, samples: NDArray[Any], like: ImageFile) -> None:
    from tifffile import imwrite  # noqa: PLC0415

    icc, turned = like.carried.icc, metadata.orientation_of(like.carried.exif)
    several = like.colour or like.others is not None
    count = (samples.shape[-1] - (3 if like.colour else 1)) if several else 0
    tags: list[tuple[int, int, int, Any, bool]] = [(ICC_PROFILE, UNDEFINED, len(icc), icc, True)] if icc else []
    tags += [(ORIENTATION, SHORT, 1, turned, True)] if turned != 1 else []
    imwrite(
        path,
        samples,
        photometric="rgb" if like.colour else "minisblack",
        planarconfig="contig" if several else None,
        extrasamples=["unassalpha"] * count or None,
        resolution=like.carried.dpi,
        resolutionunit="INCH" if like.carried.dpi else None,
        extratags=tags,
        software=False,
        metadata=None,
    )


FORMAT = Format(
    name="TIFF",
    suffixes=(".tif", ".tiff"),
    signature=rb"II[*+]\0|MM\0[*+]",
    read=read,
    write=write,
    stacks=True,
    others=ANY_NUMBER,
)
