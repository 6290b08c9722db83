"""Whether surprise tells (a) a sigma wrong by two, (b) grey levels scaled by ten, (c) text and drawings of lines.

    python -m paper.evaluations.surprise_roc [--data DIR]

Photographs are the middle 96×96 pixels of every second of the 32 validation images with noise of 255 sigma = 25 (seed
1000 + i). Against them: the same images with half and with twice the sigma told; the same images and sigma divided and
multiplied by ten, full scale being told as before; and pages of text and drawings of lines, with the same noise. The
score is the distance of the noise found from the noise told (a), or the larger part of strange or plain patches (b, c):
areas under the ROC curve, and how often a warning is given. Writes records/surprise_roc.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import skimage.data
from PIL import Image, ImageDraw

from heatprior.arrays import FloatArray
from heatprior.data.trials import FIRST_SEED, with_noise
from heatprior.images import read_grey
from heatprior.restoration.surprise import Surprise, surprise
from paper import RECORDS, bsds500
from paper.records import write_record

RESULT = RECORDS / "surprise_roc.json"
SIGMA = 25 / 255
SIDE = 96
DRAWINGS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    photographs = [middle(read_grey(path)) / np.float32(255) for path in bsds500.validation(arguments.data)[::2]]
    noisy = [with_noise(clean, number, SIGMA) for number, clean in enumerate(photographs)]
    others = [with_noise(clean, number, SIGMA) for number, clean in enumerate(pages() + drawings())]
    usual = looked_at(noisy, 1.0, SIGMA)
    cases = {
        "sigma told twice too large": looked_at(noisy, 1.0, 2.0 * SIGMA),
        "sigma told twice too small": looked_at(noisy, 1.0, SIGMA / 2.0),
        "grey levels and sigma divided by ten": looked_at(noisy, 0.1, SIGMA),
        "grey levels and sigma multiplied by ten": looked_at(noisy, 10.0, SIGMA),
        "text and line drawings": looked_at(others, 1.0, SIGMA),
    }
    rows = {}
    for name, found in cases.items():
        score = wrong_noise if name.startswith("sigma") else strangeness
        rows[name] = {
            "images": len(found),
            "area_under_roc": round(area([score(one) for one in found], [score(one) for one in usual]), 4),
            "warned": round(float(np.mean([bool(one.reason) for one in found])), 4),
            "reasons": sorted({one.reason for one in found}),
        }
        print(name, rows[name], flush=True)
    alarms = round(float(np.mean([bool(one.reason) for one in usual])), 4)
    write_record(RESULT, {"first_seed": FIRST_SEED, "photographs": len(usual), "false_alarms": alarms, "cases": rows})
    print(f"false alarms {alarms:.1%}")


def looked_at(images: list[FloatArray], scale: float, sigma: float) -> list[Surprise]:
    """Each image, times `scale`, told `sigma` times it."""
    return [surprise(scale * image, scale * sigma, white=1.0) for image in images]


def wrong_noise(found: Surprise) -> float:
    """How far the noise is from what was told, as a logarithm."""
    return abs(float(np.log(found.noise)))


def strangeness(found: Surprise) -> float:
    """The part of the patches that photographs hardly have."""
    return max(found.strange, found.plain)


def area(positives: list[float], negatives: list[float]) -> float:
    """Under the ROC curve: how often a positive scores above a negative, ties counting half."""
    difference = np.array(positives)[:, None] - np.array(negatives)
    return float(np.mean((difference > 0) + 0.5 * (difference == 0)))


def middle(image: FloatArray) -> FloatArray:
    """The middle SIDE×SIDE pixels."""
    top, left = ((length - SIDE) // 2 for length in image.shape)
    return np.asarray(image[top : top + SIDE, left : left + SIDE])


def pages() -> list[FloatArray]:
    """Parts of the pictures of text that come with scikit-image."""
    pictures: list[Any] = [skimage.data.page, skimage.data.text]
    page, text = (np.asarray(picture() / 255.0, np.float32) for picture in pictures)
    return [page[:SIDE, k : k + SIDE] for k in (0, 100, 200)] + [text[:SIDE, k : k + SIDE] for k in (0, 140, 280)]


def drawings() -> list[FloatArray]:
    """Black lines, boxes, circles and letters on white."""
    found = []
    for seed in range(DRAWINGS):
        rng = np.random.default_rng(seed)
        sheet = Image.new("L", (SIDE, SIDE), 255)
        pen = ImageDraw.Draw(sheet)
        for _ in range(12):
            x, y, width, height = (int(value) for value in rng.integers(0, SIDE, 4))
            pen.line((x, y, width, height), fill=0, width=int(rng.integers(1, 4)))
            pen.rectangle((x, y, x + width // 4, y + height // 4), outline=0, width=2)
            pen.ellipse((width, height, width + 20, height + 20), outline=0, width=2)
            pen.text((y, x), "heat and prior", fill=0)
        found.append(np.asarray(sheet, np.float32) / np.float32(255))
    return found


if __name__ == "__main__":
    main()
