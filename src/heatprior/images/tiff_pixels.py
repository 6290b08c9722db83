"""The pixels inside a TIFF: reading them with whatever can decode them, and replacing them where they are."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError
from heatprior.images.limits import check_size
from heatprior.images.pillow import opened, silent_stderr
from heatprior.images.tiff_layout import DEFLATES, NO_COMPRESSION, check_segments, overlap

DEFLATE = 8
NO_PREDICTOR, DIFFERENCES = 1, 2
COMPRESSION, PHOTOMETRIC, PREDICTOR = 259, 262, 317
STRIP_OFFSETS, STRIP_LENGTHS, TILE_OFFSETS, TILE_LENGTHS = 273, 279, 324, 325
RGB, Y_CB_CR = 2, 6


def alike(file: Any) -> list[Any]:
    """The one image or stack of the file; several series that are alike are a stack written picture by picture."""
    series = list(file.series)
    if not series:
        raise ImageFileError("it holds no image; get a fresh copy")
    kinds = {(one.shape, one.axes, one.dtype, one.keyframe.photometric, one.keyframe.bitspersample) for one in series}
    if len(kinds) > 1:
        raise ImageFileError(f"it holds {len(series)} images of different kinds; save one per file")
    for one in series:
        if len(one.levels) > 1 or one.is_multifile or any(page is None for page in one.pages):
            raise ImageFileError(
                "it is a pyramid of sizes, lacks pages, or is one of several files; save it as one image"
            )
    return series


def shape_of(series: list[Any]) -> tuple[int, ...]:
    """The shape of all series together."""
    shape: tuple[int, ...] = tuple(series[0].shape)
    return shape if len(series) == 1 else (len(series), *shape)


def axes_of(series: list[Any]) -> str:
    """The axes of all series together."""
    return str(series[0].axes) if len(series) == 1 else f"Q{series[0].axes}"


def read(path: Path, file: Any, series: list[Any]) -> NDArray[Any]:
    """All pixels of the series, in the shape of all together."""
    pages = [page.aspage() for one in series for page in one.pages]
    for page in pages:
        if page.shaped != pages[0].shaped or page.dtype != pages[0].dtype:
            raise ImageFileError("its pages differ in size or type; save one image per file")
        check_segments(file.filehandle, page)
    try:
        if len(series) == 1:
            return np.asarray(series[0].asarray())
        samples = np.empty(shape_of(series), series[0].dtype)
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


def read_converted(path: Path, pages: Sequence[Any]) -> tuple[NDArray[Any], bool]:
    """Pages of palettes, inks or few bits as colours (pages, H, W, 3) or grey (pages, H, W), and which of the two."""
    found, colour = [], False
    with opened(path, "TIFF") as image, silent_stderr():
        size = image.width * image.height * 3 * len(pages)
        check_size(size, path.stat().st_size)
        for page in pages:
            image.seek(page.index)
            colour = image.mode not in ("1", "L")
            found.append(np.asarray(image.convert("RGB" if colour else "L")))
    return np.stack(found), colour


def replace(path: Path, samples: NDArray[Any]) -> None:
    """Put `samples`, in the shape of all its series, in the place of the pixels of the TIFF at `path`."""
    from tifffile import TiffFile  # noqa: PLC0415 (slow to import)

    with TiffFile(path, mode="r+") as file:
        series = alike(file)
        if shape_of(series) != samples.shape:
            raise ImageFileError(f"{path} has the shape {shape_of(series)}, not {samples.shape}")
        stored = series[0].dtype.newbyteorder(file.byteorder)
        pages = [page.aspage() for one in series for page in one.pages]
        pieces = samples[None] if len(series) == 1 else samples
        if all(one.dataoffset is not None for one in series):  # in one piece each, nothing else in between
            places = [(one.dataoffset, piece.nbytes) for one, piece in zip(series, pieces, strict=True)]
            if not overlap(places, pages, file.filehandle.size):
                for (place, _), piece in zip(places, pieces, strict=True):
                    _put(file.filehandle, place, piece, stored)
                return
        apart = samples.reshape(len(pages), -1)
        segments = [pair for page in pages for pair in zip(page.dataoffsets, page.databytecounts, strict=True)]
        in_place = not overlap(segments, pages, file.filehandle.size)
        for page, plane in zip(pages, apart, strict=True):
            _replace_page(file, page, plane.reshape(page.shaped), stored, in_place=in_place)


def _put(handle: Any, place: int, samples: NDArray[Any], stored: np.dtype[Any]) -> None:
    handle.seek(place)
    for plane in samples.reshape(-1, *samples.shape[-2:]):
        handle.write(np.ascontiguousarray(plane, stored).tobytes())


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
    _overwrite(tags, STRIP_OFFSETS, TILE_OFFSETS, offsets, file)
    _overwrite(tags, STRIP_LENGTHS, TILE_LENGTHS, lengths, file)
    if packed and page.compression not in DEFLATES:
        tags[COMPRESSION].overwrite(DEFLATE)
    if PREDICTOR in tags and packed and not differences:
        tags[PREDICTOR].overwrite(NO_PREDICTOR)
    if page.photometric == Y_CB_CR:  # which decoders give as RGB
        tags[PHOTOMETRIC].overwrite(RGB)


def _overwrite(tags: Any, strips: int, tiles: int, values: list[int], file: Any) -> None:
    tag = tags[strips] if strips in tags else tags[tiles]
    if list(np.atleast_1d(tag.value)) != values:
        tag.overwrite(values, dtype="Q" if file.is_bigtiff else "I")


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
    with opened(path, "TIFF", sample=keyframe.dtype.itemsize) as image, silent_stderr():
        for page in (page for one in series for page in one.pages):
            image.seek(page.index)
            pixels = np.asarray(image)
            if pixels.dtype.newbyteorder("=") != keyframe.dtype.newbyteorder("="):
                raise _unknown(keyframe)
            if keyframe.photometric not in (RGB, Y_CB_CR) and pixels.ndim > 2:
                raise ImageFileError(f"its compression {_name(keyframe)} does not go with its kind of pixels")
            pages.append(np.moveaxis(pixels, -1, 0) if keyframe.shaped[0] > 1 else pixels)
    return np.stack(pages).reshape(shape_of(series))


def _unknown(page: Any) -> ImageFileError:
    return ImageFileError(
        f"its compression {_name(page)} is beyond what is installed: pip install imagecodecs, or save it without "
        "compression"
    )


def _name(page: Any) -> str:
    return str(getattr(page.compression, "name", page.compression))
