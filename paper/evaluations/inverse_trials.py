"""The inverse problems that are measured: each a list of cases, one or more for each image.

Grey images, crop [30:286, 30:286] of whole images, noise 2.55/255 by default_rng(1000 + n). Deblurring and enlarging
are cyclic, deblurring with kernels 1, 4 and 6 of Levin et al.; CT is of crops of 128×128, for the sake of total
variation, which has no closed form there. "deblur-edges" saw the valid part only.

HEATPRIOR_DATA is the folder that holds bsds500, val32.txt and kernels/levin09.npz.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

import heatprior as hp
from heatprior.arrays import FloatArray
from heatprior.data.trials import psnr
from heatprior.images import read_grey
from heatprior.restoration.operators.convolution import gaussian_kernel
from heatprior.restoration.operators.measurement import Data, Measurement
from heatprior.restoration.restore import Linear
from paper.evaluations.tomography import projection_matrix

SIGMA = 2.55 / 255
CROP, SIDE = 30, 256
VIEWS, CT_SIDE = 60, 128
WORDS = "the quick brown fox jumps over the lazy dog "


class Trial(NamedTuple):
    """One image of one problem."""

    truth: FloatArray  # what is compared
    operator: Any
    options: dict[str, Any]
    measurement: Measurement
    data: Data
    sigma: float


def folder() -> Path:
    return Path(os.environ["HEATPRIOR_DATA"])


def validation_images(count: int) -> Iterator[FloatArray]:
    """Whole, grey levels 0 to 1."""
    for name in (folder() / "val32.txt").read_text().split()[:count]:
        yield read_grey(folder() / "bsds500" / "val" / name) / 255.0


def measured(number: int, image: FloatArray, operator: Any, data_shape: tuple[int, ...], **about: Any) -> Trial:
    """Data of the crop, or of as much more as the operator sees; noise as the protocol says."""
    sigma, options = about.get("sigma", SIGMA), about.get("options", {})
    measurement = operator.on(data_shape) if hasattr(operator, "on") else Linear(operator, **options).on(data_shape)
    top = left = CROP
    inside = measurement.inside or (slice(0, measurement.image_shape[0]), slice(0, measurement.image_shape[1]))
    top, left = top - inside[0].start, left - inside[1].start
    seen = image[top : top + measurement.image_shape[0], left : left + measurement.image_shape[1]]
    rng = np.random.default_rng(1000 + number)
    data = measurement.forward(seen)
    noise = rng.standard_normal(data.shape)
    if measurement.is_complex:
        noise = noise + 1j * rng.standard_normal(data.shape)
    data = data + sigma * noise
    if measurement.blind is not None:
        data = np.where(measurement.blind, 0.0, data)
    return Trial(seen[inside], operator, options, measurement, data, sigma)


def text_mask(side: int) -> NDArray[np.bool_]:
    """True where no letter covers the image."""
    page = Image.new("L", (side, side), 255)
    for line in range(0, side, 20):
        ImageDraw.Draw(page).text((2 - line, line), WORDS * 4, fill=0, font_size=16)
    return np.asarray(page) > 127


def lines_seen(side: int, part: float, number: int) -> NDArray[np.bool_]:
    """Columns of frequencies: the lowest eight in a hundred, and others at random."""
    frequencies = np.abs(np.fft.fftfreq(side))
    seen = frequencies < 0.04
    for column in np.random.default_rng(3000 + number).permutation(side):
        if seen.sum() >= part * side:
            break
        seen[column] = True
    return np.broadcast_to(seen, (side, side))


def deblurring(edges: str) -> Callable[[int, FloatArray], list[Trial]]:
    kernels = np.load(folder() / "kernels" / "levin09.npz")

    def trials(number: int, image: FloatArray) -> list[Trial]:
        return [measured(number, image, hp.operators.Blur(kernels[k], edges), (SIDE, SIDE)) for k in ("k1", "k4", "k6")]

    return trials


def inpainting(missing: float) -> Callable[[int, FloatArray], list[Trial]]:
    def trials(number: int, image: FloatArray) -> list[Trial]:
        seen = np.random.default_rng(2000 + number).random((SIDE, SIDE)) >= missing
        return [measured(number, image, hp.operators.Mask(seen), (SIDE, SIDE))]

    return trials


def enlarging(factor: int, kernel: Any) -> Callable[[int, FloatArray], list[Trial]]:
    def trials(number: int, image: FloatArray) -> list[Trial]:
        return [
            measured(number, image, hp.operators.Downsample(factor, kernel, "cyclic"), (SIDE // factor, SIDE // factor))
        ]

    return trials


def tomography(number: int, image: FloatArray) -> list[Trial]:
    """Noise of half a per cent of the largest sum along a ray."""
    matrix = projection_matrix(CT_SIDE, np.arange(VIEWS) * 180.0 / VIEWS)
    sigma = 0.005 * float((matrix @ image[CROP : CROP + CT_SIDE, CROP : CROP + CT_SIDE].reshape(-1)).max())
    return [measured(number, image, matrix, (matrix.shape[0],), sigma=sigma, options={"shape": (CT_SIDE, CT_SIDE)})]


PROBLEMS: dict[str, Callable[[], Callable[[int, FloatArray], list[Trial]]]] = {
    "deblur": lambda: deblurring("cyclic"),
    "deblur-edges": lambda: deblurring("unknown"),
    "inpaint-50": lambda: inpainting(0.5),
    "inpaint-80": lambda: inpainting(0.8),
    "inpaint-text": lambda: lambda n, image: [measured(n, image, hp.operators.Mask(text_mask(SIDE)), (SIDE, SIDE))],
    "upscale-2-bicubic": lambda: enlarging(2, "bicubic"),
    "upscale-3-bicubic": lambda: enlarging(3, "bicubic"),
    "upscale-2-gaussian": lambda: enlarging(2, gaussian_kernel(1.2)),
    "upscale-3-gaussian": lambda: enlarging(3, gaussian_kernel(1.6)),
    "ct-60-views": lambda: tomography,
    "mri-4-fold": lambda: (
        lambda n, image: [measured(n, image, hp.operators.Fourier(lines_seen(SIDE, 0.25, n)), (SIDE, SIDE))]
    ),
}


def first(trial: Trial) -> FloatArray:
    """The data as an image, or A transposed of them, scaled: what is there before anything is restored."""
    if trial.measurement.first_guess is not None:
        return np.asarray(trial.measurement.first_guess(trial.data), np.float64)
    back = trial.measurement.adjoint(trial.data)
    again = trial.measurement.forward(back)
    return np.asarray(back * (np.vdot(again, trial.data).real / np.vdot(again, again).real))


def compared(trial: Trial, image: FloatArray) -> float:
    inside = trial.measurement.inside
    whole = image if image.shape == trial.truth.shape or inside is None else image[inside]
    return float(psnr(whole, trial.truth))
