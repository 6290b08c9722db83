"""TIFF: integers of 8 to 32 bits and floats, grey and colour, pages and hyperstacks, with every tag that was there.

A denoised TIFF is a copy of the file that it came from, in which only the pixels are replaced: descriptions, ImageJ's
and OME's metadata, resolution, profiles and private tags stay, byte for byte. Other images become plain TIFFs, and so
do those of palettes, inks (CMYK) and fewer bits than 8, which become colours and grey values.
"""

from __future__ import annotations

import shutil
import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image

from heatprior.errors import ImageFileError, OutputFileError
from heatprior.images import decoding
from heatprior.images.model import ImageFile, Metadata, check_type, find_missing, split_samples

MIN_IS_WHITE, MIN_IS_BLACK, RGB, PALETTE, INKS, Y_CB_CR = 0, 1, 2, 3, 5, 6
MULTIPLIED, PLAIN = 1, 2  # kinds of extra samples: alpha, multiplied into the colours or not
ICC_PROFILE, ORIENTATION = 34675, 274
UNDEFINED, SHORT = 7, 3  # the types of bytes that only some know how to read, and of numbers of two bytes
LUMA = (0.299, 0.587, 0.114)  # of red, green and blue in JPEG
INCHES = {2: 1.0, 3: 2.54}  # of the unit of resolution: 2 is the inch, 3 the centimetre
# Strips and tiles of pixels
DEFLATE = 8
NO_PREDICTOR, DIFFERENCES = 1, 2
# Directories
CLASSIC, BIG = 42, 43
NO_COMPRESSION = 1
DEFLATES = (8, 32946)  # two numbers for the same
JPEGS = (6, 7, 34892)  # the old way, the new one, and that of DNG
ENTRY = {CLASSIC: 12, BIG: 20}
MOST_TAGS = 4096
HARMLESS = 100 << 20  # bytes that compressed pixels may unfold to beyond what is declared


class Origin(NamedTuple):
    """The file that the pixels come from, when it was read, its axis of samples, if any, and whether 0 is white."""

    path: Path
    stamp: tuple[int, int]
    sample_axis: int | None
    inverted: bool


def read(path: Path) -> ImageFile:
    """Read an image or a stack; `native` is its origin. Pixels are brightness: 0 is black."""
    _check_directories(path)
    with tifffile.TiffFile(path) as file:
        series = _find_series(file)
        page = series[0].keyframe
        metadata = _read_metadata(page)
        if _is_indirect(page, file):
            pixels, colour = _read_converted(path, _pages_of(series))
            pixels = pixels.reshape(_shape_of(series)[: -1 if "S" in series[0].axes else None] + (3,) * colour)
            metadata = metadata._replace(icc=None) if page.photometric == INKS else metadata
            return ImageFile(path, pixels, colour, None, metadata)
        _check_page(series[0], page)
        _check_pages(path, series)
        samples = _read_pixels(path, file, series)
        axes = series[0].axes if len(series) == 1 else f"Q{series[0].axes}"
        brightness = _brightness(page, file, samples.shape[axes.index("S")] if "S" in axes else 1)
        marker = page.tags.valueof("GDAL_NODATA")  # text: the value of pixels that are missing
    try:
        nodata = None if marker is None else float(marker)
    except (TypeError, ValueError):
        nodata = None
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
        samples, colour, others = split_samples(np.moveaxis(samples, origin.sample_axis, -1), brightness or 1)
    pixels, missing = find_missing(samples, nodata)
    kinds = [] if others is None else [int(kind) for kind in page.extrasamples][: others.shape[-1]]
    multiplied_by = kinds.index(MULTIPLIED) if MULTIPLIED in kinds else None
    names = "C" * (origin.sample_axis is not None and brightness is None) + axes.replace("S", "")[:-2]
    return ImageFile(path, pixels, colour, others, metadata, origin, missing, multiplied_by, stack_axes=names)


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> None:
    """Write `pixels` into a copy of the TIFF that `like` came from, or else into a plain one."""
    samples = like.samples(pixels)
    if like.native is None:
        _write_plain(path, samples, like)
        return
    origin, stamp, axis, inverted = like.native
    if inverted:
        samples = np.iinfo(samples.dtype).max - samples
    if axis is not None:
        # Channels of their own were moved to the front, all others to the end.
        independent = not like.colour and like.others is None
        samples = np.moveaxis(samples, 0 if independent else -1, axis)
    shutil.copyfile(origin, path)
    if _stamp(origin) != stamp:
        raise OutputFileError(f"{origin} has changed since it was read; begin again")
    _replace_pixels(path, samples)


