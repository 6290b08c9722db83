"""Arrays that are computed later, block by block: which room knows them. dask itself is imported in that room only."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def is_lazy(image: object) -> bool:
    """Whether this is a dask array."""
    return hasattr(type(image), "__dask_graph__")


def room_of(image: object) -> ModuleType | None:
    """The room that computes such an image; None for an array that is here, and for what becomes one."""
    return import_module("heatprior.large.arrays") if is_lazy(image) else None
