"""White noise on colour images, sigma told: differences beside the brightness, and by themselves.

    python -m paper.evaluations.colour_bsd68 [--data DIR] [--images 15] [--crops 12] [--resume]

Of the colour originals of BSD68 (CBSD68, the images of BSDS500 val that are not for validation, by name), and of crops
of the validation images, where other slopes than SLOPE are tried as well: the guide times a factor. Noise of image i
is drawn from seed 1000 + i on all channels, neither clipped nor rounded; PSNR is that of all channels together, of the
result clipped to [0, 1], and of the two differences, beside the brightness and by themselves. Writes
records/colour_bsd68.json after every image; `--resume` keeps those that it has.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from heatprior import load
from heatprior.arrays import FloatArray
from heatprior.border.pixels import COLOUR
from heatprior.data.trials import psnr, with_noise
from heatprior.images import image_files, read_image
from heatprior.noise_value import as_noise
from heatprior.priors.gaussian_mixture import GaussianMixturePrior
from heatprior.priors.mixture_step import step_of_mixture
from heatprior.restoration.pipeline import Pipeline
from paper import RECORDS, bsds500
from paper.records import write_record

SIGMAS = (15, 25, 50)  # of 255
CROP = slice(80, 240)
FACTORS = (0.5, 2.0)  # of SLOPE
RESULT = RECORDS / "colour_bsd68.json"
BACK = np.linalg.inv(COLOUR).T


def denoise_ways(clean: FloatArray, number: int, sigma: float, *, both: bool = True) -> dict[str, float]:
    """PSNR of the colours and of the differences: those beside the brightness and, of both ways, those alone."""
    noisy = with_noise(clean, number, sigma)
    planes = [(noisy @ row).astype(np.float32) for row in COLOUR]
    noises = [as_noise(sigma * float(np.linalg.norm(row))) for row in COLOUR]
    pipeline = Pipeline(load("tuned"), (clean.shape[0], clean.shape[1]))
    beside = pipeline.denoise_planes(planes, noises)
    ways, found = {"beside": beside}, {}
    if both:
        ways["alone"] = [beside[0], *(pipeline.denoise(*pair) for pair in zip(planes[1:], noises[1:], strict=True))]
    for name, parts in ways.items():
        result = np.stack(parts, axis=-1) @ BACK
        errors = np.mean([np.square(part - clean @ row) for part, row in zip(parts[1:], COLOUR[1:], strict=True)])
        found[name] = round(psnr(result, clean), 3)
        found[f"{name}, differences"] = round(float(-10.0 * np.log10(errors)), 3)
    return found


@contextmanager
def scale_guides(factor: float) -> Iterator[None]:
    """Denoise as if SLOPE were so many times as large."""

    def step(
        prior: GaussianMixturePrior, *arguments: Any, guide: FloatArray | None = None, **options: Any
    ) -> FloatArray:
        return step_of_mixture(
            prior, *arguments, guide=None if guide is None else np.float32(factor) * guide, **options
        )

    GaussianMixturePrior.denoise_step = step
    try:
        yield
    finally:
        GaussianMixturePrior.denoise_step = step_of_mixture


def measure(clean: FloatArray, number: int, *, slopes: bool) -> dict[str, list[float]]:
    """By the name of what is measured, at every sigma."""
    found = [denoise_ways(clean, number, sigma / 255) for sigma in SIGMAS]
    for factor in FACTORS if slopes else ():
        with scale_guides(factor):
            for own, sigma in zip(found, SIGMAS, strict=True):
                own[f"beside, slope times {factor:g}"] = denoise_ways(clean, number, sigma / 255, both=False)["beside"]
    return {name: [own[name] for own in found] for name in found[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--images", type=int, default=15)
    parser.add_argument("--crops", type=int, default=12)
    parser.add_argument("--resume", action="store_true")
    arguments = parser.parse_args()
    others = image_files(bsds500.data_folder(arguments.data) / "bsds500" / "val")
    files = {
        "validation": bsds500.validation(arguments.data)[: arguments.crops],
        "cbsd68": [path for path in others if path.stem not in bsds500.VALIDATION_STEMS][: arguments.images],
    }
    rows: dict[str, dict[str, Any]] = {name: {} for name in files}
    if arguments.resume and RESULT.exists():
        rows = json.loads(RESULT.read_text())["psnr"]
    for name, own in files.items():
        for number, file in enumerate(own):
            if file.name in rows[name]:
                continue
            clean = read_image(file).pixels / np.float32(255)
            clean = clean[CROP, CROP] if name == "validation" else clean
            rows[name][file.name] = measure(clean, number, slopes=name == "validation")
            means = {
                name: {key: np.mean([row[key] for row in some.values()], axis=0).round(3).tolist() for key in first}
                for name, some in rows.items()
                for first in list(some.values())[:1]
            }
            print(file.name, means[name], flush=True)
            counts = {name: len(some) for name, some in rows.items()}
            write_record(RESULT, {"images": counts, "sigmas": SIGMAS, "mean": means, "psnr": rows})


if __name__ == "__main__":
    main()
