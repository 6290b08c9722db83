"""A stack and a time series as microscopes write them, OME-TIFF in and OME-Zarr out, opened again with the right scale.

    python examples/microscope_stack.py

Draws cells in photon noise, writes them as a 3-D (ZYX) and as a 5-D OME-TIFF (TZCYX, the order of a file, with sizes,
units and channel names), denoises both as `heatprior denoise` does, plane by plane with a noise level for each channel,
and lists what ome-zarr's reader finds in the results. Needs heatprior[large].
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import tifffile
from ome_zarr.io import parse_url
from ome_zarr.reader import Reader
from scipy.ndimage import gaussian_filter

from heatprior.large.files import Settings, denoise_store

PLANE = (192, 640)  # rows, columns
STEPS = {"z": 0.5, "y": 0.108, "x": 0.108}  # micrometres
OFFSET, NOISE = 400.0, {"DAPI": 60.0, "GFP": 120.0}  # of a 16-bit camera, and of its two channels


def main() -> None:
    """Write, denoise, open again."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for axes, lengths in (("ZYX", (3,)), ("TZCYX", (2, 3, 2))):
            source, target = folder / f"{axes}.ome.tif", folder / f"{axes}.ome.zarr"
            clean = acquire(source, axes, lengths, rng)
            done = denoise_store(source, target, Settings("fast7"))
            levels = ", ".join(f"{sigma:.0f}" for sigma in done.sigmas["0"])
            print(f"{axes}: {done.blocks} blocks, sigma {levels} found")
            show(target, np.transpose(clean, [axes.index(axis) for axis in "TCZYX" if axis in axes]))


def acquire(path: Path, axes: str, lengths: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """An OME-TIFF of moving cells, tiled and with its metadata; the image without noise is returned."""
    shape = (*lengths, *PLANE)
    specks = rng.random(shape) < 0.002
    spread = [0.7 if axis == "Z" else 5.0 if axis in "YX" else 0.0 for axis in axes]
    clean = OFFSET + 60000.0 * gaussian_filter(specks.astype(np.float32), spread)
    noise = np.array(list(NOISE.values()) if "C" in axes else [NOISE["DAPI"]])
    noise = noise.reshape([-1 if axis == "C" else 1 for axis in axes])
    noisy = np.clip(clean + noise * rng.standard_normal(shape), 0, 65535).astype(np.uint16)
    metadata: dict[str, object] = {"axes": axes}
    for axis, step in STEPS.items():
        metadata |= {f"PhysicalSize{axis.upper()}": step, f"PhysicalSize{axis.upper()}Unit": "µm"}
    if "T" in axes:
        metadata |= {"TimeIncrement": 30.0, "TimeIncrementUnit": "s"}
    if "C" in axes:
        metadata["Channel"] = {"Name": list(NOISE)}
    tifffile.imwrite(path, noisy, metadata=metadata, tile=(128, 128), photometric="minisblack")
    return clean


def show(path: Path, clean: np.ndarray) -> None:
    """What a reader sees: axes, units, channels, the scale of every level; and how far pixels are from the clean."""
    location = parse_url(path)
    assert location is not None
    (node,) = Reader(location)()
    error = np.asarray(node.data[0], np.float64) - clean
    axes = [f"{axis['name']}/{axis['unit']}" if "unit" in axis else axis["name"] for axis in node.metadata["axes"]]
    print(f"  axes {' '.join(axes)}; channels {', '.join(node.metadata.get('channel_names', ['no names']))}")
    for level, (found,) in zip(node.data, node.metadata["coordinateTransformations"], strict=True):
        print(f"  {level.shape} scale {[round(step, 3) for step in found['scale']]}")
    print(f"  error {np.sqrt(np.mean(error**2)):.0f} of {OFFSET:.0f} + cells")


if __name__ == "__main__":
    main()
