"""What a person may choose for denoising, and the same as the command line says it: how much noise, which quality."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import InvalidInputError
from heatprior.noise.estimation import NoiseReport

STRENGTHS = (0.1, 10.0)


QUALITIES = ("fast", "default", "best")  # of `hp.denoise`, by the names that the page and the command line have too
QUICK = "fast"  # of the quick look


@dataclass(frozen=True)
class Choice:
    """A noise level in the units of the image, or None to estimate it; times `strength`; and how well to denoise."""

    sigma: float | None = None
    strength: float = 1.0
    quality: str = "default"
    adapt: bool = False
    error: bool = False  # whether the error of each pixel is estimated too

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Choice:
        """From what a page sent; refuses what makes no sense."""
        sigma, strength = number_of(values, "sigma"), number_of(values, "strength")
        strength = 1.0 if strength is None else strength
        if sigma is not None and not (math.isfinite(sigma) and sigma > 0):
            raise InvalidInputError(f"the noise level is {sigma:g}; expected a positive number, in units of the image")
        if not STRENGTHS[0] <= strength <= STRENGTHS[1]:
            raise InvalidInputError(f"the strength is {strength:g}; expected {STRENGTHS[0]:g} to {STRENGTHS[1]:g}")
        quality = str(values.get("quality") or "default")
        if quality not in QUALITIES:
            raise InvalidInputError(f"the quality is {quality[:40]!r}; expected {', '.join(QUALITIES)}")
        return cls(sigma, strength, quality, bool(values.get("adapt")), bool(values.get("error")))

    @property
    def keywords(self) -> dict[str, Any]:
        """For `hp.denoise`."""
        return {"quality": self.quality, "adapt": self.adapt}

    def level(self, report: NoiseReport | None) -> float | NDArray[Any] | None:
        """What `denoise` takes for sigma: None to estimate it there; else in the units and shape of the image."""
        if self.sigma is not None:
            return self.sigma * self.strength
        if self.strength == 1.0 or report is None:
            return None
        return strengthened(report, self.strength)

    def command(self, name: str, target: str, level: float | NDArray[Any] | None) -> str | None:
        """The line that does the same in a shell, or None if it would need a file of noise levels."""
        if level is not None and np.ndim(level):
            return None
        sigma = [] if level is None else ["--sigma", repr(float(level))]
        options = [f"--{self.quality}"] * (self.quality != "default") + ["--adapt"] * self.adapt
        return shlex.join(["heatprior", "denoise", name, "-o", target, *sigma, *options])


def strengthened(report: NoiseReport, strength: float) -> float | NDArray[Any]:
    """The noise that was found, times a factor: one number where it is one for all, else of the image's shape."""
    levels = {float(np.max(channel.sigma)) for channel in report.channels}
    if set(report.models) == {"constant"} and len(levels) == 1:
        return levels.pop() * report.white * strength
    return np.asarray(report.sigma * np.float32(strength))


def target_name(name: str, done: str = "denoised") -> str:
    """photo.png → photo-denoised.png."""
    path = Path(name)
    suffix = "".join(path.suffixes[-2:]) if name.lower().endswith((".nii.gz", ".fits.gz")) else path.suffix
    return f"{name.removesuffix(suffix)}-{done}{suffix}"


def number_of(values: Mapping[str, Any], name: str) -> float | None:
    """A number from what a page sent; None if it sent none."""
    value = values.get(name)
    if value in (None, ""):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name} is {str(value)[:40]!r}; expected a number") from None
