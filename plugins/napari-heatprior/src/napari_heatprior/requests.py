"""What is asked for, and how `heatprior` does it: without napari, so that it can run in any thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import heatprior as hp
from napari_heatprior.axes import Axes

QUALITIES = ("fast", "default", "best")
Progress = Callable[[float], None]


class Cancelled(Exception):  # noqa: N818 (it is no error)
    """Nobody waits for it any more."""


@dataclass(frozen=True)
class Request:
    """How a layer is denoised; `sigma` in its units, or None: estimated."""

    axes: Axes
    sigma: float | None = None
    quality: str = "default"
    adapt: bool = False
    noise_map: bool = False
    error_map: bool = False

    def run(self, data: Any, progress: Progress | None = None) -> dict[str, Any]:
        """The denoised data and, if asked for, its noise and error maps, of its shape; lazy if it is a dask array."""
        ordered, channel_axis = self.axes.in_order(data)
        known: dict[str, Any] = {"channel_axis": channel_axis}
        maps: dict[str, Any] = {}
        sigma: Any = self.sigma
        if is_lazy(data):
            if self.noise_map or self.error_map:
                raise hp.InvalidInputError("maps of noise and error are for layers in memory; leave them out")
            denoised = hp.denoise(ordered, sigma, quality=self.quality, adapt=self.adapt, **known)
            return {"denoised": self.axes.back(denoised)}
        if self.noise_map:
            report = hp.estimate_noise(ordered, **known)
            maps["noise"] = np.broadcast_to(report.sigma, ordered.shape)
            if sigma is None and report.profile is None:
                sigma = report.sigma  # what `denoise` would find again
        wanted = {"quality": self.quality, "adapt": self.adapt, "progress": progress, **known}
        if self.error_map:
            found = hp.denoise(ordered, sigma, return_error=True, **wanted)
            maps |= {"denoised": found.pixels, "error": found.error}
        else:
            maps["denoised"] = hp.denoise(ordered, sigma, **wanted)
        return {name: np.ascontiguousarray(self.axes.back(values)) for name, values in maps.items()}


def is_lazy(data: Any) -> bool:
    """Whether it is a dask array: computed only where it is looked at."""
    return hasattr(data, "dask")