def _is_indirect(page: Any, file: Any) -> bool:
    """Whether samples are palette indices, inks, YCbCr or packed bits, which Pillow converts."""
    if page.photometric in (MIN_IS_WHITE, MIN_IS_BLACK):
        return page.bitspersample in (1, 2, 4) and page.samplesperpixel == 1
    narrow = page.bitspersample <= 8
    if page.photometric == Y_CB_CR and page.compression not in JPEGS:  # decoders of JPEG give RGB
        if not narrow or not _is_usual_y_cb_cr(page):
            raise ImageFileError("its colours are YCbCr of another kind than in JPEG; convert it to RGB")
        return True
    return narrow and (page.photometric == INKS or (page.photometric == PALETTE and not file.is_imagej))


def _is_usual_y_cb_cr(page: Any) -> bool:
    """Whether YCbCr has as many colours as brightnesses, and the coefficients and range of JPEG."""
    if tuple(page.subsampling or (2, 2)) != (1, 1):
        return False
    for name, usual in ("YCbCrCoefficients", LUMA), ("ReferenceBlackWhite", (0, 255, 128, 255, 128, 255)):
        numbers = page.tags.valueof(name)  # numerators and denominators in turn
        if numbers is not None and not np.allclose(np.divide(numbers[::2], numbers[1::2]), usual, atol=1e-3):
            return False
    return True


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
        transparent = samples == 2 and any(int(kind) in (MULTIPLIED, PLAIN) for kind in page.extrasamples)
        return 1 if transparent or samples == 1 else None
    raise ImageFileError(f"its colours are {getattr(page.photometric, 'name', photometric)}; convert it to RGB or grey")


def _read_metadata(page: Any) -> Metadata:
    icc, turned = page.tags.valueof(ICC_PROFILE), page.tags.valueof(ORIENTATION)
    exif = decoding.exif_of(int(turned)) if isinstance(turned, int) else None
    return Metadata(icc if isinstance(icc, bytes) and decoding.is_profile(icc) else None, exif, _dots_per_inch(page))


def _dots_per_inch(page: Any) -> tuple[float, float] | None:
    unit = INCHES.get(int(page.tags.valueof("ResolutionUnit") or 1))
    across, down = page.tags.valueof("XResolution"), page.tags.valueof("YResolution")
    try:
        return None if unit is None else decoding.valid_dpi([dots[0] / dots[1] * unit for dots in (across, down)])
    except (TypeError, IndexError, ZeroDivisionError):
        return None


