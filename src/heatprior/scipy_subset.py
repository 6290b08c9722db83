"""The parts of scipy that the package needs, without the time that importing scipy takes.

Sums of exponentials, cubic splines and single extension modules: the packages around them take 0.3 s to import, more
than many a denoising.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import import_module
from importlib.machinery import ExtensionFileLoader, PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

import numpy as np

from heatprior.arrays import FloatArray

Axes = int | tuple[int, ...] | None


def log_sum_exp(logarithms: FloatArray, axis: Axes = None) -> FloatArray:
    """Compute log Σ exp(x) along `axis`; −∞ where all are."""
    largest = _largest(logarithms, axis)
    with np.errstate(divide="ignore"):
        sums = np.log(np.sum(np.exp(logarithms - largest), axis=axis, keepdims=True)) + largest
    return np.asarray(np.squeeze(sums, axis=axis))


def softmax(logarithms: FloatArray, axis: Axes = None) -> FloatArray:
    """Compute exp(x) / Σ exp(x) along `axis`."""
    parts = np.exp(logarithms - _largest(logarithms, axis))
    parts /= parts.sum(axis=axis, keepdims=True)
    return np.asarray(parts)


def log_softmax(logarithms: FloatArray, axis: Axes = None) -> FloatArray:
    """Compute x − log Σ exp(x) along `axis`."""
    shifted = logarithms - _largest(logarithms, axis)
    return np.asarray(shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True)))


def _largest(logarithms: FloatArray, axis: Axes) -> FloatArray:
    """The largest along `axis`, 0 where it is infinite: what may be taken off without overflow."""
    largest = np.max(logarithms, axis=axis, keepdims=True)
    return np.asarray(np.where(np.isfinite(largest), largest, 0.0))


def refine(values: FloatArray, parts: int) -> FloatArray:
    """The cubic spline through `values` (n, …) at equal steps, each divided into `parts`: (parts (n − 1) + 1, …).

    Not-a-knot: the third derivative is continuous at the last but one points, too. There are four points or more.
    """
    count = len(values)
    flat = np.reshape(values, (count, -1))
    return np.asarray(_matrix(count, parts) @ flat).reshape(-1, *np.shape(values)[1:])


@lru_cache(maxsize=32)
def _matrix(count: int, parts: int) -> FloatArray:
    """The matrix that maps the values to the finer ones."""
    places = np.arange(parts * (count - 1) + 1) / parts
    # Slopes d: d₋ + 4 d + d₊ = 3 (y₊ − y₋) inside; at the ends the first two pieces are one polynomial.
    system = 4.0 * np.eye(count) + np.eye(count, k=1) + np.eye(count, k=-1)
    right = 3.0 * (np.eye(count, k=1) - np.eye(count, k=-1))
    system[0], system[-1], right[0], right[-1] = 0.0, 0.0, 0.0, 0.0
    system[0, :2], right[0, :3] = (1.0, 2.0), (-2.5, 2.0, 0.5)
    system[-1, -2:], right[-1, -3:] = (2.0, 1.0), (-0.5, -2.0, 2.5)
    slopes = np.linalg.solve(system, right)
    first = np.minimum(places.astype(int), count - 2)
    s = (places - first)[:, None]
    identity = np.eye(count)
    return np.asarray(
        (1 + 2 * s) * (1 - s) ** 2 * identity[first]
        + s**2 * (3 - 2 * s) * identity[first + 1]
        + s * (1 - s) ** 2 * slopes[first]
        + s**2 * (s - 1) * slopes[first + 1]
    )


def extension(name: str) -> ModuleType:
    """Import the extension module `name` of scipy alone, or as usual if this release has something else there."""
    if name not in sys.modules:
        top, *inner, _ = name.split(".")
        spec = PathFinder.find_spec(name, [str(Path(folder, *inner)) for folder in import_module(top).__path__])
        if spec is not None and isinstance(spec.loader, ExtensionFileLoader):
            try:
                module = sys.modules[name] = module_from_spec(spec)  # but no attribute of its package
                spec.loader.exec_module(module)
            except ImportError:
                sys.modules.pop(name, None)
    return import_module(name)
