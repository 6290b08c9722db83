"""The pixels inside a TIFF: reading them with whatever can decode them, and replacing them where they are."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError

NO_COMPRESSION, DEFLATE = 1, 8
DEFLATES = (DEFLATE, 32946)  # two numbers for the same
NO_PREDICTOR, DIFFERENCES = 1, 2
COMPRESSION, PHOTOMETRIC, PREDICTOR = 259, 262, 317
STRIP_OFFSETS, STRIP_LENGTHS, TILE_OFFSETS, TILE_LENGTHS = 273, 279, 324, 325
RGB, Y_CB_CR = 2, 6


def read(path: Path, series: Any) -> NDArray[Any]:
    """All pixels of a series of pages, in the shape of the series."""
    try:
        return np.asarray(series.asarray())
    except (ValueError, ImportError) as error:
        if "imagecodecs" not in str(error) and not isinstance(error, ImportError):
            raise
    # A compression that is tifffile's with a further package only: LZW, JPEG, … Pillow knows them, for fewer types.
    page = series.keyframe
    if page.dtype == np.uint8 or (page.dtype.newbyteorder("=") == np.uint16 and page.samplesperpixel == 1):
        return _read_with_pillow(path, series)
    raise ImageFileError(
        f"its compression {page.compression.name} is beyond what is installed: pip install imagecodecs, or save it "
        "without compression"
    )


def replace(path: Path, samples: NDArray[Any]) -> None:
    """Put `samples`, in the shape of its only series, in the place of the pixels of the TIFF at `path`."""
    from tifffile import TiffFile  # noqa: PLC0415 (slow to import)

    with TiffFile(path, mode="r+") as file:
        series: Any = file.series[0]
        if series.shape != samples.shape:
            raise ImageFileError(f"{path} has the shape {series.shape}, not {samples.shape}")
        stored = series.dtype.newbyteorder(file.byteorder)
        if series.dataoffset is not None:  # in one piece, nothing else in between
            file.filehandle.seek(series.dataoffset)
            for plane in samples.reshape(-1, *samples.shape[-2:]):
                file.filehandle.write(np.ascontiguousarray(plane, stored).tobytes())
            return
        pages = [page.aspage() for page in series.pages]
        for page, plane in zip(pages, samples.reshape(len(pages), -1), strict=True):
            _replace_page(file, page, plane.reshape(page.shaped), stored)


def _replace_page(file: Any, page: Any, samples: NDArray[Any], stored: np.dtype[Any]) -> None:
    """Write the strips or tiles of a page: in their old places if they fit, else at the end of the file."""
    packed = page.compression != NO_COMPRESSION
    differences = packed and page.predictor == DIFFERENCES and stored.kind == "u" and page.compression in DEFLATES
    offsets, lengths = list(page.dataoffsets), list(page.databytecounts)
    handle = file.filehandle
    for number, segment in enumerate(_segments(page, samples)):
        if differences:
            segment[:, 1:] -= segment[:, :-1].copy()
        data = segment.astype(stored).tobytes()
        data = zlib.compress(data) if packed else data
        if len(data) > lengths[number]:
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


def _read_with_pillow(path: Path, series: Any) -> NDArray[Any]:
    from PIL import Image  # noqa: PLC0415

    pages = []
    with Image.open(path) as image:
        for page in series.pages:
            image.seek(page.index)
            pixels = np.asarray(image)
            if page.photometric not in (RGB, Y_CB_CR) and pixels.ndim > 2:
                raise ImageFileError(f"its compression {page.compression.name} does not go with its kind of pixels")
            pages.append(np.moveaxis(pixels, -1, 0) if page.shaped[0] > 1 else pixels)
    return np.stack(pages).reshape(series.shape).astype(series.dtype.newbyteorder("="), copy=False)
