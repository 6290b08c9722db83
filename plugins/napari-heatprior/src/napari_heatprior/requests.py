"""What is asked for, and how `heatprior` does it: without napari, so that it can run in any thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import heatprior as hp
from napari_heatprior.axes import Axes

Progress = Callable[[float], None]


class Cancelled(Exception):  # noqa: N818 (it is no error)
    """Nobody waits for it any more."""


@dataclass(frozen=True)
class Request:
    """How a layer is denoised; `sigma` in its units, or None: estimated."""

    axes: Axes
    sigma: float | None = None
    quality: str = "default"
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
            known |= found_once(ordered, sigma, channel_axis)
            denoised = hp.denoise(ordered, quality=self.quality, **known)
            return {"denoised": self.axes.back(denoised)}
        if self.noise_map:
            report = hp.estimate_noise(ordered, **known)
            maps["noise"] = np.broadcast_to(report.sigma, ordered.shape)
            if sigma is None and not report.is_none:
                sigma = report.sigma  # what `denoise` would find again
        wanted = {"quality": self.quality, "progress": progress, **known}
        if self.error_map:
            found = hp.denoise(ordered, sigma, return_error=True, **wanted)
            maps |= {"denoised": found.pixels, "error": found.error}
        else:
            maps["denoised"] = hp.denoise(ordered, sigma, **wanted)
        return {name: np.ascontiguousarray(self.axes.back(values)) for name, values in maps.items()}


def found_once(data: Any, sigma: float | None, channel_axis: int | None) -> dict[str, Any]:
    """Noise level and full scale of a dask array, by squares spread over it: now, not for every plane that is shown."""
    try:
        report = hp.estimate_noise(data, channel_axis=channel_axis)
    except hp.InvalidInputError:
        if sigma is None:
            raise
        return {"sigma": sigma}  # nothing is to be seen in those squares
    levels = [channel.level.sigma * report.white for channel in report.channels]
    return {"sigma": (levels if len(levels) > 1 else levels[0]) if sigma is None else sigma, "white": report.white}


def is_lazy(data: Any) -> bool:
    """Whether it is a dask array: computed only where it is looked at."""
    return hasattr(data, "dask")
