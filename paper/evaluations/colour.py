"""How strongly the colour differences should be scaled for a prior of grey images: PSNR over CHROMA.

    python -m paper.evaluations.colour [--data DIR] [--images 8] [--first 8]

Colour crops of validation images with noise in every channel, denoised by half-quadratic splitting with `patch7`.
CHROMA was chosen on the first eight images; by default this shows the next eight. Writes
records/colour.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from heatprior import load
from heatprior.arrays import FloatArray
from heatprior.border.pixels import CHROMA, COLOUR
from heatprior.data.trials import psnr, with_noise
from heatprior.images import read_image
from paper import RECORDS, bsds500
from paper.methods import split
from paper.records import write_record

CROP = slice(80, 240)
SIGMAS = (10, 25, 50)  # of 255
FACTORS = (0.25, 0.5, 1.0, 1.5)  # of CHROMA
RESULT = RECORDS / "colour.json"


def denoised(noisy: FloatArray, sigma: float, mix: FloatArray) -> FloatArray:
    """Each row of the mix is an image of its own, with noise of its own; (H, W, 3)."""
    prior = load("patch7")
    parts = [split((noisy @ row).astype(np.float32), sigma * float(np.linalg.norm(row)), prior) for row in mix]
    return np.asarray(np.stack(parts, axis=-1) @ np.linalg.inv(mix).T)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--first", type=int, default=8)
    arguments = parser.parse_args()
    files = bsds500.validation(arguments.data)[arguments.first : arguments.first + arguments.images]
    crops = [read_image(file).pixels[CROP, CROP] / np.float32(255) for file in files]
    rows = {}
    print(f"mean PSNR in dB of {len(crops)} colour crops, sigma =".ljust(44) + "".join(f"{s:9d}" for s in SIGMAS))
    for factor in FACTORS:
        mix = COLOUR * np.array([[1.0], [factor], [factor]])
        values = [
            [psnr(denoised(with_noise(x, i, s / 255), s / 255, mix), x) for s in SIGMAS] for i, x in enumerate(crops)
        ]
        means = np.mean(values, axis=0)
        rows[f"{factor * CHROMA:g}"] = [round(float(value), 3) for value in means]
        print(f"differences scaled by {factor * CHROMA:g}".ljust(44) + "".join(f"{value:9.2f}" for value in means))
    write_record(RESULT, {"first_image": arguments.first, "images": len(crops), "sigmas": SIGMAS, "psnr": rows})


if __name__ == "__main__":
    main()
