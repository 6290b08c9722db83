"""FITS, by astropy: one image or cube among whatever else the file holds; BSCALE, BZERO and BLANK as they are meant."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from astropy.io import fits
from numpy.typing import NDArray

from heatprior.errors import ImageFileError
from heatprior.images.decoding import ROOM, check_size, describe_size
from heatprior.images.model import ImageFile, Origin, Scale, find_missing

TYPES = {8: ">u1", 16: ">i2", 32: ">i4", -32: ">f4", -64: ">f8"}  # by BITPIX
CARD, BLOCK = 80, 2880  # bytes of a line of a header, and of what all lengths are multiples of
LENGTHS = re.compile(rb"(BITPIX|NAXIS[0-9]{0,3}|PCOUNT|GCOUNT) *= *([+-]?[0-9]{1,70})", re.IGNORECASE)
MOST_AXES = 999
MOST_PARTS = 1000
LONGEST_HEADER = 1000 * BLOCK
SCIENCE, ERRORS = "SCI", "ERR"  # what observatories call an image and its standard deviation
CHECKSUMS = ("CHECKSUM", "DATASUM")


def read(path: Path) -> ImageFile:
    """Read the only image of the file, or the one called SCI: (…, H, W), as astropy has the axes."""
    _check_parts(path)
    with fits.open(path, memmap=False, lazy_load_hdus=False, do_not_scale_image_data=True) as parts:
        number, header = _find_image(parts)
        errors = _find_errors(parts, header)
        slope, intercept = _number(header, "BSCALE", 1.0), _number(header, "BZERO", 0.0)
        scale = Scale.of(np.dtype(TYPES[header["BITPIX"]]), slope, intercept)
        check_size(math.prod(_sides(header)) * scale.dtype.itemsize, path.stat().st_size, expansion=1)
        stored = np.asarray(parts[number].data)
        blank = header.get("BLANK") if scale.dtype.kind != "f" else None
    nodata = None if blank is None else scale.number(float(blank))
    pixels, missing = find_missing(np.ascontiguousarray(scale.values(stored)), nodata)
    return ImageFile(path, pixels, False, native=Origin(path.resolve(), scale, number), missing=missing, sigma=errors)


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> NDArray[Any] | None:
    """Write `pixels` into a copy of the file that `like` came from, or else into one of its own."""
    if like.native is None:
        fits.PrimaryHDU(pixels).writeto(path, overwrite=True)
        return None
    origin: Origin = like.native
    stored = origin.scale.encode(pixels)
    shutil.copyfile(origin.path, path)
    with fits.open(path, memmap=False, do_not_scale_image_data=True) as parts:
        place = parts[origin.part].fileinfo()["datLoc"]
        sums = any(name in parts[origin.part].header for name in CHECKSUMS)
    with path.open("r+b") as file:
        file.seek(place)
        file.write(stored.tobytes())
    if sums:
        with fits.open(path, mode="update", memmap=False, do_not_scale_image_data=True) as parts:
            parts[origin.part].add_checksum()
    return origin.scale.read_back(stored, like.missing)


def _check_parts(path: Path) -> None:
    """Refuse what astropy would not come to the end of: lengths below zero, which lead backwards, and a long rest."""
    with path.open("rb") as file:
        stored = path.stat().st_size
        if stored <= ROOM:
            _find_lengths(file.read())
            return
        for _ in range(MOST_PARTS):
            header = _read_header(file)
            if header is None:
                break
            file.seek(-(-_length_of_data(header) // BLOCK) * BLOCK, 1)  # whole blocks
        parts = file.tell()
    if stored > parts + ROOM:
        raise ImageFileError(
            f"it is a file of {describe_size(stored)} but its parts have {describe_size(parts)}; save the image alone"
        )


def _read_header(file: BinaryIO) -> bytes | None:
    """The next header; None, and the file as it was, if there is none."""
    start, header = file.tell(), b""
    while len(header) < LONGEST_HEADER and len(block := file.read(BLOCK)) == BLOCK:
        header += block
        if not header.startswith((b"SIMPLE  =", b"XTENSION=")):
            break
        if any(block[place : place + 8].rstrip() == b"END" for place in range(0, BLOCK, CARD)):
            return header
    file.seek(start)
    return None


def _length_of_data(header: bytes) -> int:
    """Bytes behind a header: |BITPIX| / 8 · GCOUNT · (PCOUNT + NAXIS1 · NAXIS2 ⋯)."""
    found = _find_lengths(header)
    sides = [found.get(f"NAXIS{axis}", 0) for axis in range(1, found.get("NAXIS", 0) + 1)]
    if len(sides) > 1 and sides[0] == 0:  # random groups
        sides = sides[1:]
    pixels = math.prod(sides) if sides else 0
    return abs(found.get("BITPIX", 8)) // 8 * found.get("GCOUNT", 1) * (found.get("PCOUNT", 0) + pixels)


def _find_lengths(content: bytes) -> dict[str, int]:
    """The first of the lengths of each name; ones that cannot be are refused."""
    lengths: dict[str, int] = {}
    for found in LENGTHS.finditer(content):
        name, value = found[1].decode().upper(), int(found[2])
        if found.start() % CARD:
            continue
        if (value < 0 and name != "BITPIX") or (name == "NAXIS" and value > MOST_AXES):
            raise ImageFileError(
                f"its {name} is {value}; expected no less than 0, and at most {MOST_AXES} axes; get a fresh copy"
            )
        lengths.setdefault(name, value)
    return lengths


def _find_image(parts: Any) -> tuple[int, Any]:
    found = []
    for number, part in enumerate(parts):
        if isinstance(part, fits.CompImageHDU):
            raise ImageFileError("its image is compressed; unpack it, as with funpack")
        if isinstance(part, fits.PrimaryHDU | fits.ImageHDU) and part.header.get("NAXIS", 0) > 0:
            found.append((number, part.header))
    science = [one for one in found if _name(one[1]) == SCIENCE]
    found = science if len(found) > 1 and len(science) == 1 else found
    if len(found) != 1:
        raise ImageFileError(f"it holds {len(found)} images; save one per file, or call one {SCIENCE}")
    number, header = found[0]
    if header.get("BITPIX") not in TYPES:
        raise ImageFileError(f"its BITPIX is {header.get('BITPIX')}; expected one of {', '.join(map(str, TYPES))}")
    if header["NAXIS"] < 2 or min(_sides(header)) < 1:
        raise ImageFileError("it holds a line or nothing, no image; expected two axes or more")
    return number, header


def _sides(header: Any) -> list[int]:
    return [header[f"NAXIS{axis}"] for axis in range(1, header.get("NAXIS", 0) + 1)]


def _name(header: Any) -> str:
    return str(header.get("EXTNAME", "")).strip().upper()


def _find_errors(parts: Any, science: Any) -> NDArray[Any] | None:
    """The standard deviation of every pixel, if the file has it beside its image: an extension of floats called ERR."""
    for part in parts:
        header = part.header
        if _name(header) != ERRORS or header.get("BITPIX", 0) >= 0 or _sides(header) != _sides(science):
            continue
        levels = np.array(part.data, np.float64) * _number(header, "BSCALE", 1.0)
        known = np.isfinite(levels) & (levels > 0)
        return np.where(known, levels, np.median(levels[known])) if known.any() else None
    return None


def _number(header: Any, name: str, default: float) -> float:
    value = header.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ImageFileError(f"its {name} is {value!r}, no number; get a fresh copy")
    return float(value)
