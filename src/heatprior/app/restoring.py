"""Deblurring, filling in, enlarging: what a person may choose, and the call of `hp.restore` that the commands make."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.app.choices import number_of, target_name
from heatprior.errors import InvalidInputError
from heatprior.images import ImageFile, enlarged_like, read_grey
from heatprior.kernels.row_bands import Progress
from heatprior.restoration.filling import fill_in
from heatprior.restoration.operators.blur import Blur
from heatprior.restoration.operators.downsample import Downsample
from heatprior.restoration.operators.point_spreads import gaussian_kernel, motion_kernel
from heatprior.restoration.restore import restore

MASK = "mask.png"  # what a person painted, beside the picture in the temporary folder
WIDEST = 20.0  # pixels: standard deviation of a Gaussian blur
LONGEST = 100.0  # pixels of a motion
FACTORS = (2, 3, 4)


@dataclass(frozen=True)
class Restoration:
    """One of the tasks with its settings; `sigma` in the units of the image, or None: estimated, or pixels stay."""

    task: str
    sigma: float | None = None
    blur: str = "gaussian"
    width: float = 1.6
    length: float = 15.0
    degrees: float = 0.0
    factor: int = 2

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Restoration:
        """From what a page sent; refuses what makes no sense."""
        task, blur = str(values.get("task")), str(values.get("blur") or cls.blur)
        if task not in TASKS:
            raise InvalidInputError(f"the task is {task[:40]!r}; expected {', '.join(TASKS)}")
        if blur not in ("gaussian", "motion"):
            raise InvalidInputError(f"the blur is {blur[:40]!r}; expected gaussian or motion")
        factor = int(_within(values, "factor", min(FACTORS), max(FACTORS), cls.factor))
        sigma = number_of(values, "sigma")
        if sigma is not None and not (math.isfinite(sigma) and sigma > 0):
            raise InvalidInputError(f"the noise level is {sigma:g}; expected a positive number, in units of the image")
        return cls(
            task,
            sigma,
            blur,
            _within(values, "width", 0.1, WIDEST, cls.width),
            _within(values, "length", 1.0, LONGEST, cls.length),
            _within(values, "degrees", -180.0, 360.0, cls.degrees),
            factor if task == "upscale" else 1,
        )

    def like(self, image: ImageFile) -> ImageFile:
        """What the result is written like."""
        return enlarged_like(image, self.factor) if self.factor > 1 else replace(image, missing=None)

    def run(self, values: NDArray[Any], image: ImageFile, mask: Path, progress: Progress) -> NDArray[Any]:
        """As `heatprior deblur`, `inpaint` or `upscale` does it with the `values` of an image."""
        known = {"channel_axis": image.channel_axis, "white": image.white, "progress": progress}
        return TASKS[self.task].run(self, values, mask, known)

    def command(self, name: str) -> str:
        """The line that does the same in a shell."""
        task = TASKS[self.task]
        sigma = [] if self.sigma is None else ["--sigma", repr(self.sigma)]
        return shlex.join(["heatprior", self.task, name, "-o", self.target(name), *task.options(self), *sigma])

    def target(self, name: str) -> str:
        """photo.png → photo-sharpened.png."""
        return target_name(name, TASKS[self.task].done)

    @property
    def kernel(self) -> NDArray[Any]:
        """The blur that is undone."""
        return gaussian_kernel(self.width) if self.blur == "gaussian" else motion_kernel(self.length, self.degrees)


class Task(NamedTuple):
    """What is done to the pixels, the options of the command that does the same, and how its results are called."""

    run: Callable[[Restoration, NDArray[Any], Path, Mapping[str, Any]], NDArray[Any]]
    options: Callable[[Restoration], list[str]]
    done: str


def _deblur(wanted: Restoration, values: NDArray[Any], _: Path, known: Mapping[str, Any]) -> NDArray[Any]:
    return restore(values, Blur(wanted.kernel), wanted.sigma, **known)


def _inpaint(wanted: Restoration, values: NDArray[Any], mask: Path, known: Mapping[str, Any]) -> NDArray[Any]:
    spoilt = read_grey(mask) > np.iinfo(np.uint8).max / 2 if mask.exists() else None
    return fill_in(values, spoilt, wanted.sigma, **known)


def _upscale(wanted: Restoration, values: NDArray[Any], _: Path, known: Mapping[str, Any]) -> NDArray[Any]:
    return restore(values, Downsample(wanted.factor), wanted.sigma, **known)


def _blur_options(wanted: Restoration) -> list[str]:
    if wanted.blur == "gaussian":
        return ["--gaussian", f"{wanted.width:g}"]
    return ["--motion", f"{wanted.length:g},{wanted.degrees:g}"]


TASKS = {
    "deblur": Task(_deblur, _blur_options, "sharpened"),
    "inpaint": Task(_inpaint, lambda _: ["--mask", MASK], "filled"),
    "upscale": Task(_upscale, lambda wanted: ["--factor", str(wanted.factor)], "enlarged"),
}


def _within(values: Mapping[str, Any], name: str, low: float, high: float, usual: float) -> float:
    value = number_of(values, name)
    if value is None:
        return usual
    if not low <= value <= high:
        raise InvalidInputError(f"the {name} is {value:g}; expected {low:g} to {high:g}")
    return value
