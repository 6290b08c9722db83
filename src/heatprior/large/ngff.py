"""OME-Zarr metadata (OME-NGFF 0.1 to 0.5): which arrays are the levels of an image, and what their axes are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from heatprior.errors import ImageFileError

ORDER = "tczyx"  # of axes, wherever they are all there
TYPES = {"t": "time", "c": "channel", "z": "space", "y": "space", "x": "space"}
VERSION = "0.5"  # that is written where there is none to keep


class Multiscale(NamedTuple):
    """An image at several sizes: the paths of its arrays, finest first, and the names of their axes."""

    paths: tuple[str, ...]
    axes: tuple[str, ...]


def multiscale_of(attributes: Mapping[str, Any], name: str) -> Multiscale | None:
    """What the attributes of a group say; None if it is no OME-Zarr. Refuses axes that do not end in y, x."""
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
    return Multiscale(paths, axes)


def attributes_of_image(
    name: str,
    axes: str,
    units: Mapping[str, str],
    scales: Sequence[Sequence[float]],
    channels: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Of a new OME-Zarr whose levels, "0", "1" …, have pixels of these `scales`, in units where they are known."""
    described = [
        {"name": axis, "type": TYPES[axis], **({"unit": units[axis]} if axis in units else {})} for axis in axes
    ]
    datasets = [
        {"path": str(number), "coordinateTransformations": [{"type": "scale", "scale": [float(x) for x in scale]}]}
        for number, scale in enumerate(scales)
    ]
    ome: dict[str, Any] = {
        "version": VERSION,
        "multiscales": [{"name": name, "axes": described, "datasets": datasets, "type": "local mean"}],
    }
    if channels:
        ome["omero"] = {"channels": [dict(channel) for channel in channels]}
    return {"ome": ome}
