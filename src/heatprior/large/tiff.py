"""Big TIFF files, OME-TIFF among them, read piece by piece, with axes in the order of OME-Zarr."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import ImageFileError
from heatprior.large.ngff import ORDER
from heatprior.large.samples import squares_of_channel
from heatprior.pixels.inputs import integer_limits

UNITS = {  # of OME-TIFF → of OME-Zarr
    "µm": "micrometer", "um": "micrometer", "nm": "nanometer", "mm": "millimeter", "cm": "centimeter", "m": "meter",
    "pm": "picometer", "Å": "angstrom", "s": "second", "ms": "millisecond", "µs": "microsecond", "min": "minute",
}  # fmt: skip
OF_AXIS = {"x": "PhysicalSizeX", "y": "PhysicalSizeY", "z": "PhysicalSizeZ", "t": "TimeIncrement"}
USUAL_UNIT = {"x": "µm", "y": "µm", "z": "µm", "t": "s"}  # where none is given, as the OME schema has it
SPARE = {"I": "tz", "Q": "zt", "R": "tz"}  # axes without a meaning of their own: what they may stand for


class TiffSource:
    """The first series of a TIFF file as an array (…, y, x); axes are `tczyx`, those that there are."""

    def __init__(self, path: Path) -> None:
        import tifffile  # noqa: PLC0415

        self._path = path
        try:
            self._file = tifffile.TiffFile(path)
            finalize(self, self._file.close)
            self._series = self._file.series[0]
            given = self._series.axes
            self._named = _named(given, path)
        except (OSError, ValueError, IndexError, tifffile.TiffFileError) as error:
            if isinstance(error, ImageFileError):
                raise
            raise ImageFileError(f"cannot read {path}: {' '.join(str(error).split())}") from error
        self.in_colour = given.endswith("S")
        self.axes = "".join(axis for axis in ORDER if axis in self._named)
        self._order = [self._named.index(axis) for axis in self.axes]
        self.shape = tuple(int(self._series.shape[place]) for place in self._order)
        self.dtype = np.dtype(self._series.dtype)

    @cached_property
    def _array(self) -> Any:
        import zarr  # noqa: PLC0415

        return zarr.open(self._series.aszarr(level=0), mode="r")

    def __getitem__(self, index: tuple[slice, ...]) -> NDArray[Any]:
        asked = [slice(None)] * len(self._named)
        for place, piece in zip(self._order, index, strict=True):
            asked[place] = piece
        return np.transpose(np.asarray(self._array[tuple(asked)]), self._order)

    @cached_property
    def _pixels(self) -> Mapping[str, Any]:
        """What OME-XML says of the pixels."""
        import tifffile  # noqa: PLC0415

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
        """Of the axes whose size is known."""
        found = {}
        for axis in self.axes:
            if (entry := OF_AXIS.get(axis, "")) in self._pixels:
                unit = str(self._pixels.get(f"{entry}Unit", USUAL_UNIT[axis]))
                if unit in UNITS:
                    found[axis] = UNITS[unit]
        return found

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
        """What values a channel may have, and which are shown: those of squares spread over it."""
        axis = self.axes.index("c") if "c" in self.axes else None
        found = [self[places] for places in squares_of_channel(self.shape, axis, channel)]
        valid = np.concatenate([values[np.isfinite(values)] for values in found])
        start, end = (float(valid.min()), float(valid.max())) if len(valid) else (0.0, 1.0)
        least, most = (start, end) if self.dtype.kind == "f" else integer_limits(self.dtype)
        return {"min": float(least), "max": float(most), "start": start, "end": max(end, start + 1e-6)}


def _named(given: str, path: Path) -> str:
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
