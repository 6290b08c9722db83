"""Which axes of a layer are the image, which its channels, which a stack; and the part of it that is on the screen."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from napari.components import ViewerModel
from napari.layers import Image

NONE = -1  # no axis is that of channels
MARGIN = 16  # pixels around a part, so that its edges are denoised as in the whole


@dataclass(frozen=True)
class Axes:
    """Of an array: rows and columns, and the axis of its channels, if any; all others are a stack."""

    plane: tuple[int, int]
    channels: int | None = None

    def __str__(self) -> str:
        return f"{self.plane}, {self.channels}"

    def in_order(self, data: Any) -> tuple[Any, int | None]:
        """As `hp.denoise` takes it: stack first, then channels, rows, columns; and its channel axis."""
        order = self._order(data.ndim)
        return data.transpose(order), None if self.channels is None else -3

    def back(self, data: Any) -> Any:
        """The inverse of `in_order`."""
        return data.transpose(tuple(np.argsort(self._order(data.ndim))))

    def _order(self, ndim: int) -> tuple[int, ...]:
        last = (*(() if self.channels is None else (self.channels,)), *self.plane)
        return (*(axis for axis in range(ndim) if axis not in last), *last)


def channel_choices(layer: Image | None) -> list[tuple[str, int]]:
    """What may be the channels of a layer, by name; those of a colour picture are known."""
    if layer is None:
        return [("none", NONE)]
    if layer.rgb:
        return [("colours", layer.ndim)]
    others = [(_name(layer, axis), axis) for axis in range(layer.ndim)] if layer.ndim > 2 else []
    return [("none", NONE), *others]


def plane_choices(layer: Image | None, channels: int) -> list[tuple[str, tuple[int, int]]]:
    """What may be rows and columns, the last two axes first."""
    if layer is None:
        return []
    pairs = combinations([axis for axis in range(layer.ndim) if axis != channels], 2)
    return [(f"{_name(layer, a)}, {_name(layer, b)}", (a, b)) for a, b in reversed(list(pairs))]


def finest(layer: Image) -> Any:
    """Its data; of several resolutions the finest."""
    return layer.data[0] if layer.multiscale else layer.data


def visible_part(viewer: ViewerModel, layer: Image, axes: Axes) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Of the plane that is looked at, what is on the screen: with a margin, and where it is inside of that."""
    shape = finest(layer).shape
    point = np.rint(layer.world_to_data(viewer.dims.point[-layer.ndim :])).astype(int)
    shown = [axis - (viewer.dims.ndim - layer.ndim) for axis in viewer.dims.displayed]
    wide, inside = [], []
    for axis, size in enumerate(shape):
        low, high = 0, size
        if axis in shown and axis in axes.plane and layer.corner_pixels is not None and not layer.multiscale:
            low, high = (int(end) for end in layer.corner_pixels[:, axis])
            low, high = max(0, min(low, size - 1)), min(size, max(high + 1, 1))
        elif axis < layer.ndim and axis not in (*axes.plane, axes.channels):
            low = int(np.clip(point[axis], 0, size - 1))
            high = low + 1
        grown = slice(max(0, low - MARGIN), min(size, high + MARGIN)) if axis in axes.plane else slice(low, high)
        wide.append(grown)
        inside.append(slice(low - grown.start, high - grown.start))
    return tuple(wide), tuple(inside)


def _name(layer: Image, axis: int) -> str:
    label = str(layer.axis_labels[axis])
    return f"axis {axis}" if label.lstrip("-").isdigit() else label
