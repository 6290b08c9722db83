"""The scale of grey levels: how much a wrong `white` costs, and what is found without one.

    python -m paper.evaluations.grey_scales [--data DIR] [--images 3]

Crops of validation images with white noise of 25, image and noise multiplied by factors, sigma told and not; PSNR
relative to the crop as it was. The same as integers of several types and peaks, PSNR relative to the same numbers as
floats. What the scale that is found costs or gives against the true one, white = 1, on crops of all validation images.
Then two images of 16 bits that are far from filling them: photons counted (a crop, at most 400 of them) and a field of
stars, with the white of the type and with the one that is found. Writes records/grey_scales.json.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatprior.arrays import FloatArray
from heatprior.border.scale import full_scale
from heatprior.data.trials import psnr, with_noise
from heatprior.images import read_grey
from heatprior.restoration.denoising import denoise
from paper import RECORDS, bsds500
from paper.records import write_record

CROP = slice(80, 240)
SIGMA = 25 / 255
FACTORS = (1e-4, 0.01, 0.3, 0.5, 0.8, 1.3, 2.0, 255.0, 1e5)
INTEGERS = (
    ("uint8", 255),
    ("uint8", 150),
    ("uint8", 60),
    ("uint16", 60000),
    ("uint16", 4095),
    ("uint16", 400),
    ("int32", 10**7),
)
WHITES = (0.5, 0.7, 1.4, 2.0)
PHOTONS, TYPE_WHITE = 400, 65535.0
BACKGROUND, STARS, BRIGHTEST, WIDTH, READ_NOISE = 100.0, 60, 4000.0, 1.3, 8.0
RESULT = RECORDS / "grey_scales.json"


def photons(clean: FloatArray) -> tuple[NDArray[Any], FloatArray]:
    """Counted, as uint16, and how many were expected."""
    expected = clean / clean.max() * (PHOTONS - 3 * np.sqrt(PHOTONS))
    return np.random.default_rng(0).poisson(expected).clip(0, PHOTONS).astype(np.uint16), expected


def stars(side: int = 160) -> tuple[NDArray[Any], FloatArray]:
    """A field of them with noise, as uint16, and without."""
    rng = np.random.default_rng(1)
    rows, columns = np.mgrid[:side, :side]
    clean = np.full((side, side), BACKGROUND)
    for _ in range(STARS):
        y, x, light = *rng.uniform(0, side, 2), BRIGHTEST * rng.uniform() ** 4
        clean += light * np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / (2 * WIDTH**2))
    noisy = clean + READ_NOISE * rng.standard_normal(clean.shape)
    return np.rint(noisy).clip(0, TYPE_WHITE).astype(np.uint16), clean


def before_and_after(noisy: NDArray[Any], clean: FloatArray, sigma: float | None) -> dict[str, float]:
    """PSNR, the peak being the brightest pixel: noisy, with the white of the type, with the one that is found."""
    peak = float(clean.max())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that so little noise is lost in rounding
        found = full_scale(None, noisy, None)
        by_type = denoise(noisy, sigma, white=TYPE_WHITE)
        results = {"noisy": noisy, "white_of_the_type": by_type, "white_found": denoise(noisy, sigma)}
    figures = {name: round(psnr(np.asarray(x / peak), clean / peak), 2) for name, x in results.items()}
    return {"found": round(found, 1), **figures}


def as_integers(noisy: FloatArray, clean: FloatArray, kind: str, peak: int) -> float:
    """PSNR of integers up to `peak`, blind, less that of the same numbers as floats."""
    image = np.rint(noisy.clip(0, 1) * peak).astype(kind)
    found, same = (psnr(np.rint(denoise(x)) / np.float32(peak), clean) for x in (image, image.astype(np.float64)))
    return round(found - same, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--images", type=int, default=3)
    arguments = parser.parse_args()
    every = [read_grey(file)[CROP, CROP] / np.float32(255) for file in bsds500.validation(arguments.data)]
    crops = every[:: len(every) // arguments.images][: arguments.images]
    against: dict[str, list[float]] = {}
    for number, clean in enumerate(every):
        noisy = with_noise(clean, number, SIGMA)
        for name, sigma in (("told", SIGMA), ("blind", None)):
            own, true = (psnr(denoise(noisy, sigma, white=white), clean) for white in (None, 1.0))
            against.setdefault(name, []).append(own - true)
    wrong: dict[str, list[float]] = {}
    changes: dict[str, dict[str, list[float]]] = {"told": {}, "blind": {}}
    integers: dict[str, list[float]] = {}
    for number, clean in enumerate(crops):
        noisy = with_noise(clean, number, SIGMA)
        usual = {"told": psnr(denoise(noisy, SIGMA), clean), "blind": psnr(denoise(noisy), clean)}
        for white in WHITES:
            change = psnr(denoise(noisy, SIGMA, white=white), clean) - usual["told"]
            wrong.setdefault(f"{white:g}", []).append(round(change, 3))
        for factor in FACTORS:
            for name, sigma in (("told", factor * SIGMA), ("blind", None)):
                result = denoise(np.float32(factor) * noisy, sigma) / np.float32(factor)
                changes[name].setdefault(f"{factor:g}", []).append(round(psnr(result, clean) - usual[name], 3))
        for kind, peak in INTEGERS:
            integers.setdefault(f"{kind} to {peak}", []).append(as_integers(noisy, clean, kind, peak))
        print(number, usual, wrong, changes, integers, flush=True)
    counted, expected = photons(crops[0])
    cases = {
        "photons, blind": before_and_after(counted, expected, None),
        "photons, told the mean": before_and_after(counted, expected, float(np.sqrt(expected.mean()))),
        "stars, told": before_and_after(*stars(), READ_NOISE),
        "stars, blind": before_and_after(*stars(), None),
    }
    print(cases)
    about = {
        "images": len(crops),
        "sigma": 25,
        "largest_change": max(abs(x) for own in changes.values() for values in own.values() for x in values),
        "largest_change_of_integers": max(abs(x) for values in integers.values() for x in values),
        "found_less_true": {name: round(float(np.mean(values)), 3) for name, values in against.items()},
        "least_found_less_true": {name: round(float(np.min(values)), 3) for name, values in against.items()},
    }
    write_record(RESULT, {**about, "wrong_white": wrong, "multiplied": changes, "integers": integers, "16_bits": cases})


if __name__ == "__main__":
    main()
