"""What is on disk: zarr stores, OME-Zarr metadata (OME-NGFF 0.1 to 0.5), levels of a pyramid, big TIFF as a source.

A zarr array out is the array in with other chunks: its metadata files are copied byte by byte, so that chunks, shards,
codecs, attributes, axes, scales, units and `omero` are what they were. What is not denoised (labels, tables) is copied.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple
from weakref import finalize

import numpy as np
import tifffile
import zarr
from numpy.typing import NDArray

from heatprior.border.pixels import TYPE_NAMES, WHITES, integer_limits
from heatprior.errors import ImageFileError
from heatprior.large.blocks import squares_of_channel
from heatprior.locks import cached_property

METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
TIFF = (".tif", ".tiff", ".btf", ".tf8")
CHUNK = 1024  # rows and columns of a chunk of a new array
CHUNKS = re.compile(r"(c|(c[/.])?\d+([/.]\d+)*)(\..*partial)?")  # paths below an array, of any layout; also cut short
BESIDE = ("METADATA.ome.xml",)  # what converters put into the groups of a store
ORDER = "tczyx"  # of axes, wherever they are all there
TYPES = {"t": "time", "c": "channel", "z": "space", "y": "space", "x": "space"}
VERSION = "0.5"  # that is written where there is none to keep
SMALLEST = 512  # pixels: a new image gets levels until it is no larger than this
UNITS = {  # of OME-TIFF → of OME-Zarr
    "µm": "micrometer", "um": "micrometer", "nm": "nanometer", "mm": "millimeter", "cm": "centimeter", "m": "meter",
    "pm": "picometer", "Å": "angstrom", "s": "second", "ms": "millisecond", "µs": "microsecond", "min": "minute",
}  # fmt: skip
OF_AXIS = {"x": "PhysicalSizeX", "y": "PhysicalSizeY", "z": "PhysicalSizeZ", "t": "TimeIncrement"}
USUAL_UNIT = {"x": "µm", "y": "µm", "z": "µm", "t": "s"}  # where none is given, as the OME schema has it
SPARE = {"I": "tz", "Q": "zt", "R": "tz"}  # axes without a meaning of their own: what they may stand for


class Image(NamedTuple):
    """One image of a store: the paths of its levels below the store, finest first, and its axes if they are named."""

    levels: tuple[str, ...]
    axes: tuple[str, ...] | None
    in_colour: bool = False

    @property
    def channel_axis(self) -> int | None:
        """The axis of channels, if the axes are named and it is among them."""
        return self.axes.index("c") if self.axes and "c" in self.axes else None


def is_store(path: Path) -> bool:
    """Whether `path` is a zarr array or group on disk."""
    return path.is_dir() and any((path / name).is_file() for name in METADATA)


def find_foreign(path: Path) -> Path | None:
    """Find the first thing in a store that is no part of it, such as a store that was put there; None if all is."""
    array: Path | None = None
    for name, folders, files in os.walk(path):
        folder = Path(name)
        if array is None or not folder.is_relative_to(array):
            array = folder if _is_array(folder) else None
        for entry in sorted((*folders, *files)):
            found = folder / entry
            is_chunk = array is not None and CHUNKS.fullmatch(found.relative_to(array).as_posix())
            is_part = is_chunk or entry in (*METADATA, *BESIDE) or (entry in folders and found.suffix != ".zarr")
            if found.is_symlink() or not is_part:
                return found
    return None


def _is_array(folder: Path) -> bool:
    """Whether the metadata in a folder is that of an array."""
    if (folder / ".zarray").is_file():
        return True
    try:
        about = json.loads((folder / "zarr.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(about, dict) and about.get("node_type") == "array"


def find_images(path: Path) -> list[Image]:
    """Find what is to be denoised: the image of an OME-Zarr, an array, all arrays of a group that may be, or a TIFF."""
    if path.suffix.lower() in TIFF:
        source = open_node(path, "")
        if source.dtype.newbyteorder("=") not in WHITES:
            raise ImageFileError(f"{path} is of type {source.dtype}; expected {TYPE_NAMES}")
        levels = tuple(map(str, range(len(shapes_of_levels(source.shape)))))
        return [Image(levels, tuple(source.axes), source.in_colour)]
    if not is_store(path):
        raise ImageFileError(f"cannot read {path}: it is neither a zarr array or group nor a TIFF")
    found = list(_images_below(path, ""))
    if not found:
        raise ImageFileError(f"{path} holds no array (..., H, W) of {TYPE_NAMES}")
    return found


def _images_below(path: Path, name: str) -> Iterator[Image]:
    node = open_node(path, name)
    if isinstance(node, zarr.Array):
        if node.ndim >= 2 and node.size and node.dtype.newbyteorder("=") in WHITES:
            yield Image((name,), None)
        return
    if (multiscale := parse_multiscale(dict(node.attrs), str(path / name) if name else str(path))) is not None:
        axes = multiscale.axes or ()
        levels = tuple(f"{name}/{level}".lstrip("/") for level in multiscale.levels)
        for level in levels:
            array = open_node(path, level)
            if array.ndim != len(axes) or array.dtype.newbyteorder("=") not in WHITES:
                raise ImageFileError(
                    f"{path / level} is {array.dtype} {array.shape} but its axes are {', '.join(axes)}"
                )
        yield Image(levels, axes)
        return
    with _explain_errors(path / name):
        members = sorted(node.keys())
    for member in members:
        yield from _images_below(path, f"{name}/{member}".lstrip("/"))


def open_node(path: Path, name: str, mode: Literal["r", "r+"] = "r") -> Any:
    """Open an array, a group, or a TIFF as an array; kept open by every worker while it stays unchanged."""
    node = path / name if name and path.suffix.lower() not in TIFF else path
    files = (node, *(node / file for file in METADATA))
    return _open_cached(node, mode, max((file.stat().st_mtime_ns for file in files if file.exists()), default=0))


@lru_cache(maxsize=16)
def _open_cached(path: Path, mode: Literal["r", "r+"], _: int) -> Any:
    if path.suffix.lower() in TIFF:
        return TiffSource(path)
    with _explain_errors(path):
        return zarr.open(path, mode=mode)


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # of whatever type zarr has for metadata that it does not take
        why = " ".join(str(error).split())[:200]
        raise ImageFileError(f"cannot read {path}: {type(error).__name__}: {why}") from error


def make_like(path: Path, images: list[Image], target: Path) -> None:
    """Create a store at `target` like that at `path`, without the pixels of `images`."""
    if path.suffix.lower() in TIFF:
        _make_from_tiff(open_node(path, ""), target, path.name.split(".")[0])
        return
    _copy(path, target, {path / level if level else path for image in images for level in image.levels})


def _copy(folder: Path, target: Path, without_chunks: set[Path]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for entry in sorted(folder.iterdir()):
        if entry.is_file() and (entry.name in METADATA or folder not in without_chunks):
            shutil.copyfile(entry, target / entry.name)
        elif entry.is_dir() and folder not in without_chunks:
            if any(place.resolve().is_relative_to(entry.resolve()) for place in (folder, target)):
                raise ImageFileError(f"{entry} leads to a folder around itself, or around the output; remove that link")
            _copy(entry, target / entry.name, without_chunks)


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
    """What must be unchanged for a run to resume: the metadata of the source, or a TIFF's size and time."""
    if path.suffix.lower() in TIFF:
        about = path.stat()
        return {"source": str(path.absolute()), "size": about.st_size, "time": about.st_mtime_ns}
    files = {
        str(file.relative_to(path)): file.read_text(encoding="utf-8")
        for folder in {path, *(path / level for image in images for level in image.levels)}
        for name in METADATA
        if (file := folder / name).is_file()
    }
    return {"source": str(path.absolute()), "metadata": json.dumps(files, sort_keys=True)}