def _stamp(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_size, about.st_mtime_ns


def _write_plain(path: Path, samples: NDArray[Any], like: ImageFile) -> None:
    icc, turned = like.metadata.icc, decoding.orientation_of(like.metadata.exif)
    several = like.colour or like.others is not None
    count = (samples.shape[-1] - (3 if like.colour else 1)) if several else 0
    tags: list[tuple[int, int, int, Any, bool]] = [(ICC_PROFILE, UNDEFINED, len(icc), icc, True)] if icc else []
    tags += [(ORIENTATION, SHORT, 1, turned, True)] if turned != 1 else []
    alpha = ["assocalpha" if k == like.multiplied_by else "unassalpha" for k in range(count)] or None
    tifffile.imwrite(
        path, samples, photometric="rgb" if like.colour else "minisblack", extrasamples=alpha,
        planarconfig="contig" if several else None, extratags=tags, software=False, metadata=None,
        resolution=like.metadata.dpi, resolutionunit="INCH" if like.metadata.dpi else None,
    )  # fmt: skip


def _find_series(file: Any) -> list[Any]:
    """The series of the file's image or stack; several series of one kind are a stack written image by image."""
    series = list(file.series)
    if not series:
        raise ImageFileError("it holds no image; get a fresh copy")
    kinds = {(one.shape, one.axes, one.dtype, one.keyframe.photometric, one.keyframe.bitspersample) for one in series}
    if len(kinds) > 1:
        raise ImageFileError(f"it holds {len(series)} images of different kinds; save one per file")
    for one in series:
        if len(one.levels) > 1 or one.is_multifile or any(page is None for page in one.pages):
            raise ImageFileError("it is a pyramid of sizes, lacks pages, or is one of several files; save one image")
    return series


def _pages_of(series: list[Any]) -> list[Any]:
    return [page for one in series for page in one.pages]


def _shape_of(series: list[Any]) -> tuple[int, ...]:
    """The shape of all series together."""
    shape: tuple[int, ...] = tuple(series[0].shape)
    return shape if len(series) == 1 else (len(series), *shape)


def _read_pixels(path: Path, file: Any, series: list[Any]) -> NDArray[Any]:
    """All pixels of the series, in the shape of all together."""
    pages = [page.aspage() for page in _pages_of(series)]
    for page in pages:
        if page.shaped != pages[0].shaped or page.dtype != pages[0].dtype:
            raise ImageFileError("its pages differ in size or type; save one image per file")
        _check_segments(file.filehandle, page)
    try:
        if len(series) == 1:
            return np.asarray(series[0].asarray())
        samples = np.empty(_shape_of(series), series[0].dtype)
        for place, one in zip(samples, series, strict=True):
            place[...] = one.asarray()
        return samples
    except (ValueError, ImportError) as error:
        if "imagecodecs" not in str(error) and not isinstance(error, ImportError):
            raise
    # A compression that is tifffile's with a further package only: LZW, JPEG, … Pillow knows them, for fewer types.
    page = pages[0]
    if page.dtype == np.uint8 or page.samplesperpixel == 1:
        return _read_with_pillow(path, series)
    raise _unknown(page)


def _read_converted(path: Path, pages: Sequence[Any]) -> tuple[NDArray[Any], bool]:
    """Pages of palettes, inks or few bits as colours (pages, H, W, 3) or grey (pages, H, W), and which of the two."""
    found, colour = [], False
    for page in pages:  # before Pillow reads any tag; a strip without a length is the rest of the file to it
        size = page.imagewidth * page.imagelength * 3 * len(pages)
        decoding.check_padding(size, max(page.databytecounts, default=0) or path.stat().st_size)
    with decoding.open_image(path, "TIFF") as image, decoding.silence_stderr():
        size = image.width * image.height * 3 * len(pages)
        decoding.check_size(size, path.stat().st_size)
        for page in pages:
            image.seek(page.index)
            picture = image
            if page.photometric == Y_CB_CR and page.compression == NO_COMPRESSION:  # which Pillow misreads before 12
                samples = page.asarray()
                samples = samples if samples.shape[-1] == 3 else np.moveaxis(samples, 0, -1)
                picture = Image.frombytes("YCbCr", image.size, np.ascontiguousarray(samples).tobytes())
            colour = picture.mode not in ("1", "L")
            found.append(np.asarray(picture.convert("RGB" if colour else "L")))
    return np.stack(found), colour


def _replace_pixels(path: Path, samples: NDArray[Any]) -> None:
    """Replace the pixels of the TIFF at `path` by `samples`, in the shape of all its series."""
    with tifffile.TiffFile(path, mode="r+") as file:
        series = _find_series(file)
        if _shape_of(series) != samples.shape:
            raise ImageFileError(f"{path} has the shape {_shape_of(series)}, not {samples.shape}")
        stored = series[0].dtype.newbyteorder(file.byteorder)
        pages = [page.aspage() for page in _pages_of(series)]
        pieces = samples[None] if len(series) == 1 else samples
        if all(one.dataoffset is not None for one in series):  # in one piece each, nothing else in between
            places = [(one.dataoffset, piece.nbytes) for one, piece in zip(series, pieces, strict=True)]
            if not _overlap(places, pages, file.filehandle.size):
                for (place, _), piece in zip(places, pieces, strict=True):
                    file.filehandle.seek(place)
                    for plane in piece.reshape(-1, *piece.shape[-2:]):
                        file.filehandle.write(np.ascontiguousarray(plane, stored).tobytes())
                return
        apart = samples.reshape(len(pages), -1)
        segments = [pair for page in pages for pair in zip(page.dataoffsets, page.databytecounts, strict=True)]
        in_place = not _overlap(segments, pages, file.filehandle.size)
        for page, plane in zip(pages, apart, strict=True):
            _replace_page(file, page, plane.reshape(page.shaped), stored, in_place=in_place)


def _replace_page(file: Any, page: Any, samples: NDArray[Any], stored: np.dtype[Any], *, in_place: bool) -> None:
    """Write the strips or tiles of a page: in their old places if they may and fit, else at the end of the file."""
    packed = page.compression != NO_COMPRESSION
    differences = packed and page.predictor == DIFFERENCES and stored.kind in "iu" and page.compression in DEFLATES
    offsets, lengths = list(page.dataoffsets), list(page.databytecounts)
    handle = file.filehandle
    for number, segment in enumerate(_segments(page, samples)):
        if differences:
            segment[:, 1:] -= segment[:, :-1].copy()
        data = segment.astype(stored).tobytes()
        data = zlib.compress(data) if packed else data
        if not in_place or len(data) > lengths[number]:
            offsets[number] = handle.seek(0, 2)
        lengths[number] = len(data)
        handle.seek(offsets[number])
        handle.write(data)
    tags = page.tags
    for name, values in ("Offsets", offsets), ("ByteCounts", lengths):
        tag = tags.get(f"Strip{name}") or tags[f"Tile{name}"]
        if list(np.atleast_1d(tag.value)) != values:
            tag.overwrite(values, dtype="Q" if file.is_bigtiff else "I")
    if packed and page.compression not in DEFLATES:
        tags["Compression"].overwrite(DEFLATE)
    if "Predictor" in tags and packed and not differences:
        tags["Predictor"].overwrite(NO_PREDICTOR)
    if page.photometric == Y_CB_CR:  # which decoders give as RGB, with as many colours as brightnesses
        tags["PhotometricInterpretation"].overwrite(RGB)
        for name, value in ("YCbCrSubSampling", (1, 1)), ("ReferenceBlackWhite", (0, 1, 255, 1) * 3):
            if name in tags:
                tags[name].overwrite(value)


def _segments(page: Any, samples: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The strips or tiles (rows, columns, samples) of a page of shape (planes, 1, H, W, samples), in their order."""
    planes, _, height, width, _ = samples.shape
    rows, columns = (page.tilelength, page.tilewidth) if page.is_tiled else (page.rowsperstrip, width)
    rows = rows if page.is_tiled else min(rows, height)
    for plane in range(planes):
        for top in range(0, height, rows):
            for left in range(0, width, columns):
                segment = samples[plane, 0, top : top + rows, left : left + columns]
                if page.is_tiled:  # tiles at the edges are as large as the others
                    missing = (rows - segment.shape[0], columns - segment.shape[1])
                    segment = np.pad(segment, ((0, missing[0]), (0, missing[1]), (0, 0)), mode="edge")
                yield np.array(segment)


def _read_with_pillow(path: Path, series: list[Any]) -> NDArray[Any]:
    pages = []
    keyframe = series[0].keyframe
    with decoding.open_image(path, "TIFF", sample=keyframe.dtype.itemsize) as image, decoding.silence_stderr():
        for page in _pages_of(series):
            image.seek(page.index)
            pixels = np.asarray(image)
            if pixels.dtype.newbyteorder("=") != keyframe.dtype.newbyteorder("="):
                raise _unknown(keyframe)
            if keyframe.photometric not in (RGB, Y_CB_CR) and pixels.ndim > 2:
                raise ImageFileError(f"its compression {_name(keyframe)} does not go with its kind of pixels")
            pages.append(np.moveaxis(pixels, -1, 0) if keyframe.shaped[0] > 1 else pixels)
    return np.stack(pages).reshape(_shape_of(series))


def _unknown(page: Any) -> ImageFileError:
    return ImageFileError(
        f"its compression {_name(page)} is beyond what is installed: pip install imagecodecs, or save it without "
        "compression"
    )


def _name(page: Any) -> str:
    return str(getattr(page.compression, "name", page.compression))


def _check_directories(path: Path) -> None:
    """Refuse a file whose directories form a cycle or overlap, which some readers would follow for ever."""
    with path.open("rb") as file:
        order = "<" if file.read(2) == b"II" else ">"

        def number(letter: str) -> int | None:
            kind = struct.Struct(f"{order}{letter}")
            data = file.read(kind.size)
            return int(kind.unpack(data)[0]) if len(data) == kind.size else None

        if (kind := number("H")) not in ENTRY:
            raise ImageFileError("its header is damaged; get a fresh copy")
        count_type, offset_type = ("H", "I") if kind == CLASSIC else ("Q", "Q")
        file.seek(0 if kind == CLASSIC else 4, 1)
        seen: set[int] = set()
        size, taken = path.stat().st_size, 0
        while place := number(offset_type):
            if place in seen:
                raise ImageFileError("its directories lead back to one another; get a fresh copy")
            seen.add(place)
            file.seek(place)
            count = number(count_type)
            if count is None or count > MOST_TAGS:
                return  # cut short: what there is may still be whole
            taken += count * ENTRY[kind]
            if taken > size:
                raise ImageFileError("its directories lie upon one another; get a fresh copy")
            file.seek(count * ENTRY[kind], 1)


def _check_pages(path: Path, series: list[Any]) -> None:
    """Refuse series that declare more pixels than the file can hold, or whose compressed pixels are more than that."""
    size = path.stat().st_size
    declared, expansion = 0, 1
    for one in series:
        page = one.keyframe
        packed = page.compression != NO_COMPRESSION
        own = decoding.EXPANSION if packed else 1
        expansion = max(expansion, own)
        declared += prod(map(int, one.shape)) * one.dtype.itemsize
        if page.is_tiled:
            tile = page.tilewidth * page.tilelength * page.tiledepth * page.samplesperpixel * one.dtype.itemsize
            decoding.check_size(tile, size if packed else max(size, decoding.SMALL), own)
    decoding.check_size(declared, size, expansion)


def _check_segments(file: BinaryIO, page: Any) -> None:
    """Refuse strips or tiles that are far longer than declared, or inflate to that, before they are read."""
    rows, columns = (page.tilelength, page.tilewidth) if page.is_tiled else (page.rowsperstrip, page.imagewidth)
    expected = min(rows, max(page.imagelength, page.tilelength)) * columns * page.samplesperpixel * page.dtype.itemsize
    decoding.check_padding(expected, max(page.databytecounts, default=0))
    if page.compression not in DEFLATES:
        return
    for place, length in zip(page.dataoffsets, page.databytecounts, strict=False):
        if length * decoding.EXPANSION > expected + HARMLESS:
            file.seek(place)
            decoding.check_inflated(file.read(length), expected)


def _overlap(segments: list[tuple[int, int]], pages: list[Any], size: int) -> bool:
    """Whether `segments` (place, length) share bytes with one another or with directories, or lie outside the file."""
    spans = sorted((place, place + length) for place, length in segments if length)
    if not spans:
        return False
    if any(one[1] > other[0] for one, other in pairwise(spans)) or spans[-1][1] > size:
        return True
    head, entry = (16, 20) if pages[0].parent.is_bigtiff else (8, 12)
    held = [(0, head)]
    for page in pages:
        held.append((page.offset, page.offset + head + entry * len(page.tags)))
        held += [(tag.valueoffset, tag.valueoffset + tag.valuebytecount) for tag in page.tags]
    for first, last in held:
        before = bisect_left(spans, (last, 0))
        if last > first and before and spans[before - 1][1] > first:
            return True
    return False
