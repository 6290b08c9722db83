"""How well a method denoises: PSNR and SSIM of results clipped to [0, 1], and time, on the images of `trials.py`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.data.datasets import scale_by_type
from heatprior.data.trials import LEVELS, WINDOW, psnr, ssim, with_noise
from heatprior.errors import HeatpriorError, InvalidInputError
from heatprior.images import read_grey
from heatprior.kernels.threads import limit_threads

GREY_LEVELS = 255.0
WARM_UP = 64  # pixels of a side

DenoisingFunction = Callable[[FloatArray, float], FloatArray]


class TrialResult(NamedTuple):
    """One image at one level (255 sigma)."""

    file: str
    level: float
    psnr: float
    ssim: float
    seconds_per_megapixel: float


class Summary(NamedTuple):
    """All images at one level: mean PSNR and SSIM, median time."""

    level: float
    psnr: float
    ssim: float
    seconds_per_megapixel: float


def evaluate(
    files: Sequence[Path],
    denoiser: DenoisingFunction,
    *,
    levels: Sequence[float] = LEVELS,
    threads: int = 1,
    report: Callable[[TrialResult], None] | None = None,
    skip: Callable[[HeatpriorError], None] | None = None,
) -> list[TrialResult]:
    """Denoise each of `files` at each of `levels` by `denoiser(noisy, sigma)`, grey levels being 0 to 1, float32.

    `report` is called with every measurement. A file that cannot be read is handed to `skip` and left out, if given.
    """
    bad = [level for level in levels if not 0 < level < np.inf]
    if bad or not levels:
        raise InvalidInputError(f"noise levels are {list(levels)}; expected positive numbers, in grey levels of 255")
    results: list[TrialResult] = []
    with limit_threads(threads):
        for number, path in enumerate(files):
            try:
                clean = _grey(path)
            except HeatpriorError as error:
                if skip is None:
                    raise
                skip(error)
                continue
            for level in levels:
                sigma = level / GREY_LEVELS
                noisy = with_noise(clean, number, sigma)
                if len(results) < len(levels):  # warm up: what happens once at each level does not count
                    denoiser(noisy[:WARM_UP, :WARM_UP], sigma)
                start = time.perf_counter()
                denoised = denoiser(noisy, sigma)
                seconds = time.perf_counter() - start
                result = TrialResult(
                    path.name, level, psnr(denoised, clean), ssim(denoised, clean), seconds * 1e6 / clean.size
                )
                results.append(result)
                if report:
                    report(result)
    return results


def summarise(results: Sequence[TrialResult]) -> list[Summary]:
    """One line for each level, in the order of their first appearance."""
    lines = []
    for level in dict.fromkeys(result.level for result in results):
        rows = [(r.psnr, r.ssim, r.seconds_per_megapixel) for r in results if r.level == level]
        psnr, ssim, seconds = zip(*rows, strict=True)
        lines.append(Summary(level, float(np.mean(psnr)), float(np.mean(ssim)), float(np.median(seconds))))
    return lines


def _grey(path: Path) -> NDArray[np.float32]:
    """A clean image as grey levels from 0 to 1."""
    image = read_grey(path)
    if min(image.shape) < WINDOW:
        size = f"{image.shape[0]}×{image.shape[1]}"
        raise InvalidInputError(f"{path} has {size} pixels; expected at least {WINDOW}×{WINDOW}")
    if image.dtype.kind == "f" and not (image.min() >= 0.0 and image.max() <= 1.0):  # NaN is refused too
        raise InvalidInputError(f"{path} has values beyond 0 to 1; rescale images of floats to [0, 1]")
    return scale_by_type(image)
