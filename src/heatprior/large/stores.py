"""Stores of arrays on disk: what of one is to be denoised, and a second one like it, with all but those pixels.

A zarr array out is the array in with other chunks: its metadata files are copied byte by byte, so that chunks, shards,
codecs, attributes, axes, scales, units and `omero` are what they were. What is not denoised (labels, tables) is copied.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import zarr

from heatprior.errors import ImageFileError
from heatprior.large.ngff import attributes_of_image, multiscale_of
from heatprior.large.pyramid import shapes_of_levels
from heatprior.large.tiff import TiffSource
from heatprior.pixels.inputs import WHITES

METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
TIFF = (".tif", ".tiff", ".btf", ".tf8")
CHUNK = 1024  # rows and columns of a chunk of a new array


class Image(NamedTuple):
    """One image of a store: the paths of its levels below the store, finest first, and its axes if they are named."""

    levels: tuple[str, ...]
    axes: tuple[str, ...] | None
    in_colour: bool = False


def is_store(path: Path) -> bool:
    """Whether this is a zarr array or group on disk."""
    return path.is_dir() and any((path / name).is_file() for name in METADATA)


def images_of(path: Path) -> list[Image]:
    """What is to be denoised: the image of an OME-Zarr, an array, every array of a group that may be one; or a TIFF."""
    if path.suffix.lower() in TIFF:
        source = opened(path, "")
        if source.dtype.newbyteorder("=") not in WHITES:
            raise ImageFileError(f"{path} is of type {source.dtype}; expected {', '.join(map(str, WHITES))}")
        return [Image(_names(source.shape), tuple(source.axes), source.in_colour)]
    if not is_store(path):
        raise ImageFileError(f"cannot read {path}: it is no zarr array or group, and no TIFF")
    found = list(_images_below(path, ""))
    if not found:
        raise ImageFileError(f"{path} holds no array (..., H, W) of {', '.join(map(str, WHITES))}")
    return found


def _images_below(path: Path, name: str) -> Iterator[Image]:
    node = opened(path, name)
    if isinstance(node, zarr.Array):
        if node.ndim >= 2 and node.size and node.dtype.newbyteorder("=") in WHITES:
            yield Image((name,), None)
        return
    if (multiscale := multiscale_of(dict(node.attrs), str(path / name) if name else str(path))) is not None:
        levels = tuple(f"{name}/{level}".lstrip("/") for level in multiscale.paths)
        for level in levels:
            array = opened(path, level)
            if array.ndim != len(multiscale.axes) or array.dtype.newbyteorder("=") not in WHITES:
                raise ImageFileError(
                    f"{path / level} is {array.dtype} {array.shape} but its axes are {', '.join(multiscale.axes)}"
                )
        yield Image(levels, multiscale.axes)
        return
    for member in sorted(node.keys()):
        yield from _images_below(path, f"{name}/{member}".lstrip("/"))


def opened(path: Path, name: str, mode: Literal["r", "r+"] = "r") -> Any:
    """An array or a group; a TIFF as an array. Kept open by every worker for as long as it stays the same."""
    node = path / name if name and path.suffix.lower() not in TIFF else path
    files = (node, *(node / file for file in METADATA))
    return _opened(node, mode, max((file.stat().st_mtime_ns for file in files if file.exists()), default=0))


@lru_cache(maxsize=16)
def _opened(path: Path, mode: Literal["r", "r+"], _: int) -> Any:
    if path.suffix.lower() in TIFF:
        return TiffSource(path)
    try:
        return zarr.open(path, mode=mode)
    except Exception as error:  # of whatever type zarr has for metadata that it does not take
        why = " ".join(str(error).split())[:200]
        raise ImageFileError(f"cannot read {path}: {type(error).__name__}: {why}") from error


def make_like(path: Path, images: list[Image], target: Path) -> None:
    """A store at `target` like that at `path`, in which the pixels of `images` are still to be written."""
    if path.suffix.lower() in TIFF:
        _make_from_tiff(opened(path, ""), target, path.name.split(".")[0])
        return
    _copy(path, target, {path / level if level else path for image in images for level in image.levels})


def _copy(folder: Path, target: Path, without_chunks: set[Path]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for entry in sorted(folder.iterdir()):
        if entry.is_file() and (entry.name in METADATA or folder not in without_chunks):
            shutil.copyfile(entry, target / entry.name)
        elif entry.is_dir() and folder not in without_chunks:
            _copy(entry, target / entry.name, without_chunks)


def _names(shape: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(str(number) for number in range(len(shapes_of_levels(shape))))


def _make_from_tiff(source: TiffSource, target: Path, name: str) -> None:
    shapes = shapes_of_levels(source.shape)
    scale = source.scale()
    scales = [
        [scale[axis] * (full / length) for axis, full, length in zip(source.axes, source.shape, shape, strict=True)]
        for shape in shapes
    ]
    attributes = attributes_of_image(name, source.axes, source.units(), scales, source.channels())
    group = zarr.create_group(target, zarr_format=3, attributes=attributes)
    for number, shape in enumerate(shapes):
        chunks = [
            length if axis == "c" and source.in_colour else min(length, CHUNK) if axis in "yx" else 1
            for axis, length in zip(source.axes, shape, strict=True)
        ]
        group.create_array(
            str(number), shape=shape, dtype=source.dtype, chunks=tuple(chunks), dimension_names=tuple(source.axes)
        )


def fingerprint(path: Path, images: list[Image]) -> dict[str, Any]:
    """What must be the same for a run to be taken up again: the metadata of the source, or a TIFF's size and time."""
    if path.suffix.lower() in TIFF:
        about = path.stat()
        return {"source": str(path.absolute()), "size": about.st_size, "time": about.st_mtime_ns}
    files = {
        str(file.relative_to(path)): file.read_text()
        for folder in {path, *(path / level for image in images for level in image.levels)}
        for name in METADATA
        if (file := folder / name).is_file()
    }
    return {"source": str(path.absolute()), "metadata": json.dumps(files, sort_keys=True)}


def write_unit(array: Any) -> tuple[int, ...]:
    """The least that is written at a time: a shard, or a chunk."""
    return tuple(int(n) for n in (array.shards or array.chunks))


def as_index(block: tuple[slice, ...]) -> str:
    """A block in words: 0, 3, 0:1024, 2048:4096."""
    return ", ".join(
        str(place.start) if place.stop - place.start == 1 else f"{place.start}:{place.stop}" for place in block
    )


def read(path: Path, name: str, index: tuple[slice, ...]) -> np.ndarray[Any, Any]:
    """Pixels of an array; whatever a codec complains about, in one line that says where."""
    array = opened(path, name)
    try:
        return np.asarray(array[index])
    except MemoryError:
        raise
    except Exception as error:
        why = " ".join(str(error).split())[:200]
        raise ImageFileError(
            f"cannot read [{as_index(index)}] of {path / name}: {type(error).__name__}: {why}; restore that chunk"
        ) from error
