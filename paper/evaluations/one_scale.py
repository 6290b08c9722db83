"""What images gain by being denoised at several scales: PSNR at one, at three and at all.

    python -m paper.evaluations.one_scale [--images 8]

The first validation images, grey, middle 256×256 pixels, by the protocol of `heatprior evaluate`. Prints a table and
writes records/one_scale.json; nothing is chosen by it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from heatprior.arrays import FloatArray
from heatprior.data.trials import LEVELS, psnr, with_noise
from heatprior.images import read_grey
from heatprior.restoration.denoising import choose_prior
from heatprior.restoration.pipeline import MOST_SCALES
from paper import RECORDS, bsds500, load
from paper.methods import split
from paper.records import write_record

SIDE = 256
QUALITIES = ("fast", "default")
ROWS = {"one scale": 1, "three scales": 3, "all scales": MOST_SCALES}
RESULT = RECORDS / "one_scale.json"


def middle(path: Path) -> FloatArray:
    """SIDE×SIDE pixels, grey levels being 0 to 1."""
    grey = read_grey(path) / 255.0
    top, left = ((length - SIDE) // 2 for length in grey.shape)
    return np.asarray(grey[top : top + SIDE, left : left + SIDE], np.float32)


def mean_psnr(images: list[FloatArray], level: int, quality: str, scales: int) -> float:
    """Over all images, at 255 sigma = level."""
    sigma, prior = level / 255.0, load(choose_prior(quality))
    noisy = [with_noise(clean, i, sigma) for i, clean in enumerate(images)]
    found = [psnr(split(y, sigma, prior, scales), clean) for y, clean in zip(noisy, images, strict=True)]
    return round(float(np.mean(found)), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=8)
    count = parser.parse_args().images
    images = [middle(path) for path in bsds500.validation(None)[:count]]
    rows = {}
    for quality in QUALITIES:
        for name, scales in ROWS.items():
            row = {str(level): mean_psnr(images, level, quality, scales) for level in LEVELS}
            rows[f"{quality}, {name}"] = row
            print(f"{quality + ', ' + name:23}", *(f"{value:8.2f}" for value in row.values()))
    write_record(RESULT, {"images": count, "side": SIDE, "first_seed": 1000, "psnr": rows})


if __name__ == "__main__":
    main()