def read(path: Path, name: str, index: tuple[slice, ...]) -> np.ndarray[Any, Any]:
    """Read pixels of an array; errors of codecs become one line that says where."""
    array = open_node(path, name)
    try:
        return np.asarray(array[index])
    except MemoryError:
        raise
    except Exception as error:
        why = " ".join(str(error).split())[:200]
        here = ", ".join(str(p.start) if p.stop - p.start == 1 else f"{p.start}:{p.stop}" for p in index)
        raise ImageFileError(
            f"cannot read [{here}] of {path / name}: {type(error).__name__}: {why}; restore that chunk"
        ) from error


def parse_multiscale(attributes: Mapping[str, Any], name: str) -> Image | None:
    """Parse the multiscale image, if any, that attributes describe; refuses axes that do not end in y, x."""
    about = attributes.get("ome", attributes)
    for entry, what in (("plate", "a plate"), ("well", "a well"), ("bioformats2raw.layout", "several images")):
        if entry in about and "multiscales" not in about:
            raise ImageFileError(f"{name} holds {what}; give one image of it, such as {name}/0")
    entries = about.get("multiscales")
    if entries is None:
        return None
    try:
        (entry,) = entries
        paths = tuple(str(level["path"]) for level in entry["datasets"])
        axes = tuple(str(axis["name"] if isinstance(axis, Mapping) else axis) for axis in entry.get("axes", ORDER))
    except (TypeError, KeyError, ValueError) as error:
        raise ImageFileError(
            f"{name} has multiscales that cannot be read ({error!r}); expected OME-Zarr 0.1 to 0.5"
        ) from error
    if axes[-2:] != ("y", "x") or not paths:
        raise ImageFileError(f"{name} has axes {', '.join(axes)}; expected y and x last: transpose it")
    return Image(paths, axes)


