"""What a result is shown as: a layer that lies where its source lies, in the same units."""

from __future__ import annotations

from typing import Any

import numpy as np
from napari.layers import Image
from numpy.typing import NDArray

PLACE = ("scale", "translate", "rotate", "shear", "affine", "units", "axis_labels")
LOOKS = ("colormap", "contrast_limits", "gamma", "blending", "interpolation2d", "rendering")
MAP_COLOURS = {"noise": "magma", "error": "viridis"}


def result_layer(source: Image, kind: str, data: Any, offset: tuple[int, ...] | None = None) -> Image:
    """A layer of `data`: "denoised", or a map of "noise" or "error"; `offset` is where a part begins, in pixels."""
    place = {name: getattr(source, name) for name in PLACE}
    if offset is not None:
        place["translate"] = source.translate + _moved_by(source, np.asarray(offset[: source.ndim], float))
    name = f"{source.name} ({kind})"
    if kind in MAP_COLOURS:
        if source.rgb:
            data = np.sqrt(np.square(data, dtype=np.float32).mean(axis=-1))
        return Image(data, name=name, colormap=MAP_COLOURS[kind], metadata={"heatprior": kind}, **place)
    looks = {} if source.rgb else {name: getattr(source, name) for name in LOOKS}
    return Image(data, name=name, rgb=source.rgb, metadata={"heatprior": kind}, **looks, **place)


def _moved_by(source: Image, pixels: NDArray[Any]) -> NDArray[Any]:
    """How far so many pixels are before the layer's own affine map, which the part has too."""
    world = np.subtract(source.data_to_world(pixels), source.data_to_world(0 * pixels))
    return np.asarray(np.linalg.solve(source.affine.linear_matrix, world))
