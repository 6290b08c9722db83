"""Denoise and restore a picture as the page asks: settings, calls of the library, and the same on the command line."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from heatprior.app.pictures import FrameNoise, OpenedPicture, Region
from heatprior.app.words import describe_noise
from heatprior.arrays import FloatArray
from heatprior.errors import InvalidInputError
from heatprior.images import ImageFile, name_result, read_grey
from heatprior.kernels.patches import Progress, span_of
from heatprior.noise.channel_noise import one_of_each
from heatprior.noise.estimation import check_kind, estimate_noise, find_doubts
from heatprior.presets import DEFAULT, QUICK, find_preset
from heatprior.restoration.denoising import STRENGTHS, denoise, strengthen
from heatprior.restoration.operators.convolution import Blur, Downsample, gaussian_kernel, motion_kernel
from heatprior.restoration.plug_and_play import LEAST_SIGMA
from heatprior.restoration.restore import fill_in, restore

MASK = "mask.png"  # what a person painted, beside the picture in the temporary folder
WIDEST = 20.0  # pixels: standard deviation of a Gaussian blur
LONGEST = 100.0  # pixels of a motion
FACTORS = (2, 3, 4)
DONE = {"deblur": "sharpened", "inpaint": "filled", "upscale": "enlarged"}  # in the names of results, by the task
UNSURE = 1.0  # dB: predictions with a larger error are not shown
REACH = 12  # pixels: that of two patches
LITTLE = 0.1  # of their level: how much channels may differ and still be looked at with one
ESTIMATING = 0.8  # of the time, when doubts are looked for


@dataclass(frozen=True)
class Choice:
    """A noise level in the units of the image, or None to estimate it; times `strength`; and how well to denoise."""

    sigma: float | None = None
    strength: float = 1.0
    quality: str = DEFAULT
    error: bool = False  # whether the error of each pixel is estimated too
    noise: str = "auto"  # the kind to estimate

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Choice:
        """Parse what the page sent; raises InvalidInputError for what makes no sense."""
        sigma, strength = _parse_level(values), within(values, "strength", *STRENGTHS, 1.0)
        quality, kind = str(values.get("quality") or DEFAULT), str(values.get("noise") or "auto")
        find_preset(quality[:40])
        check_kind(kind[:40])
        return cls(sigma, strength, quality, bool(values.get("error")), "auto" if sigma is not None else kind)

    @property
    def keywords(self) -> dict[str, Any]:
        """Keywords for `hp.denoise`."""
        if self.sigma is not None:
            return {"quality": self.quality, "sigma": self.sigma * self.strength}
        return {"quality": self.quality, "strength": self.strength, "noise": self.noise}

    def command(self, name: str, target: str) -> str:
        """Return the command line that does the same."""
        noise = ["--sigma", repr(self.sigma * self.strength)] if self.sigma is not None else []
        kind = ["--noise", self.noise] if self.noise != "auto" else []
        if self.sigma is None and self.strength != 1.0:
            noise = ["--strength", repr(self.strength)]
        options = ["--quality", self.quality] if self.quality != DEFAULT else []
        return shlex.join(["heatprior", "denoise", name, "-o", target, *kind, *noise, *options])

    def margin(self, step: int) -> int:  # noqa: ARG002
        """Reduced pixels around what is seen that a look needs: the reach of two patches."""
        return REACH

    def look(self, noisy: FloatArray, region: Region, noise: FrameNoise, *, colour: bool, done: Progress) -> FloatArray:
        """A reduced region of a frame denoised quickly; the same array if nothing is removed."""
        if self.sigma is None and self.strength <= 1.0 and noise.report.is_none:
            return noisy
        keywords: dict[str, Any] = {"quality": QUICK, "channel_axis": -1 if colour else None, "progress": done}
        sigma = self._level_of_view(noise, region)
        return np.asarray(denoise(noisy, sigma, white=noise.report.white, **keywords), np.float32)

    def _level_of_view(self, noise: FrameNoise, region: Region) -> Any:
        """sigma of the reduced region: one number, one for each channel, or a map."""
        if self.sigma is not None:
            return self.sigma * self.strength / region.step
        white = noise.report.white
        # It varies slowly: samples are near its means.
        rows = slice(region.y, region.y + region.height, region.step)
        columns = slice(region.x, region.x + region.width, region.step)
        whole = noise.is_constant or noise.from_part
        found = noise.levels if whole else noise.report.sigma[rows, columns]
        levels = np.asarray(strengthen(found / white, self.strength)) * (white / region.step)
        mean = float(np.sqrt(np.mean(np.square(levels))))
        # Channels that differ little have one level, for which the prior computes its tables once: half the time.
        return mean if whole and float(np.ptp(levels)) <= LITTLE * mean else levels


def parse_number(values: Mapping[str, Any], name: str) -> float | None:
    """Parse a number that the page sent; None if it sent none."""
    value = values.get(name)
    if value in (None, ""):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError(f"{name} is {str(value)[:40]!r}; expected a number") from None


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
    noise: ClassVar[str] = "auto"

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Restoration:
        """Parse what the page sent; raises InvalidInputError for what makes no sense."""
        task, blur = str(values.get("task")), str(values.get("blur") or cls.blur)
        if task not in DONE:
            raise InvalidInputError(f"the task is {task[:40]!r}; expected {', '.join(DONE)}")
        if blur not in ("gaussian", "motion"):
            raise InvalidInputError(f"the blur is {blur[:40]!r}; expected gaussian or motion")
        factor = int(within(values, "factor", min(FACTORS), max(FACTORS), cls.factor))
        return cls(
            task,
            _parse_level(values),
            blur,
            within(values, "width", 0.1, WIDEST, cls.width),
            within(values, "length", 1.0, LONGEST, cls.length),
            within(values, "degrees", -180.0, 360.0, cls.degrees),
            factor if task == "upscale" else 1,
        )

    def run(self, values: NDArray[Any], image: ImageFile, mask: Path, progress: Progress) -> NDArray[Any]:
        """As `heatprior deblur`, `inpaint` or `upscale` does it with the `values` of an image."""
        known: dict[str, Any] = {"channel_axis": image.channel_axis, "progress": progress}
        if self.task == "inpaint":
            missing = read_grey(mask) > np.iinfo(np.uint8).max / 2 if mask.exists() else None
            return fill_in(values, missing, self.sigma, **known)
        operator: Blur | Downsample = Blur(self.kernel) if self.task == "deblur" else Downsample(self.factor)
        return restore(values, operator, self.sigma, **known)

    def command(self, name: str) -> str:
        """Return the command line that does the same."""
        gaussian, motion = ["--gaussian", f"{self.width:g}"], ["--motion", f"{self.length:g},{self.degrees:g}"]
        sigma = [] if self.sigma is None else ["--sigma", repr(self.sigma)]
        options = {
            "deblur": gaussian if self.blur == "gaussian" else motion,
            "inpaint": ["--mask", MASK],
            "upscale": ["--factor", str(self.factor)],
        }
        return shlex.join(["heatprior", self.task, name, "-o", self.target(name), *options[self.task], *sigma])

    def target(self, name: str) -> str:
        """Name the result: photo.png → photo-sharpened.png."""
        return name_result(name, DONE[self.task])

    def margin(self, step: int) -> int:
        """Reduced pixels around what is seen that a look needs: the reach of the blur, and of patches."""
        return REACH + math.ceil((3.0 * self.width if self.blur == "gaussian" else self.length) / step)

    def look(self, noisy: FloatArray, region: Region, noise: FrameNoise, *, colour: bool, done: Progress) -> FloatArray:
        """Deblur a reduced region of a frame quickly."""
        if self.task != "deblur":
            raise InvalidInputError("there is no quick look at this; do the whole picture")
        white, step = noise.report.white, region.step
        level = float(np.sqrt(np.mean(np.square(noise.levels)))) if self.sigma is None else self.sigma
        less = replace(self, width=max(self.width / step, 0.1), length=max(self.length / step, 1.0))
        keywords: dict[str, Any] = {"channel_axis": -1 if colour else None, "white": white, "progress": done}
        sigma = max(level / step, white * LEAST_SIGMA)
        return np.asarray(restore(noisy, Blur(less.kernel), sigma, quality=QUICK, **keywords), np.float32)

    @property
    def kernel(self) -> NDArray[Any]:
        """The blur that is undone."""
        return gaussian_kernel(self.width) if self.blur == "gaussian" else motion_kernel(self.length, self.degrees)


def _parse_level(values: Mapping[str, Any]) -> float | None:
    sigma = parse_number(values, "sigma")
    if sigma is not None and not (math.isfinite(sigma) and sigma > 0):
        raise InvalidInputError(f"the noise level is {sigma:g}; expected a positive number, in units of the image")
    return sigma


def within(values: Mapping[str, Any], name: str, low: float, high: float, usual: float) -> float:
    """A number from what a page sent, `usual` if it sent none; refuses one that lies beyond its limits."""
    value = parse_number(values, name)
    if value is None:
        return usual
    if not low <= value <= high:
        raise InvalidInputError(f"the {name} is {value:g}; expected {low:g} to {high:g}")
    return value


def estimate_picture(picture: OpenedPicture, number: int, kind: str, progress: Progress) -> dict[str, Any]:
    """What kind of noise a frame has, how much and where, and what speaks against it."""
    frame = picture.frame(number)
    known: dict[str, Any] = {"channel_axis": picture.channel_axis, "white": picture.white}
    report = estimate_noise(frame, kind, progress=span_of(progress, 0.0, ESTIMATING), **known)
    found = find_doubts(report, frame, picture.channel_axis, done=span_of(progress, ESTIMATING, 1.0))
    progress(1.0)
    doubts = tuple(one_of_each(list(chain.from_iterable(found))))
    noise = FrameNoise(report, from_part=False, doubts=doubts, brightness=float(np.nanmedian(frame)))
    picture.noise[number, kind] = noise
    return {"noise": describe_noise(noise, picture.ends(number))}


def denoise_picture(picture: OpenedPicture, choice: Choice, progress: Progress) -> dict[str, Any]:
    """All frames, exactly as `heatprior denoise` does it; the pixels go to a file, so that memory is free again."""
    start = time.perf_counter()
    keywords = {"channel_axis": picture.image.channel_axis, "progress": progress, **choice.keywords}
    outcome: dict[str, Any] = {}
    if choice.error:
        done = denoise(picture.values, return_error=True, **keywords)
        outcome |= {"result": picture.add(done.pixels, picture.image, done.error), "errors": True}
        if done.predicted.stderr < UNSURE:
            outcome["predicted"] = f"{done.predicted.psnr:.1f} ± {done.predicted.stderr:.1f} dB"
    else:
        outcome["result"] = picture.add(denoise(picture.values, **keywords), picture.image)
    command = choice.command(picture.name, name_result(picture.name, "denoised"))
    return {**outcome, "command": command, "seconds": round(time.perf_counter() - start, 2)}


def restore_picture(picture: OpenedPicture, wanted: Restoration, progress: Progress) -> dict[str, Any]:
    """Restore all frames, exactly as `heatprior deblur`, `inpaint` or `upscale` does."""
    start = time.perf_counter()
    pixels = wanted.run(picture.values, picture.image, picture.path.parent / f".{MASK}", progress)
    return {
        "result": picture.add(pixels, picture.image.enlarge(wanted.factor)),
        "factor": wanted.factor,
        "target": wanted.target(picture.name),
        "seconds": round(time.perf_counter() - start, 2),
        "command": wanted.command(picture.name),
    }