def attributes_of_image(
    name: str, axes: str, units: dict[str, str], scales: list[list[float]], channels: list[dict[str, Any]]
) -> dict[str, Any]:
    """The attributes of a new OME-Zarr with levels "0", "1" … of these `scales`, in units where they are known."""
    described = [
        {"name": axis, "type": TYPES[axis], **({"unit": units[axis]} if axis in units else {})} for axis in axes
    ]
    datasets = [
        {"path": str(number), "coordinateTransformations": [{"type": "scale", "scale": scale}]}
        for number, scale in enumerate(scales)
    ]
    ome: dict[str, Any] = {
        "version": VERSION,
        "multiscales": [{"name": name, "axes": described, "datasets": datasets, "type": "local mean"}],
    }
    if channels:
        ome["omero"] = {"channels": channels}
    return {"ome": ome}


def read_smaller(path: Path, finer: str, shape: Sequence[int], block: Sequence[slice]) -> NDArray[Any]:
    """A block of a level of this shape, shrunk from the part of the `finer` level that it stands for."""
    lengths = open_node(path, finer).shape
    by = [max(1, round(length / less)) for length, less in zip(lengths, shape, strict=True)]
    part = tuple(
        slice(min(place.start * f, length - 1), min(place.stop * f, length))
        for place, f, length in zip(block, by, lengths, strict=True)
    )
    return shrink(read(path, finer, part), by, [place.stop - place.start for place in block])


def shrink(pixels: NDArray[Any], by: Sequence[int], wanted: Sequence[int]) -> NDArray[Any]:
    """Shrink to the shape `wanted`: means over `by` pixels along each axis, the edge repeated beyond the end."""
    missing = [(0, max(0, want * f - have)) for want, f, have in zip(wanted, by, pixels.shape, strict=True)]
    whole = np.pad(pixels, missing, mode="edge") if np.any(missing) else pixels
    ends = [slice(want * f) for want, f in zip(wanted, by, strict=True)]
    cells = whole[tuple(ends)].reshape([n for pair in zip(wanted, by, strict=True) for n in pair])
    axes = tuple(range(1, 2 * len(by), 2))
    if pixels.dtype.kind != "f":  # sums of integers are exact in any order
        return np.asarray(np.rint(cells.mean(axis=axes, dtype=np.float64)), pixels.dtype)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # NaN where all pixels are
        return np.asarray(np.nanmean(cells, axis=axes), pixels.dtype)


