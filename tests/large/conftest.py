"""These tests need dask, distributed, zarr and ome-zarr: `make test-large`. Without them they are left out."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from paper.weights.handmade import dct_prior

if any(importlib.util.find_spec(name) is None for name in ("dask", "distributed", "zarr", "ome_zarr")):
    collect_ignore_glob = ["test_*.py"]
else:
    import distributed  # noqa: F401  here, where warnings of its import are no errors
    import zarr  # noqa: F401


@pytest.fixture
def prior(tmp_path: Path) -> str:
    """A small prior in a file."""
    path = tmp_path / "small.safetensors"
    dct_prior(3).save(path)
    return str(path)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
