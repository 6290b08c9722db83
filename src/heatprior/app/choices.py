"""What a person may choose, and the same as the command line says it: how much noise, and at what pains."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.errors import InvalidInputError
from heatprior.noise.estimation import NoiseReport

STRENGTHS = (0.1, 10.0)


class Pains(NamedTuple):
    """Arguments of `denoise`, and the options of `heatprior denoise` that mean the same."""

    arguments: Mapping[str, Any]
    options: tuple[str, ...]


# By the name on the page. The quick look always takes the first.
PAINS = {
    "fast": Pains({"prior": "denoise7", "method": "eb"}, ("--prior", "denoise7", "--method", "eb")),
    "default": Pains({}, ()),
    "best": Pains({"adapt": True}, ("--adapt",)),
}
QUICK = PAINS["fast"]


@dataclass(frozen=True)
class Choice:
    """A noise level in the units of the image, or None to estimate it; times `strength`; and the pains to take."""

    sigma: float | None = None
    strength: float = 1.0
    pains: str = "default"

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Choice:
        """From what a page sent; refuses what makes no sense."""
        sigma, strength = _number(values, "sigma"), _number(values, "strength")
        strength = 1.0 if strength is None else strength
        if sigma is not None and not (math.isfinite(sigma) and sigma > 0):
            raise InvalidInputError(f"the noise level is {sigma:g}; expected a positive number, in units of the image")
        if not STRENGTHS[0] <= strength <= STRENGTHS[1]:
            raise InvalidInputError(f"the strength is {strength:g}; expected {STRENGTHS[0]:g} to {STRENGTHS[1]:g}")
        pains = str(values.get("pains") or "default")
        if pains not in PAINS:
            raise InvalidInputError(f"{pains[:40]!r} is no choice; expected {', '.join(PAINS)}")
        return cls(sigma, strength, pains)

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
        return shlex.join(["heatprior", "denoise", name, "-o", target, *sigma, *PAINS[self.pains].options])


def strengthened(report: NoiseReport, strength: float) -> float | NDArray[Any]:
    """The noise that was found, times a factor: one number where it is one for all, else of the image's shape."""
    levels = {float(np.max(channel.sigma)) for channel in report.channels}
    if set(report.models) == {"constant"} and len(levels) == 1:
        return levels.pop() * report.white * strength
    return np.asarray(report.sigma * np.float32(strength))


def target_name(name: str) -> str:
    """photo.png → photo-denoised.png."""
    path = Path(name)
    suffix = "".join(path.suffixes[-2:]) if name.lower().endswith((".nii.gz", ".fits.gz")) else path.suffix
    return f"{name.removesuffix(suffix)}-denoised{suffix}"


def _number(values: Mapping[str, Any], name: str) -> float | None:
    value = values.get(name)
    if value in (None, ""):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name} is {str(value)[:40]!r}; expected a number") from None
