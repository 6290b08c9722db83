"""The keywords of `hp.denoise` as one value, which is made at the public door and handed on from there."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TypedDict

from heatprior.noise.profiles import NoiseProfile
from heatprior.priors.protocol import DiffusedPrior


@dataclass(frozen=True)
class Options:
    """How an image is denoised; `hp.denoise` says what each means."""

    noise: str | NoiseProfile = "auto"
    quality: str = "default"
    prior: str | PathLike[str] | DiffusedPrior | None = None
    method: str = "hqs"
    adapt: bool = False
    scales: int | None = None
    channel_axis: int | None = None
    white: float | None = None

    @property
    def profile(self) -> NoiseProfile | None:
        """The noise of a camera, if that is what was given."""
        return self.noise if isinstance(self.noise, NoiseProfile) else None


class Keywords(TypedDict, total=False):
    """The same for type checkers: what a call may name, with the types above."""

    noise: str | NoiseProfile
    quality: str
    prior: str | PathLike[str] | DiffusedPrior | None
    method: str
    adapt: bool
    scales: int | None
    channel_axis: int | None
    white: float | None
