"""What a person may choose for denoising, and the same as the command line says it: how much noise, which quality."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from heatprior.errors import InvalidInputError
from heatprior.noise.estimation import NoiseReport
from heatprior.noise.profiles import NoiseProfile

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

    @property
    def is_relative(self) -> bool:
        """Whether the noise must be known before: a factor of what is found, not a level that was given."""
        return self.sigma is None and self.strength != 1.0

    def told(self, report: NoiseReport | None) -> dict[str, Any]:
        """What `denoise` is told of the noise: nothing, if it is to estimate it; else `sigma`, or `noise` and `white`.

        `report` is what is known of the image, if anything.
        """
        if self.sigma is not None:
            return {"sigma": self.sigma * self.strength}
        return strengthened(report, self.strength) if self.is_relative and report is not None else {}

    def command(self, name: str, target: str, told: Mapping[str, Any]) -> str | None:
        """The line that does the same in a shell, or None if it would need a file of noise levels."""
        if "noise" in told or np.ndim(told.get("sigma", 0.0)):
            return None
        sigma = ["--sigma", repr(float(told["sigma"]))] if "sigma" in told else []
        options = [f"--{self.quality}"] * (self.quality != "default") + ["--adapt"] * self.adapt
        return shlex.join(["heatprior", "denoise", name, "-o", target, *sigma, *options])


def strengthened(report: NoiseReport, strength: float) -> dict[str, Any]:
    """What `denoise` is told for the noise that was found in one image, times a factor.

    `sigma`, one number where it is one for all, else of the image's shape; a profile where the noise is correlated.
    """
    if report.profile is not None:
        return {"noise": _stronger(report.profile, strength), "white": report.white}
    levels = {float(np.max(channel.sigma)) for channel in report.channels}
    if set(report.models) == {"constant"} and len(levels) == 1:
        return {"sigma": levels.pop() * report.white * strength}
    return {"sigma": np.asarray(report.sigma * np.float32(strength))}


def _stronger(profile: NoiseProfile, factor: float) -> NoiseProfile:
    """The same spectra, `factor` times the standard deviation."""
    square = factor**2
    channels = (
        replace(channel, variances=square * channel.variances, errors=square * channel.errors)
        for channel in profile.channels
    )
    return replace(profile, channels=tuple(channels))


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
