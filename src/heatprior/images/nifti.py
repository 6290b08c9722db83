"""NIfTI, by nibabel: volumes and series as stacks (…, z, y, x) of slices; scl_slope, scl_inter and the header stay."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import nibabel
import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError
from heatprior.images.decoding import check_padding, check_size
from heatprior.images.model import ImageFile, Scale, check_type, find_missing

GZIP = b"\x1f\x8b"
EXPANSION = 1032  # of deflate
SHORTEST = 540  # bytes of the longer header without extensions
LONGEST_REST = 1 << 20  # of what is behind a volume


class Origin(NamedTuple):
    """What stands before and after the volume, byte for byte, and how its numbers are stored."""

    before: bytes
    after: bytes
    scale: Scale


def read(path: Path) -> ImageFile:
    """Read a volume in its units; x is the column of a slice, y its row."""
    content = _read_content(path)
    header = _header(content)
    size, start = _size(header), int(header.get_data_offset())
    check_size(size, len(content) - start, expansion=1)
    shape = header.get_data_shape()[::-1]
    if len(shape) < 2 or min(shape) < 1:
        raise ImageFileError(f"it holds an array {shape}, no images; expected two axes or more")
    check_type(header.get_data_dtype())
    slope, intercept = header.get_slope_inter()
    scale = Scale.of(header.get_data_dtype(), 1.0 if slope is None else slope, 0.0 if slope is None else intercept)
    stored = np.frombuffer(content, scale.dtype, math.prod(shape), start).reshape(shape)
    pixels, missing = find_missing(np.array(scale.values(stored)))
    origin = Origin(content[:start], content[start + size :], scale)
    names = "QQQTZ"[5 - (len(shape) - 2) :] if len(shape) <= 7 else ""
    return ImageFile(path, pixels, False, native=origin, missing=missing, stack_axes=names)


def write(path: Path, pixels: NDArray[Any], like: ImageFile) -> NDArray[Any]:
    """Write `pixels` under the header of the file that `like` came from, or under a plain one."""
    scale: Scale
    if like.native is not None:
        before, after, scale = like.native
        stored = scale.encode(pixels)
        content = before + stored.tobytes() + after
    else:
        scale, stored = Scale.of(pixels.dtype), pixels
        content = nibabel.Nifti1Image(pixels.T, np.eye(4)).to_bytes()
    path.write_bytes(gzip.compress(content, 6, mtime=0) if path.suffix.lower() == ".gz" else content)
    return scale.read_back(stored, like.missing)


def _read_content(path: Path) -> bytes:
    """The bytes of a file, unpacked if need be, but first the header alone, which tells how large its volume is."""
    stored = path.stat().st_size
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
        file.seek(0)
        header = _header(_unpack(file, SHORTEST) if packed else file.read(SHORTEST))
        announced = _size(header) + int(header.get_data_offset())
        check_padding(announced, stored)
        file.seek(0)
        if not packed:
            return file.read()
        check_size(announced, stored, EXPANSION)
        return _unpack(file, announced + LONGEST_REST)


def _unpack(file: BinaryIO, most: int) -> bytes:
    """Unpack the first bytes of a packed file."""
    with gzip.GzipFile(fileobj=file) as packed:
        return packed.read(most)


def _header(content: bytes) -> Any:
    kind = nibabel.Nifti2Header if b"n+2\0" in content[:16] else nibabel.Nifti1Header
    header = kind(content[: kind.sizeof_hdr], check=False)
    if not header.is_single:
        raise ImageFileError("its pixels are in another file (.img); save it as one")
    return header


def _size(header: Any) -> int:
    """Bytes of the volume."""
    if min(header.get_data_shape(), default=0) < 0 or header.get_data_offset() < header.single_vox_offset:
        raise ImageFileError("its header is damaged; get a fresh copy")
    return int(math.prod(header.get_data_shape())) * int(header.get_data_dtype().itemsize)