def shapes_of_levels(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The shapes of the levels of a new image: half the rows and columns at every level."""
    shapes = [shape]
    while max(shapes[-1][-2:]) > SMALLEST:
        last = shapes[-1]
        shapes.append((*last[:-2], *(-(-length // 2) for length in last[-2:])))
    return shapes


class TiffSource:
    """The first series of a TIFF file as an array (…, y, x); axes are `tczyx`, those that there are."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = tifffile.TiffFile(path)
            finalize(self, self._file.close)
            self._series = self._file.series[0]
        except (OSError, ValueError, IndexError, tifffile.TiffFileError) as error:
            raise ImageFileError(f"cannot read {path}: {' '.join(str(error).split())}") from error
        given = self._series.axes
        self._file_axes = _name_axes(given, path)
        self.in_colour = given.endswith("S")
        self.axes = "".join(axis for axis in ORDER if axis in self._file_axes)
        self._order = [self._file_axes.index(axis) for axis in self.axes]
        self.shape = tuple(int(self._series.shape[place]) for place in self._order)
        self.dtype = np.dtype(self._series.dtype)

    @cached_property
    def _array(self) -> Any:
        return zarr.open(self._series.aszarr(level=0), mode="r")

    def __getitem__(self, index: tuple[slice, ...]) -> NDArray[Any]:
        asked = [slice(None)] * len(self._file_axes)
        for place, piece in zip(self._order, index, strict=True):
            asked[place] = piece
        return np.transpose(np.asarray(self._array[tuple(asked)]), self._order)

    @cached_property
    def _pixels(self) -> Mapping[str, Any]:
        """The OME-XML metadata of the pixels."""
        if self._file.ome_metadata is None:
            return {}
        image = tifffile.xml2dict(self._file.ome_metadata)["OME"]["Image"]
        first = image[0] if isinstance(image, list | tuple) else image
        pixels: Mapping[str, Any] = first["Pixels"]
        return pixels

    def scale(self) -> dict[str, float]:
        """The size of a pixel along each axis; 1 where it is not known."""
        return {axis: float(self._pixels.get(OF_AXIS.get(axis, ""), 1.0)) for axis in self.axes}

    def units(self) -> dict[str, str]:
        """The units of the axes whose pixel size is known."""
        known = [axis for axis in self.axes if OF_AXIS.get(axis) in self._pixels]
        units = {axis: str(self._pixels.get(f"{OF_AXIS[axis]}Unit", USUAL_UNIT[axis])) for axis in known}
        return {axis: UNITS[unit] for axis, unit in units.items() if unit in UNITS}

    def channels(self) -> list[dict[str, Any]]:
        """Names, colours and ranges of the channels, as `omero` holds them; none if they have no names."""
        entries = self._pixels.get("Channel", ())
        entries = entries if isinstance(entries, list | tuple) else (entries,)
        count = self.shape[self.axes.index("c")] if "c" in self.axes else 1
        if len(entries) != count or not any("Name" in entry for entry in entries):
            return []
        return [
            {
                "label": str(entry.get("Name", number)),
                "color": f"{(int(entry.get('Color', -1)) >> 8) & 0xFFFFFF:06X}",
                "window": self._window(number),
            }
            for number, entry in enumerate(entries)
        ]

    def _window(self, channel: int) -> dict[str, float]:
        """The range of a channel's type, and the range to show, from squares spread over it."""
        axis = self.axes.index("c") if "c" in self.axes else None
        found = [self[places] for places in squares_of_channel(self.shape, axis, channel)]
        valid = np.concatenate([values[np.isfinite(values)] for values in found])
        start, end = (float(valid.min()), float(valid.max())) if len(valid) else (0.0, 1.0)
        least, most = (start, end) if self.dtype.kind == "f" else integer_limits(self.dtype)
        return {"min": float(least), "max": float(most), "start": start, "end": max(end, start + 1e-6)}


def _name_axes(given: str, path: Path) -> str:
    """The axes of a series, such as TZCYXS or IYX, by the letters of OME-Zarr, in the same order."""
    named = ""
    for letter in given:
        choice = {"S": "c"}.get(letter) or SPARE.get(letter) or letter.lower()
        taken = named + "".join(other.lower() for other in given if other not in SPARE and other != "S")
        free = next((axis for axis in choice if axis in ORDER and (letter not in SPARE or axis not in taken)), None)
        if free is None or free in named:
            raise ImageFileError(f"{path} has axes {given}; expected some of T, C, Z, and Y, X: save it with these")
        named += free
    if not ("y" in named and "x" in named):
        raise ImageFileError(f"{path} has axes {given}; expected Y and X among them")
    return named
