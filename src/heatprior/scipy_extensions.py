"""Compiled parts of scipy without the packages around them, whose import takes 0.3 s: more than many a denoising.

Where another release of scipy has something else there, the ordinary import takes its place. A package that is imported
afterwards finds the part that is there; it is only not its attribute, as in `scipy.linalg.cython_blas` without `from`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.machinery import ExtensionFileLoader, PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

import numpy as np

from heatprior.arrays import FloatArray


def extension(name: str) -> ModuleType:
    """The extension module `name` of scipy."""
    if name not in sys.modules:
        top, *inner, _ = name.split(".")
        spec = PathFinder.find_spec(name, [str(Path(folder, *inner)) for folder in import_module(top).__path__])
        if spec is not None and isinstance(spec.loader, ExtensionFileLoader):
            try:
                module = sys.modules[name] = module_from_spec(spec)
                spec.loader.exec_module(module)
            except ImportError:
                sys.modules.pop(name, None)
    return import_module(name)


def cosine_transform(images: FloatArray) -> FloatArray:
    """The last two axes in the orthonormal cosine basis: `scipy.fft.dctn` with norm="ortho"."""
    return _transformed(images, 2)


def inverse_cosine_transform(spectra: FloatArray) -> FloatArray:
    """The images that have these coefficients: `scipy.fft.idctn` with norm="ortho"."""
    return _transformed(spectra, 3)


def _transformed(x: FloatArray, kind: int) -> FloatArray:
    axes = (x.ndim - 2, x.ndim - 1)
    if (dct := _dct()) is None:
        from scipy.fft import dctn, idctn  # noqa: PLC0415 (slow to import)

        return np.asarray((dctn if kind == 2 else idctn)(x, axes=axes, norm="ortho"))
    return np.asarray(dct(x, kind, axes, 1, None, 1, True))  # orthonormal, not in place, one thread


@cache
def _dct() -> Callable[..., FloatArray] | None:
    """What is behind scipy.fft; None where it is not what it is known to be."""
    try:
        dct = extension("scipy.fft._pocketfft.pypocketfft").dct
        right = np.allclose(dct(np.eye(2, 3), 2, (0, 1), 1, None, 1, True)[0, 0], 2.0 / np.sqrt(6.0))
    except (ImportError, AttributeError, TypeError, ValueError):
        return None
    return dct if right else None
