"""Stores as microscopes write them, small, and what should come of their pixels."""

import numpy as np
import zarr

import heatprior as hp

SIGMA = 900.0


def pixels(shape, rng, dtype=np.uint16):
    return np.clip(rng.normal(20000, 2000, shape), 0, 65535).astype(dtype)


def ome_zarr(path, rng, *, zarr_format=3, shards=None, shape=(2, 2, 3, 90, 110)):
    """TCZYX with two levels, as a microscope's software writes it."""
    group = zarr.create_group(path, zarr_format=zarr_format)
    level = pixels(shape, rng)
    small = (*shape[:-2], 45, 55)
    keywords = {"dimension_names": list("tczyx")} if zarr_format == 3 else {}
    first = group.create_array(
        "0", shape=shape, dtype="uint16", chunks=(1, 1, 1, 32, 32), shards=shards, attributes={"k": 1}, **keywords
    )
    first[...] = level
    group.create_array("1", shape=small, dtype="uint16", chunks=(1, 1, 1, 32, 32), **keywords)
    axes = [{"name": "t", "type": "time", "unit": "second"}, {"name": "c", "type": "channel"}] + [
        {"name": axis, "type": "space", "unit": "micrometer"} for axis in "zyx"
    ]
    datasets = [
        {"path": str(n), "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0, 0.5, s, s]}]}
        for n, s in enumerate((0.108, 0.216))
    ]
    ome = {"multiscales": [{"version": "0.4", "axes": axes, "datasets": datasets, "name": "cells"}]}
    ome["omero"] = {"channels": [{"label": "DAPI", "color": "0000FF"}, {"label": "GFP", "color": "00FF00"}]}
    group.attrs.update({"ome": {"version": "0.5", **ome}} if zarr_format == 3 else ome)
    labels = group.create_group("labels")
    labels.create_array("mask", shape=(9, 9), dtype="uint8")[...] = 7
    return level


def everything_but_chunks(path):
    names = ("zarr.json", ".zarray", ".zattrs", ".zgroup")
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.name in names}


def by_planes(noisy, prior, sigma=SIGMA):
    return hp.denoise(noisy, sigma, prior=prior)
